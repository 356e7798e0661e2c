"""Two kinds of methods against each other, as ranking against classification losses."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from nearkin.errors import NearkinError
from nearkin.statistics.intervals import LEVEL
from nearkin.statistics.paired import Difference, paired


@dataclass(frozen=True)
class Groups:
    """The difference of two groups' means. Its interval is about these methods under other seeds; whether other methods
    of the two kinds would differ too is what the Mann-Whitney test over methods asks."""

    difference: Difference                      # first - second, over seeds
    p_methods: float                            # Mann-Whitney over the means of the methods
    sizes: tuple[int, int]


def groups(first: ArrayLike, second: ArrayLike, level: float = LEVEL) -> Groups:
    """Compare two groups of methods that were run with the same seeds.

    Parameters:
        first, second: one row per method, one column per seed.                                       (k, S), (k', S)
        level: the level of the interval.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or not len(a) or not len(b):
        raise NearkinError(f"groups of shape {a.shape} and {b.shape}: methods times the same seeds are wanted")
    test = stats.mannwhitneyu(a.mean(axis=1), b.mean(axis=1), alternative="two-sided")
    return Groups(paired(a.mean(axis=0), b.mean(axis=0), level), float(test.pvalue), (len(a), len(b)))
