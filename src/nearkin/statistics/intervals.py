"""Means with intervals over seeds. Which values go in is decided in unit.py: the seed is the unit, queries never count.

Values are float, (S,): one per seed. NaN is refused.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nearkin.errors import NearkinError

LEVEL = 0.95
ALPHA = 0.05                # 1 - LEVEL, without its rounding

Bounds = tuple[float | None, float | None]
UNBOUNDED: Bounds = (None, None)


@dataclass(frozen=True)
class Interval:
    """A mean, and the interval that covers the true one in 95 of 100 studies like this; of one seed there is none.

    An interval of a metric that cannot leave its range is cut at the end of the range, and `cut` says so: what is left
    covers the truth as often as the whole.
    """

    mean: float
    low: float | None
    high: float | None
    n: int                                      # seeds
    cut: bool = False

    @property
    def half(self) -> float | None:
        """Half its width before it was cut: mean ± half."""
        return None if self.high is None or self.low is None else max(self.high - self.mean, self.mean - self.low)


def mean_interval(values: ArrayLike, level: float = LEVEL, bounds: Bounds = UNBOUNDED) -> Interval:
    """The mean of seeds with Student's t interval: mean ± t(S-1) · s / √S.

    Parameters:
        values: one value per seed, folds averaged.                                                             (S,)
        level: the share of studies whose interval covers the truth.
        bounds: the range of the metric, at whose ends the interval is cut.
    """
    numbers = checked(values)
    mean, n = float(numbers.mean()), len(numbers)
    if n < 2:
        return Interval(mean, None, None, n)
    half = float(stats.t.ppf((1 + level) / 2, n - 1) * numbers.std(ddof=1) / np.sqrt(n))
    return Interval(mean, *cut(mean - half, mean + half, bounds), n=n, cut=leaves(mean - half, mean + half, bounds))


def cut(low: float, high: float, bounds: Bounds) -> tuple[float, float]:
    """The part of an interval that lies within the range of the metric."""
    least, most = bounds
    return low if least is None else max(low, least), high if most is None else min(high, most)


def leaves(low: float, high: float, bounds: Bounds) -> bool:
    """Does an interval leave the range of the metric?"""
    return cut(low, high, bounds) != (low, high)


def checked(values: ArrayLike) -> NDArray[np.float64]:
    """The values as an array (S,); a NearkinError where they are none, or not finite."""
    numbers = np.asarray(values, dtype=float)
    if numbers.ndim != 1 or numbers.size == 0:
        raise NearkinError(f"values of shape {numbers.shape}: one value per seed is wanted, and at least one")
    if not np.isfinite(numbers).all():
        raise NearkinError(f"values must be finite: {int((~np.isfinite(numbers)).sum())} of {numbers.size} are not")
    return numbers
