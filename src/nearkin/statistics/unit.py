"""The unit of every comparison: one value per seed, on what all rows of the comparison have.

A row stands on runs, each with a seed, a fold and a setting beside the rows (a network, a size). Folds are averaged in
each setting, then settings, for each seed: the seed is the unit. Rows are compared on the seeds, settings and folds
that *all* of them have; where they have nothing in common there is no number, but a sentence.

What is missing costs seeds first, because settings and folds say what is measured and seeds only how precisely. A
comparison needs three seeds, though: when fewer are left, it costs settings and folds instead, if that keeps more.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearkin.errors import and_more

Floats = NDArray[np.float64]
LEAST_SEEDS = 3  # below them there is no verdict: two equal differences would look certain
FEW = "at least three seeds are needed"


class Place(NamedTuple):
    """Where a run stands beside the rows: a setting, such as ("resnet50", "128"), and a fold."""

    setting: tuple[str, ...] = ()
    fold: int | None = None


class Key(NamedTuple):
    """Which run of a row."""

    seed: int
    place: Place = Place()


@dataclass(frozen=True)
class ByClass:
    """The values of one run by class: the mean over the queries of each class, and the number of these queries."""

    classes: tuple[str, ...]
    means: Floats  # (C,)
    queries: NDArray[np.int64]  # (C,) for which the metric is defined; all above 0


def not_by_class(key: "Key") -> ByClass | None:
    """The values by class of a run for which they are not known: None."""
    return None


@dataclass(frozen=True)
class Nothing:
    """Rows that have nothing in common: why, in words."""

    reason: str


@dataclass(frozen=True)
class Common:
    """What rows have in common: seeds, places, and one value per row and seed."""

    seeds: tuple[int, ...]
    places: tuple[Place, ...]
    values: Floats  # (k, S)

    @property
    def folds(self) -> list[int]:
        """The folds, sorted; empty without folds."""
        return sorted({place.fold for place in self.places if place.fold is not None})

    @property
    def settings(self) -> list[tuple[str, ...]]:
        """The settings, in the order in which they came."""
        return list(dict.fromkeys(place.setting for place in self.places))


@dataclass(frozen=True)
class Row:
    """One row of a comparison, and the values of its runs.

    Parameters:
        name: of the row.
        members: which run -> its value of the metric that is compared.
        queries: the number of queries that the metric is a mean over; None if it is no such mean.
        by_class: gives the values of a run by class; None where they are not known.

    Example:
        a = Row.of_seeds("triplet", {0: 0.50, 1: 0.52, 2: 0.51})
        b = Row.of_seeds("margin", {1: 0.53, 2: 0.52, 3: 0.60})
        common([a, b]).seeds                            # (1, 2)
    """

    name: str
    members: Mapping[Key, float]
    queries: int | None = None
    by_class: Callable[[Key], ByClass | None] = not_by_class

    @classmethod
    def of_seeds(cls, name: str, values: Mapping[int, float], **more: Any) -> "Row":
        """A row without folds and settings: seed -> value."""
        return cls(name, {Key(seed): value for seed, value in values.items()}, **more)

    @cached_property
    def alone(self) -> Common | Nothing:
        """What its own seeds have in common: those with every setting and fold of the row, as long as there is one."""
        return common([self], least=1)

    @cached_property
    def values(self) -> dict[int, float]:
        """Seed -> value, folds and settings averaged; empty where no seed has all of them."""
        if isinstance(self.alone, Nothing):
            return {}
        return dict(zip(self.alone.seeds, self.alone.values[0].tolist(), strict=True))

    @property
    def places(self) -> list[Place]:
        """All settings and folds that it has."""
        return list(dict.fromkeys(key.place for key in self.members))


def common(rows: Sequence[Row], least: int = LEAST_SEEDS) -> Common | Nothing:
    """The seeds, settings and folds that all rows have, and one value per row and seed.

    Parameters:
        rows: the rows.
        least: if fewer seeds than this have all settings and folds, some settings and folds are given up for more
            seeds.
    """
    shared = set.intersection(*(set(row.members) for row in rows)) if rows else set()
    if not shared:
        return Nothing(_reason(rows))
    order = [key for key in rows[0].members if key in shared]
    seeds, places = sorted({key.seed for key in order}), list(dict.fromkeys(key.place for key in order))
    complete = [seed for seed in seeds if all(Key(seed, place) in shared for place in places)]
    if len(complete) < min(least, len(seeds)):
        complete_places = [place for place in places if all(Key(seed, place) in shared for seed in seeds)]
        if complete_places and len(seeds) > len(complete):
            complete, places = seeds, complete_places
    if not complete:
        return Nothing(f"no seed has all {len(places)} {_what(places)}")
    values = [
        [averaged({place: row.members[Key(seed, place)] for place in places}) for seed in complete] for row in rows
    ]
    return Common(tuple(complete), tuple(places), np.array(values, dtype=float))


def averaged(values: Mapping[Place, float]) -> float:
    """The mean over folds in each setting, then over settings."""
    folds: dict[tuple[str, ...], list[float]] = {}
    for place, value in values.items():
        folds.setdefault(place.setting, []).append(value)
    return statistics.fmean(statistics.fmean(fold_values) for fold_values in folds.values())


@dataclass(frozen=True)
class ClassDifferences:
    """First less second row, by seed and class, and the weight of each class in the mean over queries."""

    values: Floats  # (S, C)
    weights: Floats  # (C,) sum to 1


def class_differences(first: Row, second: Row, shared: Common) -> ClassDifferences | None:
    """The differences of two rows by seed and class, on what they have in common; None where values by class are not
    known, or not all runs were tested on the same queries."""
    differences, reference = [], None
    for seed in shared.seeds:
        sums: dict[Place, Floats] = {}
        for place in shared.places:
            sides = [row.by_class(Key(seed, place)) for row in (first, second)]
            for side in sides:
                if side is None or len(side.classes) < 2:
                    return None
                if reference is None:
                    reference = side
                elif side.classes != reference.classes or not np.array_equal(side.queries, reference.queries):
                    return None
            assert sides[0] is not None
            assert sides[1] is not None
            sums[place] = sides[0].means - sides[1].means  # (C,)
        folds: dict[tuple[str, ...], list[Floats]] = {}
        for place, value in sums.items():
            folds.setdefault(place.setting, []).append(value)
        differences.append(np.mean([np.mean(fold_values, axis=0) for fold_values in folds.values()], axis=0))
    assert reference is not None
    return ClassDifferences(np.array(differences), reference.queries / reference.queries.sum())


def by_class(labels: ArrayLike, values: ArrayLike) -> ByClass | None:
    """The means over the queries of each class; queries with NaN are left out, and so are classes without any other.

    Parameters:
        labels: the class of every query.                                                                       (Q,)
        values: its value.                                                                                      (Q,)
    """
    numbers = np.asarray(values, dtype=float)
    defined = np.isfinite(numbers)
    if not defined.any():
        return None
    names, place = np.unique(np.asarray(labels)[defined], return_inverse=True)
    queries = np.bincount(place, minlength=len(names))
    return ByClass(tuple(map(str, names)), np.bincount(place, numbers[defined]) / queries, queries)


def _reason(rows: Sequence[Row]) -> str:
    """In words, what the rows would need to have in common."""
    if not rows or any(not row.members for row in rows):
        return "no values"
    parts: dict[str, Callable[[Key], Any]] = {
        "setting": lambda key: key.place.setting,
        "fold": lambda key: key.place.fold,
        "seed": lambda key: key.seed,
    }
    for what, part in parts.items():
        sides = [list(dict.fromkeys(part(key) for key in row.members)) for row in rows]
        if not set.intersection(*map(set, sides)):
            words = ["; ".join(_word(value) for value in side[:4]) + ("; …" if len(side) > 4 else "") for side in sides]
            return f"no common {what}s ({' against '.join(words) if len(rows) == 2 else and_more(words, 3)})"
    return "no common seed with the same settings and folds"


def _word(part: Any) -> str:
    return " ".join(part) or "none" if isinstance(part, tuple) else "none" if part is None else str(part)


def _what(places: Sequence[Place]) -> str:
    folds, settings = len({place.fold for place in places}) > 1, len({place.setting for place in places}) > 1
    return "settings and folds" if folds and settings else "folds" if folds else "settings"
