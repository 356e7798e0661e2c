"""The experiments of a claim: the rows of one data set, network and size, and a note of what they lack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nearkin.evaluation.metrics.base import EPOCH
from nearkin.literature.matching import SEPARATED, StudyRow, fits, grouped, settings_of, shared_keys, words_of
from nearkin.statistics.unit import Row

Group = list[list[StudyRow]]  # of equal settings: the rows of every method


@dataclass
class Missing:
    """What a study lacks for a claim, each once."""

    rows: dict[str, None] = field(default_factory=dict)  # in words
    metrics: dict[tuple[str, str], None] = field(default_factory=dict)  # metric, evaluation

    def __bool__(self) -> bool:
        return bool(self.rows or self.metrics)

    def add(self, other: "Missing") -> None:
        """What another condition of the claim lacks."""
        self.rows |= other.rows
        self.metrics |= other.metrics

    def words(self, study: str) -> list[str]:
        """Metrics, with the command that measures them in this study, and rows."""
        metrics = []
        for metric, evaluation in self.metrics:
            joined = "" if evaluation == SEPARATED else f" --evaluation {evaluation}"
            words = f"the metric {metric}{' of joined folds' if joined else ''}"
            if not metric.startswith(("train.", EPOCH)):  # which training leaves, or nobody can measure
                words += f": `nearkin compare {study}{joined} --metric {metric}` measures it"
            metrics.append(words)
        return [*metrics, *self.rows]


@dataclass(frozen=True)
class Experiment:
    """The rows of one of a claim's experiments (a data set, and where it names them a network and a size)."""

    rows: Sequence[StudyRow]
    missing: Missing  # of all experiments of the claim
    words: str = ""  # what tells it apart from the others: data.name=cub, model.dim=64
    where: str = ""  # the same for the words of a comparison, which name the rows: ` on cub`

    def lack(self, what: str) -> None:
        """Note that rows are missing."""
        self.missing.rows[what + (f" at {self.words}" if self.words else "")] = None

    def rows_with(self, settings: Mapping[str, Any]) -> list[StudyRow]:
        """The rows with these settings; it is noted if there are none."""
        rows = [row for row in self.rows if fits(row.spec, settings)]
        if not rows:
            self.lack(words_of(settings))
        return rows

    def values(self, rows: Sequence[StudyRow], metric: str, evaluation: str = SEPARATED) -> list[Row] | None:
        """The values of rows by one metric; None where one of them lacks it, which is noted."""
        values = [row.values(metric, evaluation) for row in rows]
        if None in values:
            self.missing.metrics[metric, evaluation] = None
            return None
        return [value for value in values if value is not None]

    def groups(self, methods: Sequence[Any], *, single: bool = False) -> list[Group]:
        """The groups of equal settings in which every method was run; `single`: with one row each."""
        settings = [settings_of(method) for method in methods]
        selected = [self.rows_with(method) for method in settings]
        if not all(selected):
            return []
        keys = shared_keys(selected, {key for method in settings for key in method})
        groups: list[Group] = []
        for alike in grouped((row for rows in selected for row in rows), keys).values():
            group = [[row for row in alike if fits(row.spec, method)] for method in settings]
            if all(group) and single and any(len(mine) > 1 for mine in group):
                twice = next(words_of(method) for method, mine in zip(settings, group, strict=True) if len(mine) > 1)
                self.lack(f"one row per method and setting (of {twice} it has several)")
            elif all(group):
                groups.append(group)
        if not groups and not self.missing.rows:
            self.lack("all methods with settings that are otherwise equal")
        return groups
