"""What a study is once its file is read: cells, and the table that is wanted of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nearkin.config.spec import RunSpec


@dataclass(frozen=True)
class Cell:
    """One run of a study: its place on the axes, its seed, its spec."""

    labels: tuple[str, ...]
    seed: int
    spec: RunSpec
    fold: int | None = None  # of a protocol with folds
    baseline: str | None = None  # which, if it was added beside trained cells
    trials: int = 0  # of the search that chose its settings
    searched_epochs: int = 0  # that those trials were trained for, all together


@dataclass(frozen=True)
class Study:
    """A grid of runs: its axes, its cells, and what its table shows of them."""

    name: str
    axes: tuple[str, ...]
    cells: tuple[Cell, ...]
    metrics: tuple[str, ...]  # of the test; train.* of the training embeddings
    text: str = ""  # the file as it was read
    twin: tuple[str, ...] = ()  # the published tables and figures that it repeats (studies/twin.py)
    readings: tuple[str, ...] = ("chosen",)  # which epochs of a run are told (studies/readings.py)
    evaluations: tuple[str, ...] = ("separated",)  # of folds: each by itself, or their embeddings joined
    tune: Mapping[str, Any] | None = None  # how the settings of its rows are searched (tuning/plan.py)
    differs: Mapping[str, str] = field(default_factory=dict)  # what is not as in its twin on purpose -> why
    analyses: tuple[str, ...] = ()  # that its command writes after the runs

    @property
    def select(self) -> str:
        """The metric on validation images that its rows are sorted by: the one that chose the epochs."""
        return self.cells[0].spec.train.select if self.cells else "map_at_r"

    def metrics_on(self, data: str) -> tuple[str, ...]:
        """The columns of its rows on a data set."""
        return self.metrics

    @property
    def columns(self) -> list[str]:
        """What its table shows: validation first, then what was asked for."""
        return [f"validation {self.select}", *self.metrics]

    @property
    def asked(self) -> list[str]:
        """The metrics that a test has to give."""
        return [metric for metric in self.metrics if not metric.startswith("train.")]

    @property
    def headings(self) -> list[str]:
        """The names of its columns of words: the axes, and what else tells rows apart."""
        more = ["evaluation"] if len(self.evaluations) > 1 else []
        return [*self.axes, *more, *(["epoch"] if self.reads else [])]

    @property
    def reads(self) -> bool:
        """Does its table tell other epochs than the chosen ones?"""
        return self.readings != ("chosen",)
