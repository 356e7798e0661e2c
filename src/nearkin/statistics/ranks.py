"""Ranks over experiments: the tournament of Psomas 2020, the Friedman test and critical differences (Demšar 2006).

Scores are (N, k): one row per experiment (a network and size, or a seed), one column per method.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nearkin.errors import NearkinError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Tournament:
    """Ranks 1 (best) to k in every experiment; of every method their total, average and sample standard deviation."""

    ranks: Floats                                                                                               # (N, k)
    total: Floats                                                                                               # (k,)
    average: Floats                                                                                             # (k,)
    std: Floats                                 # NaN with one experiment                                         (k,)


def tournament(scores: ArrayLike, *, higher_is_better: bool = True) -> Tournament:
    """Rank the methods in every experiment; equal scores share the mean of their ranks.

    Parameters:
        scores: one row per experiment, one column per method.                                                  (N, k)
        higher_is_better: is 1 the rank of the highest score?
    """
    found = _checked(scores)
    ranks = stats.rankdata(-found if higher_is_better else found, axis=1)                                      # (N, k)
    n = len(ranks)
    std = ranks.std(axis=0, ddof=1) if n > 1 else np.full(ranks.shape[1], np.nan)
    return Tournament(ranks, ranks.sum(axis=0), ranks.mean(axis=0), std)


@dataclass(frozen=True)
class Friedman:
    """Do the methods differ at all? The statistic, its p value, and the critical difference of average ranks."""

    statistic: float
    p: float
    critical_difference: float


def friedman(scores: ArrayLike, alpha: float = 0.05) -> Friedman:
    """The Friedman test with its correction for ties, and Nemenyi's critical difference q √(k(k+1) / 6N).

    Parameters:
        scores: one row per experiment, one column per method; at least 2 rows and 3 columns.                   (N, k)
        alpha: the level of the critical difference.
    """
    found = _checked(scores)
    n, k = found.shape
    if n < 2 or k < 3:
        raise NearkinError(f"{n} experiments of {k} methods: the Friedman test needs at least 2 of at least 3")
    q = float(stats.studentized_range.ppf(1 - alpha, k, np.inf)) / math.sqrt(2)
    difference = q * math.sqrt(k * (k + 1) / (6 * n))
    if (np.ptp(found, axis=1) == 0).all():                          # nothing but ties
        return Friedman(0.0, 1.0, difference)
    statistic, p = stats.friedmanchisquare(*found.T)
    return Friedman(float(statistic), float(p), difference)


def alike(average: ArrayLike, critical_difference: float) -> list[tuple[int, ...]]:
    """The largest groups of methods whose average ranks lie within the critical difference, best first: the bars of a
    critical-difference diagram. Groups of one are left out.

    Parameters:
        average: the average rank of every method.                                                              (k,)
        critical_difference: what average ranks must differ by.
    """
    found = np.asarray(average, dtype=float)
    order = np.argsort(found, kind="stable")
    groups: list[tuple[int, ...]] = []
    for i in range(len(order)):
        last = max(j for j in range(i, len(order)) if found[order[j]] - found[order[i]] <= critical_difference)
        group = tuple(int(x) for x in order[i : last + 1])
        if len(group) > 1 and not (groups and set(group) <= set(groups[-1])):
            groups.append(group)
    return groups


def _checked(scores: ArrayLike) -> Floats:
    found = np.asarray(scores, dtype=float)
    if found.ndim != 2 or found.size == 0:
        raise NearkinError(f"scores of shape {found.shape}: one row per experiment, one column per method are wanted")
    if not np.isfinite(found).all():
        raise NearkinError(f"scores must be finite: {int((~np.isfinite(found)).sum())} of {found.size} are not")
    return found
