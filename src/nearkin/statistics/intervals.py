"""Means with intervals. The unit is the seed: folds are averaged first, queries never count.

Arrays are float, (S, F): one row per seed, one column per fold; or (S,) once folds are averaged. NaN is refused.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nearkin.errors import NearkinError

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean, and the interval that covers the true one in 95 of 100 studies like this; of one seed there is none."""

    mean: float
    low: float | None
    high: float | None
    n: int                                      # seeds

    @property
    def half(self) -> float | None:
        """Half its width: mean ± half."""
        return None if self.high is None else self.high - self.mean


def over_folds(values: ArrayLike) -> NDArray[np.float64]:
    """The mean over folds of every seed.                                                      (S, F) -> (S,)

    Folds of one seed share its chance and are no independent repetitions: an interval over S·F values would be too
    narrow where the seed matters, and too wide where folds differ in difficulty.
    """
    found = _checked(values, 2)
    return found.mean(axis=1)                                                                                    # (S,)


def mean_interval(values: ArrayLike, level: float = LEVEL) -> Interval:
    """The mean of seeds with Student's t interval: mean ± t(S-1) · s / √S.

    Parameters:
        values: one value per seed, folds averaged.                                                             (S,)
        level: the share of studies whose interval covers the truth.
    """
    found = _checked(values, 1)
    mean, n = float(found.mean()), len(found)
    if n < 2:
        return Interval(mean, None, None, n)
    half = float(stats.t.ppf((1 + level) / 2, n - 1) * found.std(ddof=1) / np.sqrt(n))
    return Interval(mean, mean - half, mean + half, n)


def _checked(values: ArrayLike, axes: int) -> NDArray[np.float64]:
    found = np.asarray(values, dtype=float)
    if found.ndim != axes or found.size == 0:
        raise NearkinError(f"values of shape {found.shape}: {axes} axes are wanted, with at least one value")
    if not np.isfinite(found).all():
        raise NearkinError(f"values must be finite: {int((~np.isfinite(found)).sum())} of {found.size} are not")
    return found
