"""From stored runs to what a comparison needs: a study by its name, or runs by theirs. Nothing is trained."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from nearkin.config.parse import flatten, read_yaml
from nearkin.config.spec import ALIASES
from nearkin.consent import import_paths, note_stored
from nearkin.errors import NearkinError, and_more, choices
from nearkin.evaluation.metrics.base import EPOCH
from nearkin.runs.listing import Where, conditions, state, where_words
from nearkin.runs.store import Run, Store
from nearkin.runs.tested import values_per_query
from nearkin.statistics.unit import ByClass, by_class
from nearkin.storage import without_sum
from nearkin.studies.baselines import ANY, baseline_of
from nearkin.studies.readings import best_epoch, read
from nearkin.studies.runner import REFUSED

MOST_NAMED = 5  # runs that a command names
LOSS = ("loss", "loss.name")  # settings that an untrained network does not have
CELL = {"fold": None, "baseline": None, "error": None, "trials": 0, "searched_epochs": 0}  # in files without the key
LISTS, PLAIN = (
    ("axes", "metrics", "readings", "evaluations"),
    ("select", "twin", "file", "data_metrics"),
)  # of study.json


@dataclass
class Member:
    """One run of a comparison: its labels on the axes, its seed and its fold."""

    labels: dict[str, str]  # axis -> label; empty for a run that is in no study
    seed: int
    fold: int | None
    run: Run
    baseline: str | None = None  # which, if it is an untrained network beside trained ones
    error: str | None = None  # why it failed
    trials: int = 0  # of the search that chose its settings
    searched_epochs: int = 0  # that those trials were trained for, all together
    done: bool = field(init=False)  # is it tested? Looked up once: a run that changes a moment later stays what it was

    def __post_init__(self) -> None:
        self.done = self.run.tested

    @cached_property
    def head(self) -> dict[str, Any]:
        """What its spec.yaml holds."""
        return self.run.head()

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Its stored spec as dotted keys."""
        return flatten(self.head["spec"])

    @property
    def untrained(self) -> bool:
        """Is it a network as it was before training?"""
        return self.settings["train.epochs"] == 0

    def label(self, key: str, argument: str = "by") -> str:
        """What it is on an axis of its study, or under a setting: `loss`, `dim`, `loss.margin`. The error names the
        argument that has the key."""
        if key in self.labels:
            return self.labels[key]
        if self.baseline is not None and key in LOSS:
            return f"{self.baseline} (untrained)"
        setting = ALIASES.get(key, key)
        if setting not in self.settings:
            known = choices(key, {*self.labels, *self.settings, *ALIASES})
            raise NearkinError(f"{argument}={key}: neither an axis nor a setting of run {self.run.hash}; {known}")
        return str(self.settings[setting])

    def value(self, metric: str, reading: str = "chosen") -> float | None:
        """A test metric, train.NAME, `validation NAME` or `epoch of best NAME`; None where it is not stored."""
        if metric.startswith(EPOCH):
            return best_epoch(self.run, metric.removeprefix(EPOCH)) if self.done and not self.untrained else None
        select = metric.removeprefix("validation ")
        numbers = read(self.run, "chosen" if select != metric else reading, select) if self.done else {}
        value = numbers.get(metric)
        return None if value is None or not math.isfinite(value) else value

    @cached_property
    def queries(self) -> int | None:
        """How many images were searched for in its test; None for runs that did not note it."""
        return self.run.result.get("test_n") if self.done else None

    def by_class(self, metric: str) -> ByClass | None:
        """Its test metric class by class; None where values per query are not stored."""
        if metric not in self._by_class:
            stored = values_per_query(self.run, metric) if self.done else None
            self._by_class[metric] = None if stored is None else by_class(*stored)
        return self._by_class[metric]

    @cached_property
    def _by_class(self) -> dict[str, ByClass | None]:
        return {}


class Absent(str):
    """A cell without a stored run: what it is and why it is absent, in words."""

    labels: dict[str, str]  # axis -> label

    def __new__(cls, words: str, labels: dict[str, str]) -> "Absent":
        absent = super().__new__(cls, words)
        absent.labels = labels
        return absent


