"""How much of the retrieval is left when test images are corrupted? Nine corruptions, of a run and of a study."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from nearkin.analysis._corrupt import CORRUPTIONS
from nearkin.analysis._corrupted import METRICS, VERSION, Measured
from nearkin.analysis._over_runs import OneMethod, interval_numbers, interval_of, methods_of, of_each_run, stored_arrays
from nearkin.analysis.base import Analysis, stored_numbers
from nearkin.comparison.gather import Gathered
from nearkin.evaluation.metrics.base import metric_of
from nearkin.present import Bars, Chart, Column, Heatmap, Pictures, Table, pivot
from nearkin.registry import ANALYSES
from nearkin.runs.store import Run
from nearkin.units import COUNT, SHARE

PLACES = {"all": "queries and gallery", "queries": "queries only"}
NOTE = (
    "mean is that of the nine; drop is (clean - mean) / clean; the same seed does the same to an image, whatever "
    "the run"
)
VALUE = Column("value", unit=SHARE, digits=1)


@ANALYSES.register("corruptions", version=VERSION)
@dataclass(frozen=True)
class Corruptions(Analysis):
    """Recall@1 and MAP@R on corrupted test images: nine corruptions, each on queries and gallery and on queries alone.

    A run is trained on clean images and its test images are corrupted, each in a way that the seed and its row decide.
    With queries only, the gallery is the clean one, in which an image is never its own neighbour. Images of a run
    behind a cut pass its frozen front, once for all runs that share it. What the corruptions do:
    analysis/_corrupt.py.

    Source: Lim et al. 2022 (HIST), supplement.

    Parameters:
        measured: metrics of the clean images, and of each corruption for `all` images and for `queries`.
        strip: (3, 10, H, W, 3) uint8: examples, the clean one first.
        options: images (how many of the test images, of all classes alike; None: all) and seed.
    """

    needs_pixels: ClassVar[bool] = True

    measured: dict[str, Any]
    strip: np.ndarray
    options: Mapping[str, Any]

    @classmethod
    def of(cls, run: Run, *, images: int | None = None, seed: int = 0) -> "Corruptions":
        """Of the test images of a run. A corruption that was measured before is not measured again."""
        options = {"images": images, "seed": seed}
        numbers = stored_numbers(cls, run.path / cls.folder, options)
        if numbers is not None and (arrays := stored_arrays(cls, run)) is not None:
            return cls(numbers, arrays["strip"], options)
        tested = Measured(run, images, seed)
        corrupted = {name: tested.measured(name) for name in CORRUPTIONS}
        numbers = {"images": len(tested.rows), "clean": tested.clean, "corruptions": corrupted}
        return cls(numbers | over_all(tested.clean, corrupted), tested.strip(CORRUPTIONS), options)

    @classmethod
    def between(cls, gathered: Gathered, *, images: int | None = None, seed: int = 0) -> "CorruptionsOfStudy":
        """Of all tested runs of a study."""
        runs = of_each_run(cls, gathered, images=images, seed=seed)
        numbers = {name: run.numbers for name, run in runs.items()}
        return CorruptionsOfStudy(methods_of(gathered), numbers, {"images": images, "seed": seed})

    @property
    def numbers(self) -> dict[str, Any]:
        """Metrics of each corruption, their mean, and the relative drop."""
        return self.measured

    @cached_property
    def tables(self) -> list[Table]:
        """One row per corruption, with all four numbers; one row for each of these."""
        rows = [
            [name.replace("_", " "), PLACES[where], metric, f"{metric}, {PLACES[where]}", value]
            for name in ("clean", *self.measured["corruptions"], "mean", "drop")
            for where in PLACES
            for metric in METRICS
            for value in [value_of(self.measured, name, where, metric)]
        ]
        long = Table("all", ["corruption", "on", "metric", "what", VALUE], rows, detail=True)
        table = pivot(long, "corruptions", down="corruption", across="what", value="value")
        table.title, table.notes = f"{self.measured['images']:,} test images, corrupted", [NOTE]
        return [table, long]

    @property
    def charts(self) -> list[Chart]:
        """Recall@1 under every corruption, on all images and on queries alone, a line at the clean one; examples."""
        names, clean = list(self.measured["corruptions"]), self.measured["clean"]["recall@1"]
        bars = Bars(
            name="bars",
            title="Recall@1 under corruption",
            table=self.tables[1],
            x="corruption",
            y="value",
            by="on",
            only={"metric": "recall@1", "corruption": [name.replace("_", " ") for name in names]},
            y_title="Recall@1 %",
            lying=True,
            line=SHARE.scale * clean,
            alt=f"Recall@1 of corrupted test images; the dotted line is that of clean ones, {SHARE.text(clean)} %.",
        )
        above = [name.replace("_", "\n") for name in ("clean", *CORRUPTIONS)][: self.strip.shape[1]]
        strip = Pictures(
            name="strip",
            title="What the corruptions do",
            images=list(map(list, self.strip)),
            captions=[above],
            alt="Three test images, clean and with each of the corruptions.",
        )
        return [bars, strip]

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The examples."""
        return {"strip": self.strip}


