"""Two rows on the same seeds: the difference, its interval, and its test.

The same seed draws the same first weights of the head, the same batches and the same validation classes, so differences
are taken seed by seed.

Two things could have come out otherwise: another training (seeds) and other test classes. With d[s, c] the difference
of seed s in class c, w_c the share of the queries that class c has, and d = Σ_c w_c mean_s d[s, c]:

    V_S = var_s(Σ_c w_c d[s, c]) / S            V_C = C/(C-1) Σ_c w_c² (d_c - d)²
    d ± t(df) √(V_S + V_C)                      df = (V_S + V_C)² / (V_S²/(S-1) + V_C²/(C-1))     (Satterthwaite 1946)

Metrics that are no mean over queries (NMI, F1, ρ) have no values by class: V_C is left out, and the words say so.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearkin.errors import NearkinError
from nearkin.statistics.intervals import LEVEL, checked, t_quantile, t_test
from nearkin.statistics.unit import ClassDifferences


@dataclass(frozen=True)
class Difference:
    """The mean of a - b over common seeds, its interval over seeds and classes, and the p value of the paired test."""

    mean: float
    low: float | None  # of the interval over seeds and, where they are known, classes
    high: float | None
    p: float | None  # of the paired t test over seeds; None with one seed
    n: int  # seeds
    std: float | None = None  # of the differences, over seeds
    seeds: float | None = None  # half the width of the interval over seeds alone
    classes: float | None = None  # half the width of the interval over classes alone; None: not known
    class_error: float | None = None  # √V_C
    class_count: int | None = None  # C

    @property
    def excludes_zero(self) -> bool:
        """Does its interval exclude 0?"""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def resolution(queries: int | None) -> float:
    """The least standard deviation of a difference that a number of queries can show: √(1/6) / Q, that of two values
    that are each rounded to a multiple of 1/Q."""
    return math.sqrt(1 / 6) / queries if queries else 0.0


def paired(
    a: ArrayLike, b: ArrayLike, level: float = LEVEL, *, least_std: float = 0.0, classes: ClassDifferences | None = None
) -> Difference:
    """a - b, seed by seed, with the interval of the mean difference and the two-sided paired t test over seeds.

    Differences that are all equal, where no least spread is known, have none: p is 1 where they are 0, else 0.

    Parameters:
        a, b: one value per seed, the same seeds in the same order.                                             (S,)
        level: the level of the interval.
        least_std: the standard deviation over seeds is never taken below it (`resolution`).
        classes: the same differences by seed and class; None: the interval is over seeds alone.
    """
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if first.shape != second.shape:
        raise NearkinError(f"{first.shape} values against {second.shape}: a paired difference needs the same seeds")
    d = checked(first - second)
    mean, n = float(d.mean()), len(d)
    if n < 2:
        return Difference(mean, None, None, None, n)
    std = float(d.std(ddof=1))
    if std <= 1e-12 * max(1.0, float(np.abs(d).max())):  # rounding of equal differences is no spread
        std = 0.0
    std = max(std, least_std)
    quantile = t_quantile(n - 1, level)
    v_seeds = std**2 / n
    half, by_classes, v_classes, count = quantile * math.sqrt(v_seeds), None, None, None
    if classes is not None:
        v_classes, count = class_variance(classes), classes.values.shape[1]
        by_classes = t_quantile(count - 1, level) * math.sqrt(v_classes)
        half = joint_half(v_seeds, n, v_classes, count, level)
    error = math.sqrt(v_seeds)
    p = t_test(mean / error, n - 1) if error > 0 else 1.0 if abs(mean) < 1e-12 else 0.0
    return Difference(
        mean,
        mean - half,
        mean + half,
        p,
        n,
        std,
        quantile * error,
        by_classes,
        None if v_classes is None else math.sqrt(v_classes),
        count,
    )


def class_variance(classes: ClassDifferences) -> float:
    """V_C: how much the difference would vary with other test classes."""
    d, w = classes.values.mean(axis=0), classes.weights  # (C,)
    count = len(w)
    return float(count / (count - 1) * (w**2 * (d - w @ d) ** 2).sum())


def joint(v_seeds: float, n: int, v_classes: float, count: int) -> tuple[float, float]:
    """The variance of a difference over seeds and classes, and its degrees of freedom."""
    total = v_seeds + v_classes
    return total, total**2 / (v_seeds**2 / (n - 1) + v_classes**2 / (count - 1)) if total > 0 else 1.0


def joint_half(v_seeds: float, n: int, v_classes: float, count: int, level: float = LEVEL) -> float:
    """Half the width of the interval over seeds and classes."""
    total, df = joint(v_seeds, n, v_classes, count)
    return t_quantile(df, level) * math.sqrt(total)


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Holm's correction (1979): p values after which "below 0.05" errs anywhere in m tests in at most 5 % of studies.

    The smallest is multiplied by m, the next by m - 1, ...; none may fall below one before it, none rises above 1.
                                                                                                        (m,) -> (m,)
    """
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * (len(values) - np.arange(len(values)))
    out = np.empty_like(values)
    out[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return out


def probability_of_improvement(a: ArrayLike, b: ArrayLike) -> float:
    """The chance that a run of `a` is above a run of `b`: the share of pairs, ties count half (Agarwal et al. 2021).

    Parameters:
        a, b: one value per seed; the seeds need not be the same.                                       (S,), (S',)
    """
    x, y = np.asarray(a, dtype=float)[:, None], np.asarray(b, dtype=float)[None, :]
    return float(((x > y) + 0.5 * (x == y)).mean())
