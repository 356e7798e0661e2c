"""What analyses of runs share: the methods of a study and their seeds and folds, which runs are compared with which,
intervals as numbers and as columns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np

from nearkin.analysis.base import Analysis, stored_numbers
from nearkin.analysis.embedded import test_images
from nearkin.comparison.gather import Gathered, Member
from nearkin.comparison.method import UNTRAINED, kind_of
from nearkin.comparison.rows import named, row_of
from nearkin.comparison.verdicts import FEW
from nearkin.errors import NearkinError
from nearkin.present import Column
from nearkin.progress import track
from nearkin.statistics.intervals import UNBOUNDED, Bounds, Interval, mean_interval
from nearkin.statistics.unit import LEAST_SEEDS, Nothing, Place, Row
from nearkin.units import Unit

OVER_CLASSES = (
    "intervals are over images, those of one class as one unit: what images of other classes would give, "
    "these models only"
)
OVER_SEEDS = "means and intervals are over seeds that have all folds, folds averaged first"
CUT = "* cut at the end of the range"


@dataclass(frozen=True)
class OneMethod:
    """The runs of one method, over seeds and folds: a row of a study, as `nearkin compare` has it."""

    name: str
    kind: str  # ranking, classification, own or untrained
    members: tuple[Member, ...]

    def row(self, value: Callable[[Member], float | None]) -> Row:
        """A value of every run on the unit of comparison; a run without one (None) is left out."""
        return row_of(self.name, self.members, "", value=value)

    def metric(self, metric: str) -> Row:
        """The same of a test metric, whose values by class are known where they are stored."""
        return row_of(self.name, self.members, metric)

    @property
    def whole(self) -> tuple[Member, ...]:
        """The runs that its values are means of: those of the seeds that have every fold, as long as there is one."""
        alone = self.row(lambda member: 0.0).alone
        if isinstance(alone, Nothing):
            return ()
        return tuple(m for m in self.members if m.seed in alone.seeds and Place((), m.fold) in alone.places)

    @property
    def trained(self) -> bool:
        """Was it trained at all?"""
        return self.kind != UNTRAINED


class OfStudy(Analysis):
    """An analysis of single runs, summed up over a study.

    Parameters:
        methods: its methods.
        runs: run's hash -> what the analysis of that run gave.
        options: of that analysis.
    """

    def __init__(self, methods: list[OneMethod], runs: Mapping[str, Any], options: Mapping[str, Any] | None = None):
        self.methods, self.runs, self.options = methods, runs, options or {}

    def interval(self, row: Row, bounds: Bounds = UNBOUNDED) -> dict[str, Any] | None:
        """The mean of a method's row over its seeds, with its interval, as JSON has it; None without a value."""
        interval = interval_of(row, bounds)
        if interval is None:
            return None
        ends = {"low": interval.low, "high": interval.high}
        return {"mean": interval.mean, **ends, "seeds": interval.n, "cut": interval.cut}


def methods_of(gathered: Gathered) -> list[OneMethod]:
    """The tested runs by method, as `nearkin compare` names its rows: by the axes of their study, or by loss, and by
    whatever other setting they differ in. Runs on other images, or with the same seed, fold and settings, are told
    apart by a hash."""
    if not gathered.tested:
        raise NearkinError(f"{gathered.name}: none of its {len(gathered.members)} runs is tested; nothing to look at")
    methods = []
    for name, members in named(gathered.tested, gathered.axes or ("loss",)).items():
        runs = {member.run.hash: member for member in members}  # a run may stand in several cells
        by_data: dict[str, list[Member]] = {}
        for member in runs.values():
            by_data.setdefault(member.head["data_hash"], []).append(member)
        for data, alike in by_data.items():
            title = name if len(by_data) == 1 else f"{name}, data {data[:6]}"
            if len({(member.seed, member.fold) for member in alike}) < len(alike):
                methods += [OneMethod(f"{title} {m.run.hash[:6]}", kind_of(m), (m,)) for m in alike]
            else:
                methods.append(OneMethod(title, kind_of(alike[0]), tuple(alike)))
    return methods


def of_each_run(analysis: type[Analysis], gathered: Gathered, **options: Any) -> dict[str, Any]:
    """Run's hash -> the analysis of each tested run; what was not stored yet is stored."""
    runs = {member.run.hash: member.run for member in gathered.tested}
    performed = {}
    for name, run in track(runs.items(), analysis.name.capitalize(), len(runs)):
        performed[name] = analysis.of(run, **options)
        if stored_numbers(analysis, run.path / analysis.folder, options) is None:
            performed[name].save(run.path / analysis.folder)
    return performed