@dataclass
class Gathered:
    """Runs that are to be compared, and what their study says about them."""

    name: str
    members: list[Member]
    store: Store
    axes: tuple[str, ...] = ()  # of a study
    metrics: tuple[str, ...] = ()
    data_metrics: Mapping[str, Sequence[str]] = field(default_factory=dict)  # data set -> those of its table
    select: str = "map_at_r"  # what chose the epochs
    readings: tuple[str, ...] = ("chosen",)
    evaluations: tuple[str, ...] = ("separated",)
    twin: str = ""
    file: str = ""  # the study's file as it was read
    absent: Sequence[str] = field(default_factory=list)  # cells without a stored run, in words
    where: tuple[str, ...] = ()  # the words KEY=VALUE, sorted, that chose a slice of what is stored

    @property
    def is_study(self) -> bool:
        """Are they the runs of a study, or of a slice of it?"""
        return bool(self.metrics)  # a study names at least one

    @property
    def rows_by(self) -> tuple[str, ...]:
        """What its rows are, unless something else is asked for: all axes, or the loss."""
        return self.axes or ("loss",)

    @property
    def tested(self) -> list[Member]:
        """The members with a result."""
        return [member for member in self.members if member.done]

    @property
    def by_data(self) -> dict[str, list[Member]]:
        """The members with a result by the hash of their data: values on different images are never compared."""
        members: dict[str, list[Member]] = {}
        for member in self.tested:
            members.setdefault(member.head["data_hash"], []).append(member)
        return members

    @property
    def data_names(self) -> dict[str, str]:
        """The name of each data set by its hash; equal names with the beginning of the hash."""
        names = {data: members[0].settings["data.name"] for data, members in self.by_data.items()}
        alike = [name for name, count in Counter(names.values()).items() if count > 1]
        return {data: f"{name}-{data[:6]}" if name in alike else name for data, name in names.items()}

    @property
    def joined(self) -> Path:
        """Where the values of joined folds are kept."""
        return self.store.root / "studies" / self.name / "joined"

    def nothing_tested(self) -> NearkinError:
        """The error that says so, with the command that tests what is final."""
        final = [member.run.hash for member in self.members if member.run.final and member.run.testable]
        more = "" if len(final) <= MOST_NAMED else f" and {len(final) - MOST_NAMED} more"
        hint = f": `nearkin test {' '.join(final[:MOST_NAMED])}`{more}" if final else ""
        if len(self.members) == 1:
            run = self.members[0].run
            if run.final and run.purpose == "final" and not run.testable:
                shown = f"; `nearkin report {run.hash}` shows what it is worth" if run.has("estimate.json") else ""
                return NearkinError(f"run {run.hash} was trained on all classes: nothing tests it{shown}")
            return NearkinError(f"run {run.hash} is not tested ({state(run)}){hint}")
        return NearkinError(f"{self.name}: none of its {len(self.members)} runs is tested{hint}")


def gather(names: Sequence[str], runs: Path | str = "runs", where: Where = ()) -> Gathered:
    """What is stored under these names, or the slice of it that `where` describes.

    Parameters:
        names: one study: its name, its file, or its study.json; or runs: paths, hashes, beginnings of hashes, or a
            folder of runs.
        runs: the folder of the stored runs.
        where: only these runs: axis or setting -> value or list of values, as {"backbone": "resnet50"}; or words, as
            "backbone=resnet50".
    """
    gathered = _named(names, Store(runs))
    return sliced(gathered, where) if where else gathered


def sliced(gathered: Gathered, where: Where) -> Gathered:
    """The runs that have these values. The untrained networks beside them, which are the same whatever
    stands on an axis, stay."""
    wanted = conditions(where)
    for key, values in wanted.items():
        labels = {member.label(key, "where") for member in gathered.members}
        for value in values:
            if value not in labels:
                raise NearkinError(f"where={key}={value}: no run has it; {choices(value, labels - {ANY})}")

    def fits(member: Member) -> bool:
        network = member.baseline is not None
        return all(member.label(key) in (*values, ANY) or (network and key in LOSS) for key, values in wanted.items())

    chosen = tuple(sorted(where_words(where)))
    members = [member for member in gathered.members if fits(member)]
    if not members:
        raise NearkinError(f"where={' '.join(chosen)}: no run of {gathered.name} has all of that")
    axes = tuple(axis for axis in gathered.axes if len(wanted.get(axis, ())) != 1)
    absent = [
        cell
        for cell in gathered.absent
        if not isinstance(cell, Absent) or all(label in wanted.get(key, [label]) for key, label in cell.labels.items())
    ]
    return replace(gathered, members=members, axes=axes, absent=absent, where=chosen)


