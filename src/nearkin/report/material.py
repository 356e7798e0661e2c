"""What all sections read: the stored runs, each file read once, and the comparisons that are made of them."""

import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from nearkin.comparison.compare import Comparison, Method, canonical_metric, compare
from nearkin.comparison.gather import Gathered, Member
from nearkin.errors import NearkinError
from nearkin.evaluation.metrics.base import metric_of
from nearkin.registry import LOSSES
from nearkin.report.base import Column, slug
from nearkin.runs.store import Run
from nearkin.statistics.intervals import Interval, mean_interval

DATA_KEYS = ("data", "dataset", "data.name", "root", "data.root")
METHOD_AXES = ("loss", "method", "loss.name", "method.name")


class Kept(Run):
    """A run whose spec.yaml is read once: reading it takes longer than anything else of a page."""

    @cached_property
    def _head(self) -> dict[str, Any]:
        return super().head()

    def head(self) -> dict[str, Any]:
        """What spec.yaml holds."""
        return self._head


def keep(gathered: Gathered) -> None:
    """Let every run of these be read once; cells that share a run share it."""
    kept = {member.run.hash: Kept(member.run.path) for member in gathered.members}
    for member in gathered.members:
        member.run = kept[member.run.hash]


@dataclass
class Record:
    """A tested run: its files as plain values, each read once."""

    member: Member

    @cached_property
    def final(self) -> dict[str, Any]:
        """What final.json holds."""
        return self.member.run.read_json("final.json")

    @cached_property
    def result(self) -> dict[str, Any]:
        """What result.json holds."""
        return self.member.run.result

    @cached_property
    def metrics(self) -> dict[str, float]:
        """All test metrics that are stored."""
        return self.member.run.metrics()

    @cached_property
    def space(self) -> dict[str, float]:
        """The metrics of its training embeddings, as train.NAME."""
        found = self.final.get("train") or self.result.get("train") or {}
        return {f"train.{name}": value for name, value in found.items()}

    @cached_property
    def curve(self) -> list[dict[str, Any]]:
        """Its learning curve, one row per epoch."""
        return self.member.run.curve()

    @cached_property
    def test_curve(self) -> list[dict[str, Any]]:
        """Test metrics of every epoch, where they were kept."""
        stored = (self.member.run.path / "curve.json").exists()
        return self.member.run.read_json("curve.json")["epochs"] if stored else []

    def value(self, metric: str) -> float | None:
        """A test metric, train.NAME or `validation NAME`."""
        if metric.startswith("validation "):
            return self.final["validation"].get(metric.removeprefix("validation "))
        return self.metrics.get(metric, self.space.get(metric))


@dataclass
class Board:
    """The comparison on one data set."""

    data: str  # as headings call it
    comparison: Comparison  # rows: all that tells runs apart
    ranked: Comparison  # rows: methods alone, other axes are settings of the tournament
    suffix: str  # "" or -NAME, for ids where there are several data sets

    @property
    def methods(self) -> list[Method]:
        """Its rows, best first."""
        return self.comparison.methods

    @property
    def where(self) -> str:
        """The beginning of a heading, where there are several data sets."""
        return f"{self.data}: " if self.suffix else ""


@dataclass
class Material:
    """Stored runs, and what is asked of them."""

    gathered: Gathered
    metric: str
    boards: list[Board]
    records: dict[str, Record]  # run hash -> its files
    published: str | None = None
    command: str = ""

    @property
    def trained(self) -> list[Member]:
        """The tested members that were trained."""
        return [member for member in self.gathered.tested if not member.untrained]

    def record(self, member: Member) -> Record:
        """The files of a member."""
        return self.records[member.run.hash]

    def interval(self, members: Iterable[Member], what: str | Callable[[Record], float | None]) -> Interval | None:
        """Mean and interval of a metric or another value over seeds, folds averaged; None where it is not stored."""
        value = what if callable(what) else lambda record: record.value(what)
        seeds: dict[int, list[float | None]] = {}
        for member in members:
            if member.done:
                seeds.setdefault(member.seed, []).append(value(self.record(member)))
        whole = [statistics.fmean(own) for own in seeds.values() if all(v is not None for v in own)]  # type: ignore[arg-type]
        return mean_interval(whole) if whole else None

    def stored_metrics(self) -> list[str]:
        """The test metrics that every tested run has, in the order of the first one's result."""
        records = [self.record(member) for member in self.gathered.tested]
        return [m for m in (records[0].metrics if records else {}) if all(m in record.metrics for record in records)]


