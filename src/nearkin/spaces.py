"""Search spaces: the values that tuning may try for one setting.

    Space(0.1, 2)                       any number in a range           Space(2, 100, 2): in steps of 2
    Space(1e-6, 1, log=True)            the same, evenly in the logarithm
    Space(5, 50, whole=True)            whole numbers
    Space(options=[0.1, 0.05])          these values

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
TABLE_15 = "Psomas 2020, table 15"  # steps from the first above 0 where the table leaves 0 out
MUSGRAVE = "Musgrave et al. 2020"
FORMS = "{low: 0.1, high: 1, step: 0.1} (step may be left out), {low: 1.0e-6, high: 1, log: true} or [a, b, c]"


@dataclass(frozen=True)
class Space:
    """The values that one setting may take: a range, or single values.

    Parameters:
        low, high: the ends of a range, both included.
        step: the distance between neighbouring values; None: every number in between, or every whole number.
        log: spread evenly in the logarithm, for rates, temperatures and weights; low must then be above 0.
        whole: whole numbers only.
        options: single values instead of a range, numbers or words, in the order in which a grid goes through them.
        source: where it was published, or "ours".
        when: other hyper-parameters of the same part that decide whether this one is read: name -> the values for
            which it is read. It is searched only then.
    """

    low: float = math.nan
    high: float = math.nan
    step: float | None = None
    _: KW_ONLY
    log: bool = False
    whole: bool = False
    options: Sequence[Any] = ()
    source: str = OURS
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", tuple(self.options))
        if self.options:
            if len(self.options) < 2 or any(value in self.options[:i] for i, value in enumerate(self.options)):
                raise NearkinError(f"{list(self.options)}: a choice has at least two values, each once")
            return
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            low, high = shown(self.low), shown(self.high)
            raise NearkinError(f"low={low}, high={high}: low must be below high, and both must be finite")
        if self.log and not self.low > 0:
            raise NearkinError(f"low={shown(self.low)}: must be above 0, because the space is logarithmic")
        if self.log and self.step is not None:
            raise NearkinError(f"step={shown(self.step)} beside log: give one of them")
        for name in ("low", "high", "step"):
            value = getattr(self, name)
            if self.whole and value is not None and value != int(value):
                raise NearkinError(f"{name}={shown(value)}: a whole number is needed")
        step = self.step
        if step is not None and (not 0 < step < math.inf or (_exact(self.high) - _exact(self.low)) % _exact(step)):
            low, high = shown(self.low), shown(self.high)
            raise NearkinError(f"step={shown(step)}: whole steps must lead from {low} to {high}")

    def __str__(self) -> str:
        if self.options:
            return f"one of {', '.join(shown(value) for value in self.options)}"
        steps = f" in steps of {shown(self.step)}" if self.step is not None else ""
        numbers = "whole numbers " if self.whole else ""
        return f"{numbers}{shown(self.low)} to {shown(self.high)}{steps}{', logarithmic' if self.log else ''}"

    @property
    def count(self) -> int | None:
        """How many values it has; None where they cannot be counted, or are not evenly spaced."""
        if self.options:
            return len(self.options)
        if self.log or (self.step is None and not self.whole):
            return None
        return int((_exact(self.high) - _exact(self.low)) / _exact(self.step or 1)) + 1

    def at(self, place: int) -> Any:
        """The value at a place, 0 to count - 1."""
        if self.options:
            return self.options[place]
        return self._number(_exact(self.low) + place * _exact(self.step or 1))

    def ends(self) -> list[Any]:
        """The lowest and the highest value; for single values, all of them."""
        return list(self.options) or [self._number(self.low), self._number(self.high)]

    def values(self, n: int) -> list[Any]:
        """n of its values, evenly spaced, both ends included; all of them if it has fewer; the middle one for n = 1."""
        if n < 1:
            raise NearkinError(f"n={n}: at least one value")
        shares = [i / (n - 1) for i in range(n)] if n > 1 else [0.5]
        if self.count is not None:
            places = range(self.count) if n >= self.count else [round(share * (self.count - 1)) for share in shares]
            return [self.at(place) for place in places]
        inside = [self._part_way(share) for share in shares]
        return sorted({round(value) for value in inside}) if self.whole else inside

    def contains(self, value: Any) -> bool:
        """Is `value` one of the values of this space, up to rounding?"""
        if self.options:
            return any(_close(value, option) for option in self.options)
        if not _is_number(value):
            return False
        inside = self.low <= value <= self.high or _close(value, self.low) or _close(value, self.high)
        if not inside or (self.count is None and not self.whole):
            return inside
        return _close(value, self.nearest(value))

    def nearest(self, value: Any) -> Any:
        """The value of this space that lies nearest to `value`; for single values the same one, or else the first."""
        if self.options:
            return value if value in self.options else self.options[0]
        if not _is_number(value):
            return self.ends()[0]
        inside = min(max(value, self.low), self.high)
        if self.count is not None:
            return self.at(round((inside - self.low) / (self.step or 1)))
        return round(inside) if self.whole else float(inside)

    def short(self, value: Any) -> Any:
        """A drawn value as it is tried: for a range four digits, enough to find a value and short enough to write down.
        It never leaves the space."""
        if self.count is None and not self.whole:
            value = float(f"{value:.4g}")
        return self.nearest(value)

    def distribution(self) -> Any:
        """The space as Optuna has it."""
        from optuna import distributions

        if self.options:
            return distributions.CategoricalDistribution(self.options)
        if self.whole:
            return distributions.IntDistribution(int(self.low), int(self.high), log=self.log, step=int(self.step or 1))
        return distributions.FloatDistribution(self.low, self.high, log=self.log, step=self.step)

    def _part_way(self, share: float) -> float:
        """From low (share 0) to high (1); the ends themselves are exact."""
        if share in (0, 1):
            return float(self.high if share else self.low)
        return self.low * (self.high / self.low) ** share if self.log else self.low + share * (self.high - self.low)

    def _number(self, value: Any) -> float | int:
        return int(value) if self.whole else float(value)


def parse_space(key: str, given: Any, *, whole: bool = False) -> Space:
    """The space that a user wrote for a key, as in a YAML file; anything else is a NearkinError that names the forms.

    Parameters:
        key: the setting, for messages.
        given: {low: 0.1, high: 1, step: 0.1}, {low: 1.0e-6, high: 1, log: true} or [a, b, c].
        whole: whether the setting takes whole numbers only.
    """
    try:
        if isinstance(given, list | tuple):
            if not given:
                raise NearkinError("[]: a choice has at least two values, each once")
            return Space(options=[_parsed(value) for value in given], source="given")
        if not isinstance(given, Mapping):
            raise NearkinError(f"{given!r} is not a space")
        if unknown := [str(name) for name in given if name not in ("low", "high", "step", "log")]:
            raise NearkinError(f"{dict(given)} has {unknown[0]!r}, which no space has")
        log: Any = given.get("log", False)
        if type(log) is not bool:
            raise NearkinError(f"log={log!r}: true or false")
        numbers: dict[str, Any] = {name: _parsed(value) for name, value in given.items() if name != "log"}
        for name in ("low", "high", *numbers):
            if not _is_number(numbers.get(name)):
                raise NearkinError(f"{dict(given)} has no number {name!r}")
        return Space(**numbers, log=log, whole=whole, source="given")
    except NearkinError as error:
        raise NearkinError(f"search space of {key}: {error}; a space is {FORMS}") from None


def shown(value: Any) -> str:
    """A value in words."""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _parsed(value: Any) -> Any:
    """YAML reads 1e-6 as a word: turn it into a number if it is one."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _exact(value: float) -> Decimal:
    """The number as it is written: 0.1 is a tenth, so that 3 steps of it are 0.3."""
    return Decimal(str(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _close(value: Any, other: Any) -> bool:
    numbers = _is_number(value) and _is_number(other)
    return math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-12) if numbers else bool(value == other)
