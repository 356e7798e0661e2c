"""Three outcomes: what is said follows from the numbers, whichever end of the metric is the good one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from nearkin.statistics.intervals import ALPHA
from nearkin.statistics.power import Design, power, smallest
from nearkin.statistics.unit import ByClass, Row
from nearkin.statistics.verdict import Outcome, judge


def seeds(name, *values, **more):
    return Row.of_seeds(name, dict(enumerate(values)), **more)


def by_class_of(values):
    """Rows of C classes of 10 queries each: seed -> values (C,)."""

    def of(key):
        means = np.asarray(values[key.seed], dtype=float)
        return ByClass(tuple(f"{i:03d}" for i in range(len(means))), means, np.full(len(means), 10))

    return Row.of_seeds("", {s: float(np.mean(v)) for s, v in values.items()}, queries=1000, by_class=of)


def test_the_winner_is_the_sign_of_the_difference_that_is_printed():
    """The mean over all of its seeds puts A ahead; on the seeds that both have B is."""
    a = Row.of_seeds("A", {0: 0.50, 1: 0.501, 2: 0.502, 3: 0.9, 4: 0.9})
    b = Row.of_seeds("B", {0: 0.60, 1: 0.602, 2: 0.601})
    (pair,) = judge([(a, b)])
    assert pair.difference.mean == pytest.approx(-0.1)
    assert (pair.outcome, pair.winner, pair.loser) == (Outcome.DISTINGUISHABLE, b, a)
    assert pair.improvement == 0.0
    (other,) = judge([(a, b)], sign=-1)
    assert (other.winner, other.improvement) == (a, 1.0)
    (neither,) = judge([(a, b)], sign=0)
    assert neither.decided
    assert neither.winner is None


@pytest.mark.parametrize("n", [1, 2])
def test_below_three_seeds_there_is_no_verdict(n):
    """Two seeds with equal differences have no spread and would look certain."""
    (pair,) = judge([(seeds("a", *[0.6] * n), seeds("b", *[0.5] * n))], within=0.5)
    assert (pair.outcome, pair.p, pair.winner) == (Outcome.NONE, None, None)
    assert pair.difference.mean == pytest.approx(0.1)


def test_three_outcomes():
    a, b = seeds("a", 0.500, 0.501, 0.499), seeds("b", 0.501, 0.499, 0.500)
    (pair,) = judge([(a, b)], within=0.01)
    assert pair.outcome is Outcome.EQUIVALENT
    assert judge([(a, b)], within=0.001)[0].outcome is Outcome.UNDECIDED
    assert judge([(a, b)])[0].outcome is Outcome.UNDECIDED  # nothing is declared to be small
    far = seeds("c", 0.600, 0.602, 0.598)
    assert judge([(a, far)], within=0.01)[0].outcome is Outcome.DISTINGUISHABLE
    near = seeds("d", 0.5041, 0.5051, 0.5031)
    (pair,) = judge([(near, a)], within=0.01)
    assert (pair.outcome, pair.is_small) == (Outcome.DISTINGUISHABLE, True)


def test_a_family_is_corrected_together_and_counts_its_tests():
    rng = np.random.default_rng(0)
    rows = [seeds(str(i), *rng.normal(0.5, 0.01, 4)) for i in range(5)]
    pairs = [(row, rows[0]) for row in rows[1:]]
    d = np.array([list(a.values.values()) for a, _ in pairs]) - list(rows[0].values.values())  # (4, S)
    s2 = d.var(axis=1, ddof=1)
    moderated = (1.5 * s2.mean() + 3 * s2) / 4.5  # five rows: d₀ = 1.5
    plain = 2 * stats.t.sf(np.abs(d.mean(axis=1)) / np.sqrt(moderated / 4), 4.5)
    judged = judge([*pairs, (rows[0], seeds("few", 0.1, 0.2))])
    order = np.argsort(plain)
    assert judged[order[0]].p == pytest.approx(min(1.0, 4 * plain[order[0]]))
    assert [pair.spread.std for pair in judged[:4]] == pytest.approx(np.sqrt(moderated).tolist())
    assert [pair.family for pair in judged] == [4] * 5  # the pair without a test does not count
    spread = judged[0].spread
    alone = Design(spread.std, 4, ALPHA, None, None, *spread[1:])
    assert judged[0].smallest == pytest.approx(smallest(replace(alone, alpha=ALPHA / 4)))
    assert judged[0].smallest > 1.2 * smallest(alone)  # among more comparisons less can be shown


def test_two_rows_have_nothing_to_be_moderated_with():
    a, b = seeds("a", 0.50, 0.52, 0.54), seeds("b", 0.40, 0.43, 0.41)
    (pair,) = judge([(a, b)])
    assert pair.p == pytest.approx(stats.ttest_rel([0.50, 0.52, 0.54], [0.40, 0.43, 0.41]).pvalue)


def test_seeds_that_agree_are_not_enough_where_classes_do_not():
    """One class of ten gains a lot in every seed, nine lose a little: other classes might say otherwise."""
    gain = np.array([1.0] + [-0.05] * 9)
    first = by_class_of({s: 0.5 + gain + 0.001 * s for s in range(5)})
    second = by_class_of({s: 0.5 + 0.0 * gain + 0.0011 * s for s in range(5)})
    (pair,) = judge([(first, second)])
    assert pair.difference.p < ALPHA < pair.p
    assert not pair.difference.excludes_zero
    assert pair.outcome is Outcome.UNDECIDED
    assert pair.difference.classes > 10 * pair.difference.seeds


@pytest.mark.parametrize(
    ("difference", "std", "n", "alpha", "class_error"),
    [
        (1.0, 1.0, 3, 0.05, None),
        (2.0, 1.0, 5, 0.05 / 9, None),
        (2.0, 1.0, 3, 0.05, 0.4),
        (2.5, 1.0, 5, 0.05 / 5, 0.7),
        (0.0, 1.0, 5, 0.05, 0.5),
    ],
)
def test_power_is_that_of_a_simulation_of_the_combined_rule(difference, std, n, alpha, class_error):
    """Differences by seed and class, drawn anew with their classes; the rule written out with arrays."""
    studies, count = 4000, 30
    rng = np.random.default_rng(n)
    classes = rng.normal(0, (class_error or 0.0) * np.sqrt(count), (studies, 1, count))
    d = difference + rng.normal(0, std, (studies, n, 1)) + classes  # (N, S, C)
    by_seed, by_class = d.mean(axis=2), d.mean(axis=1)
    mean, v_s = by_seed.mean(axis=1), by_seed.var(axis=1, ddof=1) / n
    rejected = 2 * stats.t.sf(np.abs(mean) / np.sqrt(v_s), n - 1) < alpha
    if class_error is not None:
        v_c = count / (count - 1) * ((by_class - mean[:, None]) ** 2).sum(axis=1) / count**2
        df = (v_s + v_c) ** 2 / (v_s**2 / (n - 1) + v_c**2 / (count - 1))
        rejected &= np.abs(mean) > stats.t.ppf(1 - alpha / 2, df) * np.sqrt(v_s + v_c)
    design = Design(std, n, alpha, class_error, count if class_error is not None else None)
    wanted = power(difference, design)
    assert rejected.mean() == pytest.approx(wanted, abs=3 * np.sqrt(wanted * (1 - wanted) / studies) + 0.002)


def test_the_smallest_difference_reaches_its_power():
    for design in (Design(1.0, 3), Design(0.5, 5, 0.01), Design(1.0, 4, 0.05, 0.4, 20)):
        least = smallest(design)
        assert power(least, design) == pytest.approx(0.8, abs=1e-3)
    assert smallest(Design(0.0, 3)) == 0
    for effect, n, alpha in [(0.5, 10, 0.05), (2.0, 4, 0.05), (1.0, 12, 0.001)]:  # without classes: noncentral t
        t, away = stats.t.ppf(1 - alpha / 2, n - 1), effect * np.sqrt(n)
        wanted = stats.nct.sf(t, n - 1, away) + stats.nct.cdf(-t, n - 1, away)
        assert power(effect, Design(1.0, n, alpha)) == pytest.approx(wanted, abs=4e-3)
