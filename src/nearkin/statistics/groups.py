"""Two kinds of methods against each other, as ranking against classification losses."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from nearkin.statistics.paired import Difference, paired
from nearkin.statistics.unit import Nothing, Row, common


@dataclass(frozen=True)
class Groups:
    """The difference of two groups' means on the seeds, settings and folds that all rows have. Its interval is about
    these methods under other seeds; whether other methods of the two kinds would differ too is what the Mann-Whitney
    test over methods asks."""

    difference: Difference  # first - second, over seeds
    p_methods: float  # Mann-Whitney over the means of the methods
    sizes: tuple[int, int]


def groups(first: Sequence[Row], second: Sequence[Row]) -> Groups | Nothing:
    """Compare two groups of rows; `Nothing` where they have no seed, setting and fold in common.

    Parameters:
        first, second: at least one row each.
    """
    shared = common([*first, *second])
    if isinstance(shared, Nothing):
        return shared
    a, b = np.split(shared.values, [len(first)])  # (k, S), (k', S)
    test = stats.mannwhitneyu(a.mean(axis=1), b.mean(axis=1), alternative="two-sided")
    return Groups(paired(a.mean(axis=0), b.mean(axis=0)), float(test.pvalue), (len(a), len(b)))
