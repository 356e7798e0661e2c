"""Ranks over experiments: the tournament of Psomas 2020, and critical differences (Demšar 2006) by permutation.

Scores are (N, k): one row per experiment (a network and size, or a seed), one column per method.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nearkin.errors import NearkinError

Floats = NDArray[np.float64]
PERMUTATIONS, BLOCK = 2000, 250  # p is exact to 0.005 at 0.05


@dataclass(frozen=True)
class Tournament:
    """Ranks 1 (best) to k in every experiment; of every method their total, average and sample standard deviation."""

    ranks: Floats  # (N, k)
    total: Floats  # (k,)
    average: Floats  # (k,)
    std: Floats  # NaN with one experiment                                         (k,)


def tournament(scores: ArrayLike, *, higher_is_better: bool = True) -> Tournament:
    """Rank the methods in every experiment; equal scores share the mean of their ranks.

    Parameters:
        scores: one row per experiment, one column per method.                                                  (N, k)
        higher_is_better: is 1 the rank of the highest score?
    """
    values = _checked(scores)
    ranks = stats.rankdata(-values if higher_is_better else values, axis=1)  # (N, k)
    n = len(ranks)
    std = ranks.std(axis=0, ddof=1) if n > 1 else np.full(ranks.shape[1], np.nan)
    return Tournament(ranks, ranks.sum(axis=0), ranks.mean(axis=0), std)


@dataclass(frozen=True)
class RankTest:
    """Do the methods differ at all? The range of their average ranks, its p value, and the critical difference: what
    two average ranks must differ by, whichever two are picked. Infinite where there are too few seeds to distinguish
    any two."""

    statistic: float
    p: float
    critical_difference: float


def permuted_ranks(values: ArrayLike, *, higher_is_better: bool = True, alpha: float = 0.05) -> RankTest:
    """A permutation test of average ranks whose unit is the seed.

    If no method is better, the labels of the methods are arbitrary within every seed. They are permuted
    seed by seed, *in all settings of a seed together*, because a method's luck with a seed may be the same in all of
    them: the Friedman test over settings takes each for an independent experiment and rejects 13 to 73 % of true nulls.
    The statistic is the largest less the smallest average rank, and its quantile is the critical difference of all
    pairs, as Nemenyi's is for the Friedman test.

    Parameters:
        values: by method, seed and setting. With one setting every seed is an experiment; with several an experiment is
            a setting with its mean over seeds.                                                              (k, S, N)
        higher_is_better: is 1 the rank of the highest value?
        alpha: the level of the critical difference.
    """
    y = np.asarray(values, dtype=float) * (-1 if higher_is_better else 1)  # (k, S, N)
    if y.ndim != 3 or y.size == 0 or not np.isfinite(y).all():
        raise NearkinError(f"values of shape {y.shape}: must be finite and have three axes: method, seed and setting")
    k, seeds, _ = y.shape
    rng = np.random.default_rng(0)
    observed = _range(y[None])[0]
    drawn = []
    for _ in range(PERMUTATIONS // BLOCK):
        order = rng.permuted(np.tile(np.arange(k), (BLOCK, seeds, 1)), axis=2)  # (P, S, k)
        drawn.append(_range(np.take_along_axis(np.moveaxis(y, 0, 1)[None], order[..., None], axis=2).swapaxes(1, 2)))
    ranges = np.concatenate([*drawn, [observed]])  # the order that came out is one of them
    reached = np.unique(ranges)
    shares = np.array([(ranges >= value - 1e-9).mean() for value in reached])
    enough = reached[shares <= alpha]
    return RankTest(
        float(observed), float((ranges >= observed - 1e-9).mean()), float(enough.min()) if len(enough) else math.inf
    )


def experiments_of(values: Floats) -> Floats:
    """The scores of the experiments: each seed with one setting, else each setting with its mean over seeds.
    (..., k, S, N) -> (..., k, E)"""
    return values[..., 0] if values.shape[-1] == 1 else values.mean(axis=-2)


def _range(values: Floats) -> Floats:
    """The largest less the smallest average rank.                                              (P, k, S, N) -> (P,)"""
    average = stats.rankdata(experiments_of(values), axis=1).mean(axis=2)  # (P, k)
    return average.max(axis=1) - average.min(axis=1)


def alike(average: ArrayLike, critical_difference: float) -> list[tuple[int, ...]]:
    """The largest groups of methods whose average ranks are closer than the critical difference, best first: the bars
    of a critical-difference diagram. Groups of one are left out.

    Parameters:
        average: the average rank of every method.                                                              (k,)
        critical_difference: what average ranks must differ by.
    """
    ranks = np.asarray(average, dtype=float)
    order = np.argsort(ranks, kind="stable")
    groups: list[tuple[int, ...]] = []
    for i in range(len(order)):
        last = max(j for j in range(i, len(order)) if ranks[order[j]] - ranks[order[i]] < critical_difference - 1e-9)
        group = tuple(int(x) for x in order[i : last + 1])
        if len(group) > 1 and not (groups and set(group) <= set(groups[-1])):
            groups.append(group)
    return groups


def _checked(scores: ArrayLike) -> Floats:
    values = np.asarray(scores, dtype=float)
    if values.ndim != 2 or values.size == 0:
        raise NearkinError(
            f"scores of shape {values.shape}: must have one row per experiment and one column per method"
        )
    if not np.isfinite(values).all():
        raise NearkinError(f"scores must be finite: {int((~np.isfinite(values)).sum())} of {values.size} are not")
    return values
