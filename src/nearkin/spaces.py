"""Search spaces: the values that tuning may try for one setting.

    Uniform(0.1, 2)             any number of a range                      Uniform(2, 100, 2): in steps of 2
    Log(1e-6, 1)                the same, evenly in the logarithm
    Whole(5, 50)                whole numbers
    Choice([0.1, 0.05])         these values

A loss, a miner, a regulariser or a method declares them beside its hyper-parameters, as `search`: key -> space. A key
is the name of one of its hyper-parameters ("alpha"), or a setting of the spec with its dots ("train.groups.loss.lr").
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from typing import Any

from nearkin.errors import NearkinError

OURS = "ours"
TABLE_15 = "Psomas 2020, table 15"              # steps from the first above 0 where the table leaves 0 out
MUSGRAVE = "Musgrave et al. 2020"


@dataclass(frozen=True)
class Space:
    """The values that one setting may take: the base of all spaces.

    Parameters:
        source: where it was published, or "ours".
        when: other hyper-parameters of the same part that decide whether this one is read: name -> the values with
            which it is. It is searched only then.
    """

    _: KW_ONLY
    source: str = OURS
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)

    def points(self) -> list[Any] | None:
        """All its values in order; None where they cannot be counted."""
        return None

    def contains(self, value: Any) -> bool:
        """Is it one of its values, up to rounding?"""
        return any(_close(value, point) for point in self.points() or ())

    def ends(self) -> list[Any]:
        """Its lowest and its highest value; of a choice, all."""
        raise NearkinError(f"{type(self).__name__} does not define ends()")

    def values(self, n: int) -> list[Any]:
        """n of its values, evenly over it with both ends; all, where it has fewer; of n = 1 the middle one."""
        _positive(n)
        points = self.points() or []
        return [points[i] for i in _evenly(n, len(points))] if n < len(points) else points


@dataclass(frozen=True)
class Uniform(Space):
    """Numbers from low to high, all of them or in steps.

    Parameters:
        low, high: the ends, which belong to it.
        step: the distance of neighbouring values; None: every number between.
        source, when: see `Space`.
    """

    low: float
    high: float
    step: float | None = None

    def __post_init__(self) -> None:
        _ordered(self.low, self.high)
        if self.step is not None:
            _stepped(self.low, self.high, self.step)

    def __str__(self) -> str:
        steps = f" in steps of {shown(self.step)}" if self.step is not None else ""
        return f"{shown(self.low)} to {shown(self.high)}{steps}"

    def points(self) -> list[float] | None:
        """All its values where it has steps, else None."""
        return None if self.step is None else [float(x) for x in _grid(self.low, self.high, self.step)]

    def contains(self, value: Any) -> bool:
        """Does it lie in the range, and on a step where there are steps?"""
        return super().contains(value) if self.step is not None else _within(value, self.low, self.high)

    def ends(self) -> list[float]:
        """Low and high."""
        return [float(self.low), float(self.high)]

    def values(self, n: int) -> list[float]:
        """n of its values, evenly over it with both ends; all, where it has fewer; of n = 1 the middle one."""
        if self.step is not None:
            return super().values(n)
        return [_part_way(self.low, self.high, share) for share in _shares(n)]


@dataclass(frozen=True)
class Log(Space):
    """Numbers from low to high, evenly in their logarithm: for rates, temperatures and weights.

    Parameters:
        low, high: the ends, which belong to it; above 0.
        source, when: see `Space`.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _ordered(self.low, self.high)
        _above_zero(self.low)

    def __str__(self) -> str:
        return f"{shown(self.low)} to {shown(self.high)}, logarithmic"

    def contains(self, value: Any) -> bool:
        """Does it lie in the range?"""
        return _within(value, self.low, self.high)

    def ends(self) -> list[float]:
        """Low and high."""
        return [float(self.low), float(self.high)]

    def values(self, n: int) -> list[float]:
        """n of its values with both ends, each the same multiple of the one before; of n = 1 the middle one."""
        return [_part_way(self.low, self.high, share, log=True) for share in _shares(n)]


