"""What analyses of single runs give, over the seeds and folds of each method of a study; what is stored is read."""

import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nearkin.analysis.base import Analysis, stored_numbers
from nearkin.comparison.gather import Gathered, Member
from nearkin.comparison.method import UNTRAINED, kind_of
from nearkin.comparison.rows import named, row_of
from nearkin.comparison.verdicts import FEW
from nearkin.errors import NearkinError
from nearkin.progress import track
from nearkin.runs.store import Run
from nearkin.statistics.intervals import UNBOUNDED, Bounds, Interval, mean_interval
from nearkin.statistics.unit import LEAST_SEEDS, Nothing, Place, Row

OVER_CLASSES = (
    "intervals are over images, those of one class as one unit: what images of other classes would give, "
    "these models only"
)


@dataclass(frozen=True)
class OneMethod:
    """The runs of one method, over seeds and folds: a row of a study, as `nearkin compare` has it."""

    name: str
    kind: str  # ranking, classification, untrained or unknown
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


def interval_of(row: Row, bounds: Bounds = UNBOUNDED) -> Interval | None:
    """The mean of a row over its seeds with its interval; None without a value."""
    return mean_interval(list(row.values.values()), bounds=bounds) if row.values else None


def interval_numbers(interval: Interval) -> dict[str, Any]:
    """An interval over seeds as JSON has it: mean, low, high, seeds, cut."""
    return {"mean": interval.mean, "low": interval.low, "high": interval.high, "seeds": interval.n, "cut": interval.cut}


def few_seeds(counts: Iterable[int]) -> list[str]:
    """That some method has too few seeds to speak of methods, where one has; `counts` are the seeds of each."""
    few = min(counts, default=LEAST_SEEDS) < LEAST_SEEDS
    return [f"no verdict whether losses differ more than seeds: {FEW}"] if few else []


def several_data_sets(methods: Iterable[OneMethod]) -> list[str]:
    """That methods are not compared where their images differ, in words; nothing where they are of one data set."""
    data = {member.head["data_hash"] for method in methods for member in method.members}
    return [f"the runs are of {len(data)} data sets: losses are not compared over them"] if len(data) > 1 else []


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


def one_fold(methods: Sequence[OneMethod]) -> list[OneMethod]:
    """The methods with the runs of one fold, the first that all trained ones have; of an untrained network that has not
    this fold its first one serves, because it has learned from none. A NearkinError without a common fold."""
    trained = [method for method in methods if method.trained] or list(methods)
    folds = [{member.fold for member in method.members} for method in trained]
    shared = set.intersection(*folds)
    if not shared:
        words = [f"{method.name} has {_words(having)}" for method, having in zip(trained, folds, strict=True)]
        raise NearkinError(
            f"the methods have no fold in common, and models of other folds learned from other classes: "
            f"{'; '.join(words[:4])}{'; …' * (len(words) > 4)}"
        )
    first = min(shared, key=_order)
    taken = []
    for method in methods:
        fold = (
            first
            if any(member.fold == first for member in method.members)
            else min((member.fold for member in method.members), key=_order)
        )
        taken.append(replace(method, members=tuple(member for member in method.members if member.fold == fold)))
    return taken


def _order(fold: int | None) -> int:
    return -1 if fold is None else fold


def _words(folds: set[int | None]) -> str:
    return ", ".join("none" if fold is None else str(fold) for fold in sorted(folds, key=_order))


def stored_arrays(analysis: type[Analysis], run: Run) -> dict[str, np.ndarray] | None:
    """The arrays in NAME.npz of a run; None where it cannot be read."""
    try:
        with np.load(run.path / analysis.folder / f"{analysis.name}.npz") as held:
            return dict(held)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def of_each_run(analysis: type[Analysis], gathered: Gathered, **options: Any) -> dict[str, Any]:
    """Run's hash -> the analysis of each tested run; what was not stored yet is stored."""
    runs = {member.run.hash: member.run for member in gathered.tested}
    performed = {}
    for name, run in track(runs.items(), analysis.name.capitalize(), len(runs)):
        performed[name] = analysis.of(run, **options)
        if stored_numbers(analysis, run.path / analysis.folder, options) is None:
            performed[name].save(run.path / analysis.folder)
    return performed
