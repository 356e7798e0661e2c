"""Statistics against scipy, against loops, and against simulated studies of which the truth is known."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from nearkin.errors import NearkinError
from nearkin.statistics.groups import groups
from nearkin.statistics.intervals import mean_interval
from nearkin.statistics.paired import holm, paired, probability_of_improvement, resolution
from nearkin.statistics.ranks import alike, permuted_ranks, tournament
from nearkin.statistics.unit import Key, Nothing, Place, Row

STUDIES = 4_000


# -- against scipy and loops ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 5, 30])
def test_intervals_and_paired_tests_are_scipys(n):
    rng = np.random.default_rng(n)
    a, b = rng.normal(0.5, 0.1, n), rng.normal(0.45, 0.1, n)
    low, high = stats.t.interval(0.95, n - 1, loc=a.mean(), scale=stats.sem(a))
    found = mean_interval(a)
    assert (found.mean, found.low, found.high, found.n) == pytest.approx((a.mean(), low, high, n))
    test = stats.ttest_rel(a, b)
    d = paired(a, b)
    ci = test.confidence_interval(0.95)
    assert (d.mean, d.low, d.high, d.p) == pytest.approx(((a - b).mean(), ci.low, ci.high, test.pvalue))


def test_one_seed_has_no_interval():
    found = mean_interval([0.3])
    assert (found.mean, found.low, found.high, found.half) == (0.3, None, None, None)
    assert paired([0.3], [0.2]).p is None


def test_differences_without_spread():
    assert paired([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]).p == 1
    always = paired([0.2, 0.3, 0.4], [0.1, 0.2, 0.3])
    assert (always.p, always.std) == (0, 0)


def test_a_spread_is_never_taken_below_what_the_queries_can_show():
    """Two values that are multiples of 1/Q: the variance of their rounding is twice 1/12 of 1/Q²."""
    d = paired([0.52, 0.52, 0.52], [0.50, 0.50, 0.50], least_std=resolution(50))
    assert d.std == pytest.approx(math.sqrt(1 / 6) / 50)
    assert d.p == pytest.approx(2 * stats.t.sf(0.02 / (d.std / math.sqrt(3)), 2))
    assert d.low < 0.02 < d.high
    assert resolution(None) == 0
    wide = paired([0.5, 0.6, 0.7], [0.1, 0.4, 0.2], least_std=resolution(50))
    assert wide.std == pytest.approx(np.std([0.4, 0.2, 0.5], ddof=1))


def test_an_interval_is_cut_at_the_end_of_its_range_and_says_so():
    low, high = stats.t.interval(0.95, 2, loc=0.98, scale=stats.sem([0.97, 0.98, 0.99]))
    assert high > 1
    found = mean_interval([0.97, 0.98, 0.99], bounds=(0.0, 1.0))
    assert (found.low, found.high, found.cut) == (pytest.approx(low), 1.0, True)
    assert found.half == pytest.approx(0.98 - low)
    assert not mean_interval([0.5, 0.51, 0.52], bounds=(0.0, 1.0)).cut


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mean_interval([]), "shape \\(0,\\)"),
        (lambda: mean_interval([0.1, float("nan")]), "1 of 2 are not"),
        (lambda: paired([0.1], [0.1, 0.2]), "same seeds"),
        (lambda: tournament([[1.0, float("nan")]]), "finite"),
        (lambda: tournament([1.0]), "one column per method"),
        (lambda: permuted_ranks([[1.0, 2.0, 3.0]]), "method, seed and setting"),
    ],
)
def test_bad_arrays_are_refused_with_a_sentence(call, words):
    with pytest.raises(NearkinError, match=words):
        call()


def test_holm_by_hand_and_by_its_definition():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.6]) == pytest.approx([1.0, 1.0])
    assert len(holm([])) == 0
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = rng.uniform(size=7) ** 3
        rejected = set()  # the procedure as Holm wrote it, step by step
        for step, i in enumerate(np.argsort(p)):
            if p[i] > 0.05 / (7 - step):
                break
            rejected.add(int(i))
        assert set(np.flatnonzero(holm(p) <= 0.05).tolist()) == rejected


def test_probability_of_improvement_counts_pairs():
    a, b = [0.3, 0.5, 0.5], [0.5, 0.1]
    score = sum(1.0 if x > y else 0.5 if x == y else 0.0 for x in a for y in b) / 6
    assert probability_of_improvement(a, b) == pytest.approx(score)
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=9), rng.normal(size=6)
    assert probability_of_improvement(x, y) == pytest.approx(stats.mannwhitneyu(x, y).statistic / 54)


def test_the_tournament_ranks_each_experiment_by_itself():
    scores = [[0.9, 0.8, 0.7], [0.5, 0.6, 0.5]]
    found = tournament(scores)
    assert found.ranks.tolist() == [[1, 2, 3], [2.5, 1, 2.5]]
    assert found.total.tolist() == [3.5, 3, 5.5]
    spread = [np.std(ranks, ddof=1) for ranks in ([1, 2.5], [2, 1], [3, 2.5])]
    assert found.std.tolist() == pytest.approx(spread)
    assert tournament(scores, higher_is_better=False).ranks.tolist() == [[3, 2, 1], [1.5, 3, 1.5]]
    assert np.isnan(tournament([[1.0, 2.0]]).std).all()


def test_the_permutation_of_ranks_by_hand():
    """Three methods in the same order in three seeds: 6 of 6³ orders have a range of average ranks of 2."""
    same = np.array([[3.0, 3, 3], [2, 2, 2], [1, 1, 1]])[:, :, None]
    found = permuted_ranks(same)
    assert (found.statistic, found.critical_difference) == (2, 2)
    assert found.p == pytest.approx(1 / 36, abs=3 * math.sqrt(1 / 36 / 2000))
    assert permuted_ranks(same, higher_is_better=False).p == found.p
    assert permuted_ranks(np.ones((4, 5, 1))).p == 1
    assert permuted_ranks(same[:, :1]).critical_difference == math.inf  # one seed tells nothing apart


def test_settings_of_one_seed_are_permuted_together():
    """One seed's luck in 12 settings is one piece of evidence, not twelve."""
    luck = np.random.default_rng(0).normal(size=(4, 3, 1))
    values = luck + 1e-6 * np.random.default_rng(1).normal(size=(4, 3, 12))
    alone = permuted_ranks(luck.mean(axis=1, keepdims=True)).p
    assert alone == 1  # four ranks of one experiment
    assert permuted_ranks(values).p > 0.05
    assert stats.friedmanchisquare(*values.mean(axis=1)).pvalue < 0.001