@dataclass(frozen=True)
class Whole(Space):
    """Whole numbers from low to high.

    Parameters:
        low, high: the ends, which belong to it.
        step: the distance of neighbouring values.
        log: True spreads them evenly in their logarithm; low is then at least 1, and step 1.
        source, when: see `Space`.
    """

    low: int
    high: int
    step: int = 1
    log: bool = False

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            if type(value := getattr(self, name)) is not int:
                raise NearkinError(f"{name}={value}: a whole number is needed")
        _ordered(self.low, self.high)
        _stepped(self.low, self.high, self.step)
        if self.log:
            _above_zero(self.low)
            if self.step != 1:
                raise NearkinError(f"step={self.step} beside log: give one of them")

    def __str__(self) -> str:
        steps = f" in steps of {self.step}" if self.step != 1 else ""
        return f"whole numbers {self.low} to {self.high}{steps}{', logarithmic' if self.log else ''}"

    def points(self) -> list[int]:
        """All its values."""
        return list(range(self.low, self.high + 1, self.step))

    def contains(self, value: Any) -> bool:
        """Is it a whole number of the range, on a step?"""
        return _within(value, self.low, self.high) and value == int(value) and (value - self.low) % self.step == 0

    def ends(self) -> list[int]:
        """Low and high."""
        return [self.low, self.high]

    def values(self, n: int) -> list[int]:
        """n of its values with both ends, evenly or evenly in the logarithm; fewer, where two round to the same."""
        if not self.log:
            return super().values(n)
        return sorted({round(_part_way(self.low, self.high, share, log=True)) for share in _shares(n)})


@dataclass(frozen=True)
class Choice(Space):
    """Single values: numbers or words.

    Parameters:
        options: the values, in the order in which a grid goes through them; at least two.
        source, when: see `Space`.
    """

    options: Sequence[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", tuple(self.options))
        if len(self.options) < 2 or any(value in self.options[:i] for i, value in enumerate(self.options)):
            raise NearkinError(f"{list(self.options)}: a choice has at least two values, each once")

    def __str__(self) -> str:
        return f"one of {', '.join(shown(value) for value in self.options)}"

    def points(self) -> list[Any]:
        """All its values."""
        return list(self.options)

    def ends(self) -> list[Any]:
        """All its values."""
        return list(self.options)


def _ordered(low: float, high: float) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise NearkinError(f"low={shown(low)}, high={shown(high)}: low must be below high, and both be finite")


def _above_zero(low: float) -> None:
    if not low > 0:
        raise NearkinError(f"low={shown(low)}: must be above 0, because the space is logarithmic")


def _stepped(low: float, high: float, step: float) -> None:
    if not 0 < step < math.inf or (_exact(high) - _exact(low)) % _exact(step):
        raise NearkinError(f"step={shown(step)}: whole steps must lead from {shown(low)} to {shown(high)}")


def _exact(value: float) -> Decimal:
    """As it is written: 0.1 is a tenth, so that 3 steps of it are 0.3."""
    return Decimal(str(value))


def _grid(low: float, high: float, step: float) -> list[Decimal]:
    count = int((_exact(high) - _exact(low)) / _exact(step))
    return [_exact(low) + i * _exact(step) for i in range(count + 1)]


def _within(value: Any, low: float, high: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return low <= value <= high or _close(value, low) or _close(value, high)


def _close(value: Any, point: Any) -> bool:
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (value, point))
    return math.isclose(value, point, rel_tol=1e-9, abs_tol=1e-12) if numbers else value == point


def _positive(n: int) -> None:
    if n < 1:
        raise NearkinError(f"n={n}: at least one value")


def _shares(n: int) -> list[float]:
    """n numbers from 0 to 1; 0.5 for one."""
    _positive(n)
    return [i / (n - 1) for i in range(n)] if n > 1 else [0.5]


def _part_way(low: float, high: float, share: float, *, log: bool = False) -> float:
    """From low (share 0) to high (1); the ends themselves are exact."""
    if share in (0, 1):
        return float(high if share else low)
    return low * (high / low) ** share if log else low + share * (high - low)


def _evenly(n: int, count: int) -> list[int]:
    """n of the places 0 to count - 1."""
    return [round(share * (count - 1)) for share in _shares(n)]


def shown(value: Any) -> str:
    """A value in words."""
    return f"{value:.12g}" if isinstance(value, float) else str(value)
