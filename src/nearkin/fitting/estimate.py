"""The worth of training on classes that it has never seen: class by class, every class once.

Each class c is tested in one fold, by a model that never saw it; v_c is the mean over its queries, w_c its share of all
queries, C the number of classes. Other classes could have come, so the interval is over classes:

    v = Σ_c w_c v_c        v ± t(C - 1) √V_C        V_C = C/(C-1) Σ_c w_c² (v_c - v)²

The same holds for the differences of two networks on the same classes. With one training per fold it says nothing of
how another training would end: it is a statement "for this training".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearkin.runs.store import Run
from nearkin.runs.tested import values_per_query
from nearkin.statistics.intervals import LEVEL, t_quantile
from nearkin.statistics.paired import class_variance
from nearkin.statistics.unit import ByClass, ClassDifferences, by_class

METRICS = ("recall@1", "map_at_r")


@dataclass(frozen=True)
class Over:
    """A mean over classes, and its interval; there is none with one class, nor where all classes are equal: they say
    nothing of how others may differ."""

    mean: float
    low: float | None
    high: float | None
    classes: int


def over_classes(values: NDArray[np.float64], weights: NDArray[np.float64], *, share: bool = False) -> Over:
    """The mean of the values of classes (C,) with their weights (C,), which sum to 1. The interval of a share ends at 0
    and 1."""
    mean, count = float(weights @ values), len(values)
    if count < 2 or np.ptp(values) < 1e-12:
        return Over(mean, None, None, count)
    half = t_quantile(count - 1, LEVEL) * math.sqrt(class_variance(ClassDifferences(values[None], weights)))
    low, high = mean - half, mean + half
    return Over(mean, max(low, 0.0) if share else low, min(high, 1.0) if share else high, count)


def tested(runs: Sequence[Run], metric: str) -> ByClass | None:
    """The values by class of one run per fold, all folds together; None where no query has a value."""
    sides = [by_class(*values) for run in runs if (values := values_per_query(run, metric)) is not None]
    parts = [side for side in sides if side is not None]
    if not parts:
        return None
    classes = tuple(name for side in parts for name in side.classes)
    means, queries = (np.concatenate([getattr(side, what) for side in parts]) for what in ("means", "queries"))
    return ByClass(classes, means, queries)


def worth(side: ByClass) -> Over:
    """The mean over all classes, with its interval."""
    return over_classes(side.means, side.queries / side.queries.sum(), share=True)


def gain(trained: ByClass, untrained: ByClass) -> Over:
    """What training gained on the same classes; negative: it lost."""
    return over_classes(trained.means - untrained.means, untrained.queries / untrained.queries.sum())


def helps(precise: Over, first: Over) -> bool:
    """Is the gained MAP@R surely above 0, and that of Recall@1 not surely below?"""
    high = first.mean if first.high is None else first.high
    return precise.low is not None and precise.low > 0 and high >= 0