def over_all(clean: Mapping[str, float], corrupted: Mapping[str, Any]) -> dict[str, Any]:
    """The mean over corruptions, and the relative drop of each metric: None where the clean one is 0."""
    mean = {
        where: {metric: float(np.mean([one[where][metric] for one in corrupted.values()])) for metric in METRICS}
        for where in PLACES
    }
    drop = {
        where: {metric: 1 - mean[where][metric] / clean[metric] if clean[metric] else None for metric in METRICS}
        for where in PLACES
    }
    return {"mean": mean, "drop": drop}


def value_of(numbers: Mapping[str, Any], name: str, where: str, metric: str) -> float | None:
    """One number of a run: of the clean images, of a corruption, their mean or the drop."""
    if name == "clean":
        return numbers["clean"][metric]
    return (numbers if name in ("mean", "drop") else numbers["corruptions"])[name][where][metric]


class CorruptionsOfStudy(Analysis):
    """The corruptions of all runs of a study.

    Parameters:
        methods: its methods.
        runs: run's hash -> its numbers.
        options: images and seed.
    """

    name = "corruptions"
    version = Corruptions.version

    def __init__(self, methods: list[OneMethod], runs: Mapping[str, dict[str, Any]], options: Mapping[str, Any]):
        self.methods, self.runs, self.options = methods, runs, options

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """Every method: clean, each corruption, mean and drop, over the seeds that have all folds."""
        return {"methods": {m.name: {"kind": m.kind, **{w: self._of(m, w) for w in PLACES}} for m in self.methods}}

    def _of(self, method: OneMethod, where: str) -> dict[str, Any]:
        cells: dict[str, Any] = {}
        for metric in METRICS:
            cells[metric] = {}
            for name in ("clean", *CORRUPTIONS, "mean", "drop"):
                values = {m.run.hash: value_of(self.runs[m.run.hash], name, where, metric) for m in method.members}
                bounds = (None, 1.0) if name == "drop" else metric_of(metric).bounds
                interval = interval_of(method.row(lambda m, values=values: values[m.run.hash]), bounds)  # type: ignore[misc]
                cells[metric][name] = None if interval is None else interval_numbers(interval)
        return cells

    @cached_property
    def tables(self) -> list[Table]:
        """For each metric and place: methods by corruptions; one row for each of these numbers."""
        nothing = {"mean": None, "low": None, "high": None, "cut": False, "seeds": 0}
        rows = []
        for name, numbers in self.numbers["methods"].items():
            for where, metric in ((where, metric) for where in PLACES for metric in METRICS):
                cells = numbers[where][metric]
                clean = (cells["clean"] or nothing)["mean"]
                for corruption, cell in cells.items():
                    values = list((cell or nothing).values())
                    drop = values[0] if corruption == "drop" else 1 - values[0] / clean if cell and clean else None
                    rows.append([name, numbers["kind"], where, metric, corruption.replace("_", " "), *values, drop])
        columns = ["method", "kind", "on", "metric", "corruption", VALUE, Column("low", unit=SHARE, digits=1)]
        columns += [Column("high", unit=SHARE, digits=1), "cut", Column("seeds", unit=COUNT)]
        long = Table("all", [*columns, Column("drop", unit=SHARE, digits=0)], rows, detail=True)
        return [*(self._matrix(long, metric, where) for metric in METRICS for where in PLACES), long]

    def _matrix(self, long: Table, metric: str, where: str) -> Table:
        """Methods by corruptions, and the interval of the drop."""
        rows = [row for row in long.rows if (row[2], row[3]) == (where, metric)]
        part = Table("", long.columns, rows)
        table = pivot(
            part,
            f"{metric.replace('@', '-')}-{where}",
            down="method",
            across="corruption",
            value="value",
            along=["kind"],
        )
        drops = [row[6:9] for row in rows if row[4] == "drop"]
        ends = Column("drop low", "95 % interval of the drop", SHARE, digits=1, to="drop high", star="drop cut")
        table = Table(
            table.name,
            [*table.columns, ends, Column("drop high", unit=SHARE, digits=1), "drop cut"],
            [[*row, *drop] for row, drop in zip(table.rows, drops, strict=True)],
            f"{metric} on corrupted images, {PLACES[where]}",
            [NOTE, "means and intervals are over seeds that have all folds, folds averaged first"],
        )
        table.notes += ["* cut at the end of the range"] * any(drop[2] for drop in drops)
        return table

    @property
    def charts(self) -> list[Chart]:
        """The relative drop of Recall@1, methods by corruptions, queries and gallery corrupted."""
        names = [name.replace("_", " ") for name in (*CORRUPTIONS, "mean")]
        only = {"on": "all", "metric": "recall@1", "corruption": names}
        table = self.tables[-1]
        drops = [abs(row["drop"]) for row in table if row["on"] == "all" and row["drop"] is not None]
        limit = max(drops, default=0.01)
        alt = "How much of Recall@1 is lost, in per cent of the clean value, methods by corruptions."
        axes: dict[str, Any] = {"x": "corruption", "y": "method", "value": "drop", "band": [-limit, limit]}
        title = "Relative drop of Recall@1 under corruption, %"
        return [Heatmap(name="drops", title=title, table=table, only=only, alt=alt, **axes)]