def material(
    gathered: Gathered, *, metric: str = "map_at_r", by: Sequence[str] | None = None, published: str | None = None,
    command: str = "",
) -> Material:  # fmt: skip
    """Compare what was gathered, once for each data set. Nothing is computed that needs embeddings.

    Parameters:
        gathered: the stored runs.
        metric: what the page is about.
        by: what rows are: axes or settings; None: all axes of the study, or the loss.
        published: id of a published table that is shown beside.
        command: how the page was made, in words.
    """
    metric = canonical_metric(metric)
    tested = gathered.tested
    if not tested:
        raise NearkinError(f"{gathered.name}: none of its {len(gathered.members)} runs is tested; nothing to report")
    records = {member.run.hash: Record(member) for member in tested}
    check_stored(gathered, metric, records)
    keys = list(by) if by else list(gathered.axes) or _telling(tested)
    comparisons = compare(gathered, by=_with_data(tested, keys), metric=metric)
    method = [_method_axis(keys)] if len(keys) > 1 and gathered.axes else keys
    ranked = compare(gathered, by=_with_data(tested, method), metric=metric) if method != keys else comparisons
    names = _data_names([c.methods[0].members[0] for c in comparisons])
    suffixes = [f"-{slug(name) or i}" if len(names) > 1 else "" for i, name in enumerate(names)]
    boards = [Board(*each) for each in zip(names, comparisons, ranked, suffixes, strict=True)]
    return Material(gathered, metric, boards, records, published, command)


def check_stored(gathered: Gathered, metric: str, records: dict[str, Record]) -> None:
    """A report computes no metric: it says which command does."""
    if metric.startswith(("train.", "validation ")):
        return
    lacking = [record for record in records.values() if metric not in record.metrics
               or (record.test_curve and metric not in record.test_curve[0]["metrics"])]  # fmt: skip
    if lacking:
        name = gathered.name if gathered.axes else " ".join(m.run.hash for m in gathered.tested)
        raise NearkinError(
            f"--metric {metric}: not stored for {len(lacking)} of {len(records)} runs; `nearkin compare {name} "
            f"--metric {metric}` computes it from their embeddings"
        )


def _telling(members: list[Member]) -> list[str]:
    """What tells single runs apart: the loss, and what else it takes for one run per row and seed."""
    keys = ["loss"]
    for key in ("method.name", "miner.name", "sampler.name", "regulariser.name", "protocol.name", "train.epochs"):
        if len({str(m.settings.get(key)) for m in members if m.baseline is None}) > 1 and all(
            key in m.settings for m in members
        ):
            keys.append(key)
    return keys


def _with_data(members: list[Member], keys: list[str]) -> list[str]:
    several = len({member.head["data_hash"] for member in members}) > 1
    return keys if not several or any(key in DATA_KEYS for key in keys) else ["data", *keys]


def _method_axis(keys: list[str]) -> str:
    own = [key for key in keys if key not in DATA_KEYS and key != "base"] or keys
    return next((key for key in own if key in METHOD_AXES), own[0])


def _data_names(members: list[Member]) -> list[str]:
    """Data sets as headings call them: a folder by its name; equal names with the beginning of their hash."""
    names = [data_name(member) for member in members]
    return [name if names.count(name) == 1 else f"{name} {member.head['data_hash'][:6]}"
            for name, member in zip(names, members, strict=True)]  # fmt: skip


