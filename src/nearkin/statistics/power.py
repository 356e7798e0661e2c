"""What a comparison could have shown: the power of the rule in verdict.py, and the smallest difference it would find.

A difference counts when the t test over seeds *and* that over seeds and classes reject at `alpha`.
Both bounds depend on the spreads that the study happens to show, s² over seeds and V_C over classes, which are scaled
chi-squared; the difference itself is normal and independent of them. The power is the mean over these spreads.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from nearkin.statistics.intervals import ALPHA, t_quantile

POWER = 0.8  # Cohen 1988: the usual chance to find a difference that is there


@dataclass(frozen=True)
class Design:
    """What is known of a comparison before its difference is.

    Parameters:
        std: the standard deviation of the differences over seeds.
        n: seeds, at least 2.
        alpha: the level of the test over seeds; one of m tests that must hold together: 0.05 / m.
        class_error: √V_C, the standard error from the choice of test classes; None: classes do not count.
        class_count: C.
        prior_df, prior_std: what the spread over seeds is moderated with (`verdict.moderate`).
    """

    std: float
    n: int
    alpha: float = ALPHA
    class_error: float | None = None
    class_count: int | None = None
    prior_df: float = 0.0
    prior_std: float = 0.0

    def bounds(self) -> NDArray[np.float64]:
        """How large a difference must be to count, for every spread that may come out."""
        s2 = self.std**2 * _chi_squared(self.n - 1, 200)  # (200,)
        df = self.prior_df + self.n - 1
        moderated = (self.prior_df * self.prior_std**2 + (self.n - 1) * s2) / df
        seeds = t_quantile(df, 1 - self.alpha) * np.sqrt(moderated / self.n)
        if self.class_error is None or self.class_count is None:
            return np.maximum(seeds, t_quantile(self.n - 1) * np.sqrt(s2 / self.n))  # the interval excludes 0
        v_s, df_c = (s2 / self.n)[:, None], self.class_count - 1
        v_c = self.class_error**2 * _chi_squared(df_c, 10)[None, :]  # (1, 10)
        total = v_s + v_c
        joint = total**2 / (v_s**2 / (self.n - 1) + v_c**2 / df_c)
        return np.maximum(seeds[:, None], _t_quantile(joint, self.alpha) * np.sqrt(total)).ravel()  # (2000,)

    @property
    def error(self) -> float:
        """The standard error of the difference, over studies with other seeds and other classes."""
        return math.sqrt(self.std**2 / self.n + (self.class_error or 0.0) ** 2)


def power(difference: float, design: Design) -> float:
    """The chance that a true difference is found, in either direction."""
    return _power(difference, design.bounds(), design.error)


def smallest(design: Design, chance: float = POWER) -> float:
    """The smallest true difference that is found with a chance of `chance`."""
    bounds, error = design.bounds(), design.error
    if error == 0:
        return 0.0
    low, high = 0.0, float(bounds.max()) + 10 * error
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _power(middle, bounds, error) >= chance else (middle, high)
    return high


def _power(difference: float, bounds: NDArray[np.float64], error: float) -> float:
    if error == 0:
        return float(difference != 0)
    away = difference / error
    return float((special.ndtr(away - bounds / error) + special.ndtr(-bounds / error - away)).mean())


def _chi_squared(df: int, points: int) -> NDArray[np.float64]:
    """Equally likely values of chi-squared / df.                                                           (points,)"""
    return 2 * special.gammaincinv(df / 2, (np.arange(points) + 0.5) / points) / df


def _t_quantile(df: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """The critical value of the two-sided test at `alpha`, for many degrees of freedom."""
    return special.stdtrit(df, 1 - alpha / 2)
