"""What the seeds of a study say for and against one comparison of a claim, and how several are read together.

The unit of a difference is the seed: a one-sided t test over the seeds (and folds) that all its rows have, on either
side of each bound that is claimed; where values by class are known, the interval over seeds and classes must exclude
the bound too. The unit of a correlation is the method: one point per method, and a permutation test over methods.

    all must hold       for: the largest p (intersection-union); against: the smallest, times their number (Bonferroni)
    one suffices        for: the smallest p, times their number; against: the largest
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from nearkin.evaluation.metrics.base import EPOCH, metric_of
from nearkin.statistics.intervals import ALPHA
from nearkin.statistics.paired import Difference, paired, resolution
from nearkin.statistics.unit import FEW, LEAST_SEEDS, ClassDifferences, Common, Nothing, Row, class_differences, common

Floats = NDArray[np.float64]
Bounds = tuple[float | None, float | None]


@dataclass(frozen=True)
class Evidence:
    """One comparison: what was measured, and how likely that is where the claim just fails, or just holds."""

    words: str  # what is compared
    claimed: str  # below 3
    mean: float | None = None
    low: float | None = None  # of its 95 % interval
    high: float | None = None
    n: int = 0  # seeds
    unit: str = "points"
    p_for: float = 1.0  # one-sided
    p_against: float = 1.0
    reason: str = ""  # why it could not be tested

    @property
    def leaves(self) -> list["Evidence"]:
        """Itself."""
        return [self]

    def telling(self, *, against: bool) -> "Evidence":
        """Itself."""
        return self

    def sentence(self) -> str:
        """What was compared, measured and claimed."""
        if self.reason or self.mean is None or self.low is None or self.high is None:
            return f"{self.words}: {self.reason}"
        form = "g" if self.unit == "ranks" else "+.2f"
        unit = f" {self.unit}" if self.unit else ""
        interval = f"{self.mean:{form}}{unit} ({self.low:{form}} to {self.high:{form}}) with {self.n} seeds"
        return f"{self.words}: {interval}; claimed {self.claimed}"


@dataclass(frozen=True)
class Joint:
    """Comparisons that are read together: all must hold, or one suffices."""

    parts: Sequence["Evidence | Joint"]
    one_suffices: bool = False

    @cached_property
    def leaves(self) -> list[Evidence]:
        """All comparisons in it."""
        return [leaf for part in self.parts for leaf in part.leaves]

    @cached_property
    def p_for(self) -> float:
        """That it holds."""
        return self._p([part.p_for for part in self.parts], of_one=self.one_suffices)

    @cached_property
    def p_against(self) -> float:
        """That it does not."""
        return self._p([part.p_against for part in self.parts], of_one=not self.one_suffices)

    def telling(self, *, against: bool) -> Evidence:
        """The comparison on which the verdict for, or against, depends."""
        pick = max if against == self.one_suffices else min
        return pick(self.parts, key=lambda part: part.p_against if against else part.p_for).telling(against=against)

    @staticmethod
    def _p(values: list[float], *, of_one: bool) -> float:
        return min(1.0, len(values) * min(values)) if of_one else max(values)


Parts = list[Evidence | Joint]


def incomplete(words: str) -> Parts:
    """A mean or a sum over experiments of which some are missing."""
    return [Evidence(words, "", reason="some of it is missing")]


def contrast(words: str, pairs: Sequence[tuple[Row, Row, float]], metric: str, bounds: Bounds) -> Evidence:
    """A weighted sum of differences of rows, on what all of them have in common, against the bounds that are claimed.

    Parameters:
        words: what is compared.
        pairs: first row, second row, weight.
        metric: of the values; a share is shown in per cent.
        bounds: in the unit that is shown.
    """
    rows = list({id(row): row for *pair, _ in pairs for row in pair}.values())
    shared = common(rows)
    if isinstance(shared, Nothing):
        return Evidence(words, claimed(bounds), reason=shared.reason)
    scale, unit = scale_of(metric)
    place = {id(row): i for i, row in enumerate(rows)}
    weights = np.zeros(len(rows))
    for first, second, weight in pairs:
        weights[place[id(first)]] += weight
        weights[place[id(second)]] -= weight
    queries = [row.queries for row in rows if row.queries]
    least = resolution(min(queries) if len(queries) == len(rows) else None) * math.sqrt((weights**2).sum() / 2)
    return weighed(
        words,
        scale * weights @ shared.values,
        bounds,
        unit,
        least_std=scale * least,
        classes=_classes(pairs, shared, scale),
    )


def level(words: str, row: Row, metric: str, bounds: Bounds) -> Evidence:
    """The value of one row, seed by seed, against the bounds that are claimed; epochs are whole numbers."""
    scale, unit = scale_of(metric)
    least = resolution(row.queries) if metric_of(metric).kind == "query" else 1 / math.sqrt(12)
    values = scale * np.array(list(row.values.values()))
    return weighed(words, values, bounds, "%" if unit == "points" else unit, least_std=scale * least)


def scale_of(metric: str) -> tuple[float, str]:
    """By what a value of a metric is multiplied where it is shown, and the unit of differences."""
    if metric.startswith(EPOCH):
        return 1.0, "epochs"
    return (100.0, "points") if metric_of(metric).is_share else (1.0, "")


def weighed(
    words: str, values: Floats, bounds: Bounds, unit: str, *, least_std: float, classes: ClassDifferences | None = None
) -> Evidence:
    """One number per seed against the bounds within which it is claimed to lie.                              (S,)"""
    if len(values) < LEAST_SEEDS:
        return Evidence(words, claimed(bounds), reason=few_seeds(len(values)))
    d = paired(values, np.zeros_like(values), least_std=least_std, classes=classes)
    low, high = bounds
    inside, outside = [], []
    if low is not None:
        inside.append(tail(d, low, 1))
        outside.append(tail(d, low, -1))
    if high is not None:
        inside.append(tail(d, high, -1))
        outside.append(tail(d, high, 1))
    p_against = min(1.0, len(outside) * min(outside))  # below one bound, or above the other
    return Evidence(words, claimed(bounds), d.mean, d.low, d.high, d.n, unit, max(inside), p_against)


def claimed(bounds: Bounds) -> str:
    """Bounds in words: 3 to 4, above 0, below 2."""
    low, high = bounds
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    return f"below {high:g}" if low is None else f"above {low:g}"


def tail(d: Difference, bound: float, sign: int) -> float:
    """The one-sided p value that the mean lies above a bound (sign 1), or below it (-1). An interval over seeds and
    classes that includes the bound leaves it open."""
    assert d.std is not None
    assert d.low is not None
    assert d.high is not None
    gap, error = sign * (d.mean - bound), d.std / math.sqrt(d.n)
    if abs(gap) < 1e-9:
        return 1.0
    p = float(special.stdtr(d.n - 1, -gap / error)) if error > 0 else float(gap < 0)
    excluded = d.low > bound if sign > 0 else d.high < bound
    return p if excluded else max(p, ALPHA)


def _classes(pairs: Sequence[tuple[Row, Row, float]], shared: Common, scale: float) -> ClassDifferences | None:
    """The weighted sum of differences by seed and class; None where they are not known for all pairs."""
    sums = []
    for first, second, weight in pairs:
        part = class_differences(first, second, shared)
        if part is None:
            return None
        sums.append((scale * weight * part.values, part.weights))
    alike = all(values.shape == sums[0][0].shape and np.array_equal(w, sums[0][1]) for values, w in sums)
    return ClassDifferences(np.sum([values for values, _ in sums], axis=0), sums[0][1]) if alike else None


def few_seeds(seeds: int) -> str:
    """Why so few seeds decide nothing."""
    return f"{'one common seed' if seeds == 1 else f'{seeds} common seeds'}, {FEW}"