def test_groups_that_cannot_be_told_apart():
    assert alike([1.0, 1.5, 3.0, 3.2], 1.0) == [(0, 1), (2, 3)]
    assert alike([3.0, 1.0, 2.0], 1.1) == [(1, 2), (2, 0)]
    assert alike([3.0, 1.0, 2.0], 1.0) == []  # a difference that reaches it is one
    assert alike([1.0, 2.0, 3.0], 5.0) == [(0, 1, 2)]
    assert alike([1.0, 3.0], 1.0) == []
    rng = np.random.default_rng(3)
    for _ in range(30):  # every pair within reach shares a bar, no other does
        average = rng.uniform(1, 8, size=7)
        together = {pair for group in alike(average, 1.5) for pair in itertools.combinations(sorted(group), 2)}
        near = {(i, j) for i, j in itertools.combinations(range(7), 2) if abs(average[i] - average[j]) < 1.5}
        assert together == near


def test_kinds_of_methods_against_each_other():
    rng = np.random.default_rng(4)
    first, second = rng.normal(0.5, 0.1, (4, 6)), rng.normal(0.4, 0.1, (3, 6))
    found = groups(*([Row.of_seeds("", dict(enumerate(row))) for row in side] for side in (first, second)))
    wanted = stats.ttest_rel(first.mean(0), second.mean(0))
    assert found.difference.p == pytest.approx(wanted.pvalue)
    assert found.p_methods == pytest.approx(stats.mannwhitneyu(first.mean(1), second.mean(1)).pvalue)
    apart = groups([Row.of_seeds("a", {0: 0.5})], [Row.of_seeds("b", {1: 0.4})])
    assert isinstance(apart, Nothing)
    assert "no common seeds" in apart.reason


