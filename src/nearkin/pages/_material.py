"""What all sections read: the stored runs, and the comparisons that are made of them. Nothing is computed that needs
embeddings, and no test label is opened.

Every mean of the page is that of a row on the unit of comparison (statistics/unit.py), the one that `nearkin compare`
prints; every difference is taken on what two rows have in common.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from nearkin.comparison.compare import DATA_KEYS, Comparison, canonical_metric, compare, lacks
from nearkin.comparison.gather import Gathered, Member
from nearkin.comparison.method import Method
from nearkin.comparison.rows import methods_of, row_of
from nearkin.errors import NearkinError
from nearkin.pages._base import slug
from nearkin.pages._slicing import MOST, Slicing
from nearkin.pages._words import called
from nearkin.registry import LOSSES
from nearkin.statistics.intervals import Interval
from nearkin.statistics.unit import Row

METHOD_AXES = ("loss", "method", "loss.name", "method.name")


@dataclass
class Board:
    """The comparison on one data set."""

    data: str  # as headings call it
    comparison: Comparison  # rows: all that tells runs apart
    ranked: Comparison  # rows: methods alone, other axes are settings of the tournament
    suffix: str  # "" or -NAME, for ids where there are several data sets
    gathered: Gathered
    by: tuple[str, ...]  # what rows are: axes or settings

    @property
    def methods(self) -> list[Method]:
        """Its rows, best first."""
        return self.comparison.methods

    @property
    def trained(self) -> list[Method]:
        """Its rows without the untrained networks."""
        return self.comparison.trained

    @property
    def grid(self) -> str:
        """The id of its leaderboard, whose menus choose the methods that all parts of the board show."""
        return f"leaderboard-grid{self.suffix}"

    def slicing(self, methods: dict[str, str] | None = None, most: int = MOST) -> Slicing:
        """How its charts follow these menus; `methods`: what a chart calls a row -> the method."""
        return Slicing(self.grid, methods, most)

    @property
    def where(self) -> str:
        """The beginning of a heading, where there are several data sets."""
        return f"{self.data}: " if self.suffix else ""

    @cached_property
    def members(self) -> list[Member]:
        """The tested runs on this data set."""
        data = self.methods[0].members[0].head["data_hash"]
        return [member for member in self.gathered.tested if member.head["data_hash"] == data]

    def by_metric(self, metric: str, *, reading: str = "chosen", evaluation: str = "separated") -> dict[str, Method]:
        """The same rows by another metric, epoch or evaluation, by their names: what `nearkin compare` shows of it."""
        asked = (metric, reading, evaluation)
        if asked not in self._by_metric:
            methods = methods_of(self.gathered, self.members, self.by, metric, reading=reading, evaluation=evaluation)
            self._by_metric[asked] = {method.name: method for method in methods}
        return self._by_metric[asked]

    @cached_property
    def _by_metric(self) -> dict[tuple[str, str, str], dict[str, Method]]:
        return {}

    def interval(self, method: Method, metric: str, *, evaluation: str = "separated") -> Interval | None:
        """A row's mean of another metric, with its interval; None where it is not stored."""
        other = self.by_metric(metric, evaluation=evaluation).get(method.name)
        return None if other is None else other.interval

    def row(self, method: Method, value: Callable[[Member], float | None]) -> Row:
        """Any value of a row's runs, as a row: folds and settings are averaged by the same rule as its metrics."""

        def setting(member: Member) -> tuple[str, ...]:
            return tuple(member.label(key) for key in self.comparison.block_keys)

        return row_of(method.name, method.members, "", setting=setting, value=value)


@dataclass
class Material:
    """Stored runs, and what is asked of them."""

    gathered: Gathered
    metric: str
    boards: list[Board]
    published: str | None = None
    command: str = ""

    @property
    def trained(self) -> list[Member]:
        """The tested members that were trained."""
        return [member for member in self.gathered.tested if not member.untrained]

    def stored_metrics(self) -> list[str]:
        """The test metrics that every tested run has, in the order of the first one's result."""
        metrics = [member.run.metrics() for member in self.gathered.tested]
        return [name for name in (metrics[0] if metrics else {}) if all(name in stored for stored in metrics)]

    def missing(self, metrics: Iterable[str]) -> list[str]:
        """For each of these metrics that not all runs have: the command that measures it."""
        known = {metric: not_stored(self.gathered, metric) for metric in metrics}
        return [f"{called(metric)} is {words}." for metric, words in known.items() if words is not None]


