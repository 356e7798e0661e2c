"""Choosing by one score what another judges, against loops."""

import numpy as np
import pytest
from scipy import stats

from nearkin.errors import NearkinError
from nearkin.statistics.choosing import correlation_interval, rank_agreement, regret, resampled_means


@pytest.fixture
def random():
    return np.random.default_rng(0)


def test_rank_agreement_is_spearmans_with_ties(random):
    score, truth = random.integers(0, 5, (6, 9)), random.normal(size=(6, 9))
    expected = [stats.spearmanr(a, b).statistic for a, b in zip(score, truth, strict=True)]
    assert np.allclose(rank_agreement(score, truth), expected)
    assert np.isnan(rank_agreement([1, 1, 1], [1, 2, 3]))


def test_regret_is_what_the_choice_loses(random):
    score, truth = random.integers(0, 4, (20, 7)), random.normal(size=(20, 7))
    for row, (a, b) in enumerate(zip(score, truth, strict=True)):
        best = [value for mark, value in zip(a, b, strict=True) if mark == max(a)]
        assert regret(score, truth)[row] == pytest.approx(max(b) - sum(best) / len(best))
    assert regret(truth, truth) == pytest.approx(0)


def test_resampled_means_are_those_of_the_queries(random):
    queries = [3, 1, 2]
    values = [[random.normal(size=n) for n in queries] for _ in range(4)]  # of each thing, class by class
    means = [[group.mean() for group in groups] for groups in values]
    drawn = resampled_means(means, queries, [[1, 1, 1], [2, 0, 1]])
    for thing, (first, second, third) in enumerate(values):
        assert drawn[0, thing] == pytest.approx(np.concatenate([first, second, third]).mean())
        assert drawn[1, thing] == pytest.approx(np.concatenate([first, first, third]).mean())


def test_the_interval_holds_its_value_and_widens_with_the_resamples(random):
    drawn = np.tanh(random.normal(0.5, 0.2, 5000))
    low, high = correlation_interval(0.9, drawn)
    assert (np.arctanh(low), np.arctanh(high)) == pytest.approx(
        (np.arctanh(0.9) - 1.96 * 0.2, np.arctanh(0.9) + 1.96 * 0.2), abs=0.02
    )
    assert -1 < low < 0.9 < high < 1


def test_values_that_do_not_fit_are_refused():
    with pytest.raises(NearkinError, match="shapes"):
        rank_agreement([1, 2], [1, 2, 3])
    with pytest.raises(NearkinError, match="finite"):
        regret([1, np.nan], [1, 2])
