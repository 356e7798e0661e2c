"""The worth of training over classes: against a loop, and its interval against simulated folders."""

import numpy as np
import pytest
from scipy import stats

from nearkin.fitting.estimate import gain, over_classes, worth
from nearkin.statistics.unit import ByClass


def side(means, queries):
    return ByClass(tuple(map(str, range(len(means)))), np.asarray(means, float), np.asarray(queries))


def test_it_is_the_formula_of_its_page():
    before, after, queries = [0.2, 0.5, 0.4], [0.3, 0.9, 0.3], [2, 4, 6]
    found = gain(side(after, queries), side(before, queries))
    weights = [q / 12 for q in queries]
    d = [a - b for a, b in zip(after, before, strict=True)]
    mean = sum(w * x for w, x in zip(weights, d, strict=True))
    variance = 3 / 2 * sum(w**2 * (x - mean) ** 2 for w, x in zip(weights, d, strict=True))
    half = stats.t.ppf(0.975, 2) * variance**0.5
    assert found.mean == pytest.approx(mean)
    assert (found.low, found.high) == (pytest.approx(mean - half), pytest.approx(mean + half))


def test_a_share_stays_one_and_one_class_or_equal_ones_have_no_interval():
    shown = worth(side([1.0, 1.0, 0.1], [5, 5, 5]))
    assert shown.low >= 0
    assert shown.high == 1
    assert over_classes(np.array([0.5]), np.array([1.0])).low is None
    assert vars(worth(side([1.0, 1.0, 1.0], [5, 6, 7]))) == {"mean": 1.0, "low": None, "high": None, "classes": 3}


@pytest.mark.parametrize("classes", [6, 12, 40])
def test_its_interval_covers_the_gain_on_further_classes(classes):
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        queries = rng.integers(5, 60, classes)
        d = rng.normal(0.03, 0.08, classes)  # by class; the gain over all classes that could come is 0.03
        over = over_classes(d, queries / queries.sum())
        covered += over.low <= 0.03 <= over.high
    assert 0.92 <= covered / 1000 <= 0.975