def data_name(member: Member) -> str:
    """The data set of a run: its name; that of the folder where it is a folder of someone's own."""
    name, root = member.settings["data.name"], member.settings.get("data.root")
    return Path(root).name or name if root and name in ("folder", "csv") else name


def shown_metric(metric: str, value: float | None) -> str:
    """A metric as people read it: shares in per cent."""
    if value is None:
        return "–"
    return f"{100 * value:.2f}" if metric_of(metric).is_share else f"{value:.4g}"


# as papers write them; others go by their own names
CALLED = {"map_at_r": "MAP@R", "map_at_c": "MAP@C", "map_at_1000": "MAP@1000", "r_precision": "R-precision",
          "recall": "Recall", "p": "P", "mrr": "MRR", "nmi": "NMI", "ami": "AMI", "f1": "F1", "rho": "ρ"}  # fmt: skip


def called(metric: str) -> str:
    """A metric as papers write it: MAP@R, Recall@1."""
    before = next((start for start in ("validation ", "train.") if metric.startswith(start)), "")
    name, at, k = metric.removeprefix(before).partition("@")
    words = CALLED.get(name, name) + at + k
    return f"{before}{words}" if before != "train." else f"{words} (training images)"


def heading(metric: str) -> str:
    """Its name above a column."""
    return f"{called(metric)} %" if metric_of(metric).is_share else called(metric)


def unit(metric: str) -> str:
    """% for shares."""
    return "%" if metric_of(metric).is_share else ""


def signed(metric: str, value: float | None) -> str:
    """A difference as people read it: shares in points."""
    if value is None:
        return "–"
    return f"{100 * value:+.2f}" if metric_of(metric).is_share else f"{value:+.4g}"


def metric_column(metric: str, name: str = "", title: str = "") -> Column:
    """A column of a grid that shows a metric; its table has it under the metric's name, or under another."""
    own = name or metric
    return Column(own, title or heading(metric), lambda row: shown_metric(metric, row[own]))


def interval_of(metric: str) -> dict[str, Any]:
    """What charts of a metric with its interval share: columns, per cent and the title of the axis."""
    shares = percent(metric, metric, "low", "high")
    return {"y": metric, "low": "low", "high": "high", "percent": shares, "y_title": heading(metric)}


def percent(metric: str, *columns: str) -> tuple[str, ...]:
    """The columns of a chart that are shares: those given, if the metric is one."""
    return columns if metric_of(metric).is_share else ()


def year_of(member: Member) -> int | None:
    """When the paper of its loss appeared."""
    name = str(member.settings.get("loss.name"))
    if member.untrained or name not in LOSSES:
        return None
    found = re.search(r"\b(19|20)\d\d\b", getattr(LOSSES[name], "paper", "") or "")
    return int(found[0]) if found else None


PATH = re.compile(r"(?<![\w./:<-])(?:~|[A-Za-z]:)?[/\\](?:[^/\\\s'\",;:(){}\[\]<>]+[/\\])+")


@dataclass
class Scrubber:
    """Takes the folders of this machine out of texts; the last name of a path stays."""

    known: list[str] = field(default_factory=list)  # paths that are known as such, whatever is in their names

    @classmethod
    def of(cls, gathered: Gathered) -> "Scrubber":
        """One that knows the folders of these runs."""
        known = {str(gathered.store.root.resolve()), str(Path.home())}
        for member in gathered.members:
            for value in member.settings.values():
                if isinstance(value, str) and Path(value).is_absolute():
                    known.add(value)
        return cls(sorted((each for each in known if len(each) > 1), key=len, reverse=True))

    def __call__(self, text: str) -> str:
        for path in self.known:
            text = text.replace(path, f"…/{Path(path).name}")
        return PATH.sub("…/", text)