# -- against simulation --------------------------------------------------------------------------------------


def simulated(rng, seeds=5, folds=4):
    """Studies in which folds differ in difficulty and seeds have an effect on all their folds.         (N, S, F)"""
    difficulty = rng.normal(0, 6.0, (STUDIES, 1, folds))
    luck = rng.normal(0, 1.0, (STUDIES, seeds, 1))
    noise = rng.normal(0, 0.5, (STUDIES, seeds, folds))
    return 50 + difficulty + luck + noise, 50 + difficulty.mean(axis=(1, 2))


def _row(study):
    """A study (S, F) as a row."""
    return Row("", {Key(s, Place((), f)): value for (s, f), value in np.ndenumerate(study)})


def covered(studies, truth):
    found = [mean_interval(list(_row(study).values.values())) for study in studies]
    return np.mean([i.low <= t <= i.high for i, t in zip(found, truth, strict=True)])


def test_intervals_cover_the_truth_in_95_of_100_studies_with_a_fold_effect():
    studies, truth = simulated(np.random.default_rng(5))
    assert covered(studies, truth) == pytest.approx(0.95, abs=0.015)
    naive = studies.reshape(STUDIES, 20)  # folds taken for repetitions: wrong, and it shows
    half = stats.t.ppf(0.975, 19) * naive.std(1, ddof=1) / math.sqrt(20)
    assert np.mean(np.abs(naive.mean(1) - truth) <= half) > 0.97


def test_intervals_of_folds_that_share_their_seed_are_not_too_narrow():
    rng = np.random.default_rng(6)
    studies = rng.normal(0, 1.0, (STUDIES, 5, 1)) + rng.normal(0, 0.2, (STUDIES, 5, 4))
    assert covered(studies, np.zeros(STUDIES)) == pytest.approx(0.95, abs=0.015)
    naive = studies.reshape(STUDIES, 20)
    half = stats.t.ppf(0.975, 19) * naive.std(1, ddof=1) / math.sqrt(20)
    assert np.mean(np.abs(naive.mean(1)) <= half) < 0.75  # what 20 values of 5 seeds pretend


def p_values(values, pairs):
    """Paired t tests of many studies at once: values (N, k, S); scipy, not the code under test."""
    return np.stack([stats.ttest_rel(values[:, i], values[:, j], axis=1).pvalue for i, j in pairs], axis=1)


@pytest.mark.parametrize("k", [3, 10])
def test_false_positives_after_holm_are_at_most_5_percent(k):
    values = np.random.default_rng(7).normal(0, 1, (STUDIES, k, 5))
    p = p_values(values, list(itertools.combinations(range(k), 2)))
    assert np.mean([holm(row).min() < 0.05 for row in p]) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / STUDIES)
    assert (p.min(axis=1) < 0.05).mean() > 0.09  # what they are without it


@pytest.mark.parametrize("levels", [[0] * 10, [0] * 5 + [30] * 5, [0, 0, 30, 30, 60, 60]])
def test_nor_are_they_between_neighbours_that_the_data_have_sorted(levels):
    """Neighbours are chosen by the means that are then compared; equal methods differ in at most 5 % of them."""
    rng = np.random.default_rng(8)
    truth = np.array(levels, dtype=float)
    values = rng.normal(0, 1, (STUDIES, len(levels), 5)) + truth[None, :, None]
    order = np.argsort(-values.mean(axis=2), axis=1)
    values = np.take_along_axis(values, order[:, :, None], axis=1)
    truth = truth[order]
    p = p_values(values, [(i, i + 1) for i in range(len(levels) - 1)])
    null = truth[:, :-1] == truth[:, 1:]
    wrong = [(holm(row) < 0.05)[equal].any() for row, equal in zip(p, null, strict=True)]
    assert np.mean(wrong) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / STUDIES)
