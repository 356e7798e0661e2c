"""What may be said of two rows: distinguishable, equivalent, undecided, or nothing.

    distinguishable     the t test over seeds rejects after Holm's correction over the family, and the interval over
                        seeds and classes excludes 0
    equivalent          else, and the whole interval lies within ±x
    undecided           else
    none                fewer than three common seeds: no verdict

The winner is the sign of the difference that is printed. Spreads are not moderated over the family (Smyth 2004): rows
differ in spread, and with one noisy row in twelve that gives 18 % false verdicts at three seeds instead of 5 %
(tests/statistics/test_moderation.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from nearkin.statistics.intervals import ALPHA
from nearkin.statistics.paired import Difference, holm, paired, probability_of_improvement, resolution
from nearkin.statistics.power import Design, smallest
from nearkin.statistics.unit import LEAST_SEEDS, Common, Nothing, Row, class_differences, common


class Outcome(StrEnum):
    """What may be said of a difference."""

    DISTINGUISHABLE = "distinguishable"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"
    NONE = "none"


@dataclass(frozen=True)
class Pair:
    """Two rows on what they have in common, and what may be said of them. Everything comes from `shared`."""

    first: Row
    second: Row
    shared: Common | Nothing
    difference: Difference | None               # first - second; None without anything in common
    p: float | None                             # after Holm's correction over the family; None below three seeds
    family: int                                 # tests that are corrected together
    sign: int = 1                               # of the metric: 1 high is better, -1 low is better, 0 neither
    within: float | None = None                 # x: what is small enough to be called equivalent

    @property
    def outcome(self) -> Outcome:
        """What may be said."""
        d = self.difference
        if d is None or self.p is None or d.low is None or d.high is None:
            return Outcome.NONE
        if self.p < ALPHA and d.excludes_zero:
            return Outcome.DISTINGUISHABLE
        return Outcome.EQUIVALENT if self.is_small else Outcome.UNDECIDED

    @property
    def is_small(self) -> bool:
        """Does the whole interval lie within ±x?"""
        d = self.difference
        if self.within is None or d is None or d.low is None or d.high is None:
            return False
        return -self.within < d.low and d.high < self.within

    @property
    def decided(self) -> bool:
        """Can the two be told apart?"""
        return self.outcome is Outcome.DISTINGUISHABLE

    @property
    def winner(self) -> Row | None:
        """The row that is better by the difference that is printed; None where they cannot be told apart, or where
        neither end of the metric is the good one."""
        if not self.decided or self.difference is None or self.sign == 0:
            return None
        return self.first if self.sign * self.difference.mean > 0 else self.second

    @property
    def loser(self) -> Row | None:
        """The other one."""
        return None if self.winner is None else self.second if self.winner is self.first else self.first

    @cached_property
    def improvement(self) -> float | None:
        """The chance that a run of the first is better than one of the second, over common seeds."""
        if isinstance(self.shared, Nothing):
            return None
        return probability_of_improvement(*((self.sign or 1) * self.shared.values))

    @cached_property
    def smallest(self) -> float | None:
        """The smallest difference that these seeds and classes would have shown with a chance of 80 %."""
        d = self.difference
        if d is None or d.std is None or d.n < LEAST_SEEDS:
            return None
        return smallest(Design(d.std, d.n, ALPHA / max(self.family, 1), d.class_error, d.class_count))


def judge(pairs: Sequence[tuple[Row, Row]], *, sign: int = 1, within: float | None = None) -> list[Pair]:
    """Judge a family of pairs together.

    Parameters:
        pairs: the rows that are compared; all that stand in one table.
        sign: of the metric: 1 where high is better, -1 where low is, 0 where neither is.
        within: what is small enough to be called equivalent, in the metric's unit; None: nothing is.
    """
    shared = [common(pair) for pair in pairs]
    differences = [_difference(*pair, each) for pair, each in zip(pairs, shared, strict=True)]
    plain = {i: d.p for i, d in enumerate(differences) if d is not None and d.p is not None and d.n >= LEAST_SEEDS}
    tested = list(plain)
    corrected = dict(zip(tested, holm([plain[i] for i in tested]).tolist(), strict=True))
    return [
        Pair(*pair, each, d, corrected.get(i), len(tested), sign, within)
        for i, (pair, each, d) in enumerate(zip(pairs, shared, differences, strict=True))
    ]


def _difference(first: Row, second: Row, shared: Common | Nothing) -> Difference | None:
    if isinstance(shared, Nothing):
        return None
    queries = [row.queries for row in (first, second) if row.queries]
    least = resolution(min(queries) if len(queries) == 2 else None)
    return paired(*shared.values, least_std=least, classes=class_differences(first, second, shared))