def one_fold(methods: Sequence[OneMethod]) -> list[OneMethod]:
    """The methods with the runs of one fold, the first that all trained ones have; of an untrained network that has not
    this fold its first one serves, because it has learned from none. A NearkinError without a common fold."""

    def order(fold: int | None) -> int:
        return -1 if fold is None else fold

    folds = {method.name: sorted({member.fold for member in method.members}, key=order) for method in methods}
    trained = {method.name: folds[method.name] for method in methods if method.trained} or folds
    shared = set.intersection(*map(set, trained.values()))
    if not shared:
        words = [
            f"{name} has {', '.join('none' if f is None else str(f) for f in fold)}" for name, fold in trained.items()
        ]
        raise NearkinError(
            "the methods have no fold in common, and models of other folds learned from other classes: "
            f"{'; '.join(words[:4])}{'; …' * (len(words) > 4)}"
        )
    first = min(shared, key=order)
    chosen = {name: first if first in fold else fold[0] for name, fold in folds.items()}
    return [replace(m, members=tuple(r for r in m.members if r.fold == chosen[m.name])) for m in methods]


def check_same_images(members: Sequence[Member]) -> None:
    """Refuse runs that were tested on other images; the splits may differ, as those of folds do."""
    first = members[0]
    for other in members[1:]:
        same = first.head["data_hash"] == other.head["data_hash"]
        if same and first.head["split_hash"] != other.head["split_hash"]:
            same = np.array_equal(test_images(first.run)[0], test_images(other.run)[0])
        if not same:
            raise NearkinError(
                f"runs {first.run.hash} and {other.run.hash} were tested on other images: nothing to compare"
            )


def check_same_size(members: Sequence[Member], what: str) -> None:
    """Refuse runs that see images of other sizes, of which `what` (maps, stages) cannot be compared."""
    first = members[0]
    for other in members[1:]:
        sizes = [member.settings["data.size"] for member in (first, other)]
        if sizes[0] != sizes[1]:
            raise NearkinError(
                f"run {first.run.hash} sees images of {sizes[0]} pixels and run {other.run.hash} of {sizes[1]}: {what} "
                "of different sizes are not compared"
            )


@dataclass(frozen=True)
class RunPairs:
    """Which runs of methods are compared: those with two seeds. Runs of one seed begin with the same weights, which
    makes them alike whatever the loss.

    Parameters:
        methods: of each run.
        seeds: of each run; None: not known, as of files.
    """

    methods: Sequence[str]
    seeds: Sequence[int | None]

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Method -> the numbers of its runs."""
        places: dict[str, list[int]] = {}
        for number, method in enumerate(self.methods):
            places.setdefault(method, []).append(number)
        return places

    def with_two_seeds(self, first: str, second: str) -> list[tuple[int, int]]:
        """The pairs of runs of two methods, or of one, that have two seeds."""
        one = first == second
        pairs = combinations(self.places[first], 2) if one else product(self.places[first], self.places[second])
        return [(a, b) for a, b in pairs if self.seeds[a] is None or self.seeds[a] != self.seeds[b]]

    def of(self, first: str, second: str) -> list[tuple[int, int]]:
        """The same pairs; where two methods have one seed alone, and it is the same, that pair."""
        pairs = self.with_two_seeds(first, second)
        return pairs if pairs or first == second else list(product(self.places[first], self.places[second]))

    @cached_property
    def cells(self) -> dict[tuple[str, str], list[tuple[int, int]]]:
        """Every two methods, and each with itself, that have a pair of runs, with their pairs."""
        both = combinations_with_replacement(self.places, 2)
        return {names: pairs for names in both if (pairs := self.of(*names))}

    @property
    def same_seed(self) -> bool:
        """Are there methods whose only runs have one seed, the same?"""
        return any(not self.with_two_seeds(*names) for names in self.cells)

    @property
    def notes(self) -> list[str]:
        """What stands on the diagonal of methods by methods, and whether all pairs have two seeds."""
        about = (
            "some pairs have one seed, so the same first weights, which makes them alike; with several seeds all pairs "
            "have two"
        )
        diagonal = "the diagonal is that of two seeds of one method, the yardstick; a dash: there is one seed"
        return [diagonal, about if self.same_seed else "all pairs have two seeds"]


# -- in words, numbers and columns -------------------------------------------------------------------------------------


def interval_of(row: Row, bounds: Bounds = UNBOUNDED) -> Interval | None:
    """The mean of a row over its seeds with its interval; None without a value."""
    return mean_interval(list(row.values.values()), bounds=bounds) if row.values else None


def interval_columns(
    unit: Unit | str, before: str = "", heading: str = "95 % interval", cut: bool = False, **look: Any
) -> list[Column]:
    """Columns low and high, shown as one: low to high; with `cut`, the one that puts a star behind it."""
    low, high, star = (f"{before}{name}" for name in ("low", "high", "cut"))
    columns = [Column(low, heading, unit, to=high, star=star * cut, **look), Column(high, unit=unit, **look)]
    return [*columns, Column(star)] if cut else columns


def few_seeds(counts: Iterable[int]) -> list[str]:
    """That some method has too few seeds to speak of methods, where one has; `counts` are the seeds of each."""
    few = min(counts, default=LEAST_SEEDS) < LEAST_SEEDS
    return [f"no verdict whether losses differ more than seeds: {FEW}"] if few else []


def several_data_sets(methods: Iterable[OneMethod]) -> list[str]:
    """That methods are not compared where their images differ, in words; nothing where they are of one data set."""
    data = {member.head["data_hash"] for method in methods for member in method.members}
    return [f"the runs are of {len(data)} data sets: losses are not compared over them"] if len(data) > 1 else []
