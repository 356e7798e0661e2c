"""Two methods on the same seeds: the difference, its interval, and how many seeds would decide it.

The same seed draws the same first weights of the head, the same batches and the same validation classes, so differences
are taken seed by seed.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nearkin.errors import NearkinError
from nearkin.statistics.intervals import LEVEL, mean_interval

POWER = 0.8                 # Cohen 1988: the usual chance to find a difference that is there
MOST_SEEDS = 1000           # beyond that nobody will run them


@dataclass(frozen=True)
class Difference:
    """The mean of a - b over common seeds, its interval, and the p value of the paired t test."""

    mean: float
    low: float | None
    high: float | None
    p: float | None                             # None with one seed
    n: int
    std: float | None = None                    # of the differences, over seeds


def paired(a: ArrayLike, b: ArrayLike, level: float = LEVEL) -> Difference:
    """a - b, seed by seed, with the t interval of the mean difference and the two-sided paired t test.

    Differences that are all equal have no spread: p is 1 where they are 0, else 0.

    Parameters:
        a, b: one value per seed, the same seeds in the same order.                                             (S,)
        level: the level of the interval.
    """
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if first.shape != second.shape:
        raise NearkinError(f"{first.shape} values against {second.shape}: a paired difference needs the same seeds")
    d = first - second
    found = mean_interval(d, level)
    if found.n < 2:
        return Difference(found.mean, None, None, None, found.n)
    std = float(d.std(ddof=1))
    if std <= 1e-12 * max(1.0, float(np.abs(d).max())):             # rounding of equal differences is no spread
        return Difference(found.mean, found.mean, found.mean, 1.0 if abs(found.mean) < 1e-12 else 0.0, found.n, 0.0)
    t = found.mean / (std / math.sqrt(found.n))
    return Difference(found.mean, found.low, found.high, float(2 * stats.t.sf(abs(t), found.n - 1)), found.n, std)


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Holm's correction (1979): p values after which "below 0.05" errs anywhere in m tests in at most 5 % of studies.

    The smallest is multiplied by m, the next by m - 1, ...; none may fall below one before it, none rises above 1.
                                                                                                        (m,) -> (m,)
    """
    found = np.asarray(p, dtype=float)
    order = np.argsort(found, kind="stable")
    scaled = found[order] * (len(found) - np.arange(len(found)))
    out = np.empty_like(found)
    out[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return out


def probability_of_improvement(a: ArrayLike, b: ArrayLike) -> float:
    """The chance that a run of `a` is above a run of `b`: the share of pairs, ties count half (Agarwal et al. 2021).

    Parameters:
        a, b: one value per seed; the seeds need not be the same.                                       (S,), (S',)
    """
    x, y = np.asarray(a, dtype=float)[:, None], np.asarray(b, dtype=float)[None, :]
    return float(((x > y) + 0.5 * (x == y)).mean())


def power(effect: float, n: int, alpha: float = 1 - LEVEL) -> float:
    """The chance that a paired t test of n seeds finds a difference of `effect` standard deviations of the differences.

    It is the mean, over the spreads s that n seeds may show, of the chance that |difference| exceeds t·s; scipy's
    noncentral t gives NaN far from 0.
    """
    middles = (np.arange(2000) + 0.5) / 2000
    s = np.sqrt(stats.chi2.ppf(middles, n - 1) / (n - 1))                                                   # (2000,)
    bound, away = stats.t.ppf(1 - alpha / 2, n - 1) * s, effect * math.sqrt(n)
    return float((stats.norm.sf(bound - away) + stats.norm.cdf(-bound - away)).mean())


def seeds_needed(mean: float, std: float, alpha: float = 1 - LEVEL, wanted: float = POWER) -> int | None:
    """The least number of seeds with which a paired t test finds such a difference with a chance of 80 %.

    It takes the difference and its spread for true; from a few seeds both are rough, and so is the number.

    Parameters:
        mean: the difference.
        std: the standard deviation of the differences over seeds.
        alpha: the level of the test; one of m tests that must hold together: 0.05 / m.
        wanted: the chance to find it.

    Returns:
        None: more than 1,000.
    """
    if std == 0:
        return 2 if mean != 0 else None
    effect = abs(mean) / std
    if power(effect, MOST_SEEDS, alpha) < wanted:
        return None
    low, high = 1, MOST_SEEDS                                       # power grows with n: halve the range
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(effect, middle, alpha) >= wanted else (middle, high)
    return high
