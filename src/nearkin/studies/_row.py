"""One row of a study's table: values by seed and fold, and what is told of them."""

import statistics
from dataclasses import dataclass, field
from functools import cached_property

from nearkin.statistics.unit import Key, Nothing
from nearkin.statistics.unit import Row as Unit


@dataclass
class Row:
    """One row of the table: a place on the axes, and a reading of its runs."""

    labels: tuple[str, ...]  # as `study.headings` has them
    failed: int
    units: dict[str, Unit] = field(default_factory=dict)  # metric -> its values; at least one of each
    reading: str = "chosen"
    budget: dict[str, str] = field(default_factory=dict)
    lacks: tuple[int, ...] = ()  # folds that its values do without
    data: str = ""  # the name of its data set

    @property
    def seeds(self) -> int:
        """How many seeds have a value."""
        return len(self.values)

    @cached_property
    def values(self) -> dict[int, dict[str, float]]:
        """Seed -> metric -> value, folds averaged."""
        values: dict[int, dict[str, float]] = {}
        for metric, unit in self.units.items():
            for seed, value in unit.values.items():
                values.setdefault(seed, {})[metric] = value
        return values

    @cached_property
    def mean(self) -> dict[str, float]:
        """The mean over seeds."""
        return {metric: statistics.fmean(unit.values.values()) for metric, unit in self.units.items()}

    @cached_property
    def std(self) -> dict[str, float | None]:
        """The standard deviation over seeds; of one seed over its folds."""
        spreads = {metric: _folds_of(unit) or list(unit.values.values()) for metric, unit in self.units.items()}
        return {metric: statistics.stdev(spread) if len(spread) > 1 else None for metric, spread in spreads.items()}

    @property
    def over_folds(self) -> bool:
        """Is a deviation that of the folds of one seed?"""
        return any(_folds_of(unit) for unit in self.units.values())


def _folds_of(unit: Unit) -> list[float]:
    """The values of the folds of the one seed that there is; nothing where there are several seeds, or one fold."""
    shared = unit.alone
    if isinstance(shared, Nothing) or len(shared.seeds) > 1 or len(shared.places) < 2:
        return []
    return [unit.members[Key(shared.seeds[0], place)] for place in shared.places]


def used(units: dict[str, Unit]) -> list[Key]:
    """Which runs the values of a row stand on."""
    keys: dict[Key, None] = {}
    for unit in units.values():
        if not isinstance(shared := unit.alone, Nothing):
            keys |= {Key(seed, place): None for seed in shared.seeds for place in shared.places}
    return list(keys)