def material(
    gathered: Gathered,
    *,
    metric: str = "map_at_r",
    by: Sequence[str] | None = None,
    published: str | None = None,
    command: str = "",
) -> Material:
    """Compare what was gathered, once for each data set.

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
        raise gathered.nothing_tested()
    check_stored(gathered, metric)
    keys = list(by) if by else list(gathered.axes) or ["loss"]
    comparisons = compare(gathered, by=_with_data(tested, keys), metric=metric)
    method = [_method_axis(keys)] if len(keys) > 1 and gathered.axes else keys
    ranked = compare(gathered, by=_with_data(tested, method), metric=metric) if method != keys else comparisons
    names = _data_names([c.methods[0].members[0] for c in comparisons])
    suffixes = [f"-{slug(name) or i}" if len(names) > 1 else "" for i, name in enumerate(names)]
    rows = tuple(key for key in keys if key not in DATA_KEYS) or ("loss",)
    boards = [Board(*its, gathered, rows) for its in zip(names, comparisons, ranked, suffixes, strict=True)]
    return Material(gathered, metric, boards, published, command)


def check_stored(gathered: Gathered, metric: str) -> None:
    """A report computes no metric: it says which command does."""
    if words := not_stored(gathered, metric):
        raise NearkinError(f"metric={metric}: {words}")


def not_stored(gathered: Gathered, metric: str) -> str | None:
    """How many runs lack a metric, and the command that measures it; None where all have it."""
    lacking = sum(lacks(member, metric) for member in gathered.tested)
    if not lacking:
        return None
    name = gathered.name if gathered.axes else " ".join(member.run.hash for member in gathered.tested)
    return (
        f"not stored for {lacking} of {len(gathered.tested)} runs; `nearkin compare {name} --metric {metric}` "
        "measures it from their embeddings"
    )


def kind_words(method: Method) -> str:
    """What a row is: ranking, classification, or a network that was not trained on these images."""
    if method.trained:
        return method.kind
    return untrained_words(method.members[0])


def untrained_words(member: Member) -> str:
    """How a network without training came by its weights."""
    return "untrained" if member.settings.get("model.weights") is None else "pretrained, not trained on your images"


def final_of(member: Member) -> dict[str, Any]:
    """What its final.json holds: the choice of the epoch, and what training cost."""
    return member.run.read_json("final.json")


def _with_data(members: list[Member], keys: list[str]) -> list[str]:
    several = len({member.head["data_hash"] for member in members}) > 1
    return keys if not several or any(key in DATA_KEYS for key in keys) else ["data", *keys]


def _method_axis(keys: list[str]) -> str:
    candidates = [key for key in keys if key not in DATA_KEYS and key != "base"] or keys
    return next((key for key in candidates if key in METHOD_AXES), candidates[0])


def _data_names(members: list[Member]) -> list[str]:
    """Data sets as headings call them: a folder by its name; equal names with the beginning of their hash."""
    names = [data_name(member) for member in members]
    return [
        name if names.count(name) == 1 else f"{name} {member.head['data_hash'][:6]}"
        for name, member in zip(names, members, strict=True)
    ]


def data_name(member: Member) -> str:
    """The data set of a run: its name; that of the folder where it is a folder of someone's own."""
    name, root = member.settings["data.name"], member.settings.get("data.root")
    return Path(root).name or name if root and name in ("folder", "csv") else name


def year_of(member: Member) -> int | None:
    """When the paper of its loss appeared."""
    name = str(member.settings.get("loss.name"))
    if member.untrained or name not in LOSSES:
        return None
    year = re.search(r"\b(19|20)\d\d\b", getattr(LOSSES[name], "paper", "") or "")
    return int(year[0]) if year else None
