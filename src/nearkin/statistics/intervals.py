"""Means with intervals over seeds. Which values go in is decided in unit.py: the seed is the unit, queries never count.

Values are float, (S,): one per seed. NaN is refused.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from nearkin.errors import NearkinError
from nearkin.statistics.unit import by_class

LEVEL = 0.95
ALPHA = 0.05  # 1 - LEVEL, without its rounding

Bounds = tuple[float | None, float | None]
UNBOUNDED: Bounds = (None, None)


@dataclass(frozen=True)
class Interval:
    """A mean, and the interval that covers the true one in 95 of 100 studies like this; there is none with one seed.

    An interval of a metric that cannot leave its range is cut at the end of the range, and `cut` says so: what is left
    covers the truth as often as the whole.
    """

    mean: float
    low: float | None
    high: float | None
    n: int  # seeds, or classes
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
    half = t_quantile(n - 1, level) * float(numbers.std(ddof=1)) / np.sqrt(n)
    return Interval(mean, *cut(mean - half, mean + half, bounds), n=n, cut=leaves(mean - half, mean + half, bounds))


def t_quantile(df: float, level: float = LEVEL) -> float:
    """The bound that the absolute value of a t distributed number stays below with a chance of `level`;
    scipy.stats.t.ppf gives the same and takes fifty times as long."""
    return float(special.stdtrit(df, (1 + level) / 2))


def t_test(t: float, df: float) -> float:
    """The two-sided p value of a t distributed number."""
    return float(2 * special.stdtr(df, -abs(t)))


def class_interval(values: ArrayLike, classes: ArrayLike, level: float = LEVEL) -> Interval:
    """The mean over images with the interval that images of other classes would give, for these models only. Images of
    one class are one unit: with m_c their mean in class c and w_c the share of the images that class c has,

        mean ± t(C-1) √V_C,     V_C = C/(C-1) Σ_c w_c² (m_c - mean)²

    Parameters:
        values: one value per image.                                                                            (N,)
        classes: the class of each image.                                                                       (N,)
        level: the share of samples of classes whose interval covers the truth.
    """
    grouped = by_class(classes, checked(values))
    assert grouped is not None  # all values are finite
    shares, count = grouped.queries / grouped.queries.sum(), len(grouped.classes)
    mean = float(shares @ grouped.means)
    if count < 2:
        return Interval(mean, None, None, count)
    variance = count / (count - 1) * float((shares**2 * (grouped.means - mean) ** 2).sum())
    half = t_quantile(count - 1, level) * float(np.sqrt(variance))
    return Interval(mean, mean - half, mean + half, count)


def cut(low: float, high: float, bounds: Bounds) -> tuple[float, float]:
    """The part of an interval that lies within the range of the metric."""
    least, most = bounds
    return low if least is None else max(low, least), high if most is None else min(high, most)


def leaves(low: float, high: float, bounds: Bounds) -> bool:
    """Does an interval leave the range of the metric?"""
    return cut(low, high, bounds) != (low, high)


def checked(values: ArrayLike) -> NDArray[np.float64]:
    """The values as an array (S,); a NearkinError if there are none, or some are not finite."""
    numbers = np.asarray(values, dtype=float)
    if numbers.ndim != 1 or numbers.size == 0:
        raise NearkinError(f"values of shape {numbers.shape}: must be one value per seed, at least one")
    if not np.isfinite(numbers).all():
        raise NearkinError(f"values must be finite: {int((~np.isfinite(numbers)).sum())} of {numbers.size} are not")
    return numbers
