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
    analyses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # written after its runs -> options
    data_metrics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # data set -> the metrics of its table
    without: tuple[str, ...] = ()  # data sets of the file that no root was given for

    @property
    def select(self) -> str:
        """The metric on validation images that its rows are sorted by: the one that chose the epochs."""
        return self.cells[0].spec.train.select if self.cells else "map_at_r"

    @property
    def data_sets(self) -> list[str]:
        """The names of the data sets that its runs are on."""
        return list(dict.fromkeys(cell.spec.data.name for cell in self.cells))

    def columns_on(self, data: str | None = None) -> list[str]:
        """What its table of a data set shows, or all of them together: validation first, then what was asked for."""
        return [
            f"validation {self.select}",
            *(self.metrics if data is None else self.data_metrics.get(data, self.metrics)),
        ]

    def asked_on(self, data: str | None = None) -> list[str]:
        """The metrics that a test on a data set has to give, or any of its tests."""
        return [metric for metric in self.columns_on(data)[1:] if not metric.startswith("train.")]

    @property
    def headings(self) -> list[str]:
        """The names of its columns of words: the axes, and what else tells rows apart."""
        more = ["evaluation"] if len(self.evaluations) > 1 else []
        return [*self.axes, *more, *(["epoch"] if self.reads else [])]

    @property
    def reads(self) -> bool:
        """Does its table tell other epochs than the chosen ones?"""
        return self.readings != ("chosen",)
