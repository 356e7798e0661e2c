"""Do two numbers go together over methods? Spearman's rank correlation, tested by permutation.

The unit is the method: each has one value on either side, its mean over seeds. Seeds of one method are no further
methods, however many there are.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nearkin.errors import NearkinError
from nearkin.statistics.intervals import ALPHA

EXACT = 8  # with at most this many methods all orders are tried
DRAWN = 20_000  # orders that are drawn for more methods: p is exact to 0.0005 at 0.005


@dataclass(frozen=True)
class Correlation:
    """Spearman's correlation over methods and the two-sided p value of its permutation test."""

    value: float
    p: float
    n: int  # methods


def rank_correlation(x: ArrayLike, y: ArrayLike) -> Correlation | None:
    """Correlate the ranks of two values of every method; None where one side is the same for all of them.

    Parameters:
        x, y: one value per method, at least two.                                                             (M,), (M,)
    """
    first, second = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if first.shape != second.shape or first.ndim != 1 or len(first) < 2:
        raise NearkinError(
            f"values of shapes {first.shape} and {second.shape}: must be equal, with one value per method, at least two"
        )
    if not np.isfinite([first, second]).all():
        raise NearkinError(f"values must be finite: {int((~np.isfinite([first, second])).sum())} are not")
    a, b = (stats.rankdata(side) - (len(first) + 1) / 2 for side in (first, second))  # (M,)
    if not a.any() or not b.any():
        return None
    reached = np.abs(b[_orders(len(a))] @ a) >= abs(float(a @ b)) - 1e-9  # (P,)
    p = reached.mean() if len(a) <= EXACT else (1 + reached.sum()) / (1 + len(reached))
    return Correlation(float(a @ b / np.sqrt(a @ a * (b @ b))), float(p), len(a))


def least_methods(tests: int) -> int:
    """The least number of methods that can reject one of so many tests: of M! orders the two most extreme have a share
    of 2/M!, which Holm's correction multiplies by the number of tests."""
    methods = 2
    while 2 * tests / math.factorial(methods) >= ALPHA:
        methods += 1
    return methods


@lru_cache
def _orders(n: int) -> NDArray[np.int64]:
    """Orders of n items: all of them, or a random sample.                                                    (P, n)"""
    if n <= EXACT:
        return np.array(list(permutations(range(n))))
    return np.random.default_rng(0).permuted(np.tile(np.arange(n), (DRAWN, 1)), axis=1)