def _named(names: Sequence[str], store: Store) -> Gathered:
    if not names:
        raise NearkinError("nothing to compare: name a study, or at least two runs")
    if len(names) == 1:
        name, folder = names[0], Path(names[0])
        if (content := _study_json(name, store)) is not None:
            return _from_study(content, store)
        if not (folder / "spec.yaml").exists() and folder.is_dir() and any(folder.glob("*/spec.yaml")):
            store = Store(folder)
            if runs := [run for run in store.runs() if _is_final_run(run)]:
                return _from_runs(runs, store)
            raise NearkinError(f"{name}: no stored run")
        if not any(run.hash.startswith(name) for run in store.runs()):
            raise NearkinError(f"no study and no run {name!r} in {store.root}: {_stored(name, store)}")
    return _from_runs([store.find(name) for name in dict.fromkeys(names)], store)


def _stored(name: str, store: Store) -> str:
    """What a store has instead of this name."""
    studies = {file.parent.name for file in store.root.glob("studies/*/study.json")}
    runs = [run.hash for run in store.runs()]
    words = [choices(name, studies)] if studies else []
    words += [f"{'its run is' if len(runs) == 1 else 'its runs are'} {and_more(runs)}"] if runs else []
    return "; ".join(words) or "nothing is stored there"


def _is_final_run(run: Run) -> bool:
    """Is it no trial? A damaged run, which cannot say, is counted: it is shown as damaged."""
    try:
        return run.purpose == "final"
    except NearkinError:
        return run.path.exists()


def _study_json(name: str, store: Store) -> dict[str, Any] | None:
    """The study.json of a study that is named, or given by its YAML file or by study.json itself; None: no study."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml") and path.is_file():
        name = str(read_yaml(path).get("name", path.stem))
        file = store.root / "studies" / name / "study.json"
        if not file.exists():
            raise NearkinError(f"study {name!r} was not run in {store.root}: nearkin study {path} --runs {store.root}")
    else:
        file = path if path.name == "study.json" else store.root / "studies" / name / "study.json"
        if not name or not file.is_file():
            return None
    try:
        content = without_sum(json.loads(file.read_text()))
        missing = [key for key in ("name", "axes", "metrics", "cells") if key not in content]
        note_stored(import_paths(content))  # metrics by import paths: nothing is imported
    except (OSError, ValueError, TypeError, RecursionError) as error:
        reason = str(error) if type(error) is ValueError else type(error).__name__
        raise NearkinError(f"{file} is damaged ({reason}): run the study again, which writes it anew") from error
    if missing:
        raise NearkinError(f"{file} is damaged (it has no {missing[0]}): run the study again, which writes it anew")
    return content


def _from_study(content: dict[str, Any], store: Store) -> Gathered:
    """Keys that study.json did not have at first are read as what they then were."""
    members, absent = [], []
    for stored in content["cells"]:
        cell, run = CELL | stored, store.run(stored["run"])
        labels = dict(zip(content["axes"], cell["labels"], strict=True))
        words = f"{' '.join(cell['labels'])} seed {cell['seed']}"
        if cell["run"] == REFUSED or not (run.path / "spec.yaml").exists():
            fold = "" if cell["fold"] is None else f" fold {cell['fold']}"
            absent.append(Absent(f"{words}{fold}: {cell['error'] or 'not run yet'}", labels))
        elif (damage := run.damage()) is not None:
            absent.append(Absent(f"{words}: {damage}", labels))
        else:
            members.append(Member(labels, cell["seed"], run=run, **{key: cell[key] for key in CELL}))
    about: dict[str, Any] = {key: tuple(content[key]) for key in LISTS if key in content}
    about |= {key: content[key] for key in PLAIN if key in content}
    return Gathered(content["name"], members, store, absent=absent, **about)


def _from_runs(runs: list[Run], store: Store) -> Gathered:
    members, absent = [], []
    for run in runs:
        if (damage := run.damage()) is not None:
            absent.append(Absent(damage, {}))
            continue
        settings = flatten(run.stored)
        head, init = settings["model.head"], settings.get("model.init", "kaiming")
        baseline = None if settings["train.epochs"] else baseline_of(head, init)
        members.append(Member({}, settings["train.seed"], settings.get("protocol.fold"), run, baseline))
    if not members:
        raise NearkinError(and_more(absent, 3))
    return Gathered("runs", members, store, absent=absent)
