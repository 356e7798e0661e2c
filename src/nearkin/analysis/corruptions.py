"""How much of the retrieval is left when test images are corrupted? Nine corruptions, of a run and of a study."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from nearkin.analysis._corrupt import CORRUPTIONS, METRICS, VERSION, Measured
from nearkin.analysis._over_runs import CUT, OVER_SEEDS, OfStudy, OneMethod, interval_columns, methods_of, of_each_run
from nearkin.analysis.base import Analysis, stored_with_run
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
        if (known := stored_with_run(cls, run, options)) is not None:
            return cls(known[0], known[1]["strip"], options)
        of_run = Measured(run, images, seed)
        corrupted = {name: of_run.measured(name) for name in CORRUPTIONS}
        numbers = {"images": len(of_run.rows), "clean": of_run.clean, "corruptions": corrupted}
        return cls(numbers | over_all(of_run.clean, corrupted), of_run.strip(CORRUPTIONS), options)

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
        names = ("clean", *self.measured["corruptions"], "mean", "drop")
        rows = [
            [words(name), place, metric, f"{metric}, {place}", value_of(self.measured, name, where, metric)]
            for name, (where, place), metric in product(names, PLACES.items(), METRICS)
        ]
        long = Table("all", ["corruption", "on", "metric", "what", VALUE], rows, detail=True)
        about: dict[str, Any] = {"title": f"{self.measured['images']:,} test images, corrupted", "notes": [NOTE]}
        return [pivot(long, "corruptions", down="corruption", across="what", value="value", **about), long]

    @property
    def charts(self) -> list[Chart]:
        """Recall@1 under every corruption, on all images and on queries alone, a line at the clean one; examples."""
        clean, names = self.measured["clean"]["recall@1"], list(map(words, self.measured["corruptions"]))
        bars = Bars(
            name="bars",
            title="Recall@1 under corruption",
            table=self.tables[1],
            x="corruption",
            y="value",
            by="on",
            only={"metric": "recall@1", "corruption": names},
            y_title="Recall@1 %",
            lying=True,
            line=SHARE.scale * clean,
            alt=f"Recall@1 of corrupted test images; the dotted line is that of clean ones, {SHARE.text(clean)} %.",
        )
        above = [name.replace("_", "\n") for name in ("clean", *CORRUPTIONS)][: self.strip.shape[1]]
        about: dict[str, Any] = {
            "title": "What the corruptions do",
            "alt": "Three test images, clean and with each of the corruptions.",
        }
        return [bars, Pictures(name="strip", images=list(map(list, self.strip)), captions=[above], **about)]

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The examples."""
        return {"strip": self.strip}


def words(name: str) -> str:
    """A corruption as people read it."""
    return name.replace("_", " ")


def over_all(clean: Mapping[str, float], corrupted: Mapping[str, Any]) -> dict[str, Any]:
    """The mean over corruptions, and the relative drop of each metric: None where the clean one is 0."""
    mean = {w: {m: float(np.mean([one[w][m] for one in corrupted.values()])) for m in METRICS} for w in PLACES}
    drop = {w: {m: 1 - mean[w][m] / clean[m] if clean[m] else None for m in METRICS} for w in PLACES}
    return {"mean": mean, "drop": drop}


def value_of(numbers: Mapping[str, Any], name: str, where: str, metric: str) -> float | None:
    """One number of a run: of the clean images, of a corruption, their mean or the drop."""
    if name == "clean":
        return numbers["clean"][metric]
    return (numbers if name in ("mean", "drop") else numbers["corruptions"])[name][where][metric]


# -- of a study --------------------------------------------------------------------------------------------------------


class CorruptionsOfStudy(OfStudy):
    """The corruptions of all runs of a study; `runs` are their numbers."""

    name = "corruptions"
    version = Corruptions.version

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """Every method: clean, each corruption, mean and drop, over the seeds that have all folds."""
        names = ("clean", *CORRUPTIONS, "mean", "drop")
        methods: dict[str, Any] = {}
        for method in self.methods:
            methods[method.name] = {"kind": method.kind} | {
                where: {metric: {name: self._of(method, name, where, metric) for name in names} for metric in METRICS}
                for where in PLACES
            }
        return {"methods": methods}

    def _of(self, method: OneMethod, name: str, where: str, metric: str) -> dict[str, Any] | None:
        bounds = (None, 1.0) if name == "drop" else metric_of(metric).bounds
        row = method.row(lambda member: value_of(self.runs[member.run.hash], name, where, metric))
        return self.interval(row, bounds)

    @cached_property
    def tables(self) -> list[Table]:
        """For each metric and place: methods by corruptions; one row for each of these numbers."""
        records = []
        for (name, numbers), where, metric in product(self.numbers["methods"].items(), PLACES, METRICS):
            about: dict[str, Any] = {"method": name, "kind": numbers["kind"], "on": where, "metric": metric}
            cells = numbers[where][metric]
            clean = (cells["clean"] or {"mean": None})["mean"]
            for corruption, cell in cells.items():
                cell = cell or {"mean": None, "cut": False, "seeds": 0}
                drop = cell["mean"]
                if corruption != "drop":
                    drop = None if drop is None or not clean else 1 - drop / clean
                records.append({**about, "corruption": words(corruption), **cell, "value": cell["mean"], "drop": drop})
        columns = ["method", "kind", "on", "metric", "corruption", VALUE, Column("low", unit=SHARE, digits=1)]
        columns += [Column("high", unit=SHARE, digits=1), "cut", Column("seeds", unit=COUNT)]
        long = Table.of_records("all", [*columns, Column("drop", unit=SHARE, digits=0)], records, detail=True)
        return [*(self._matrix(long, metric, where) for metric in METRICS for where in PLACES), long]

    def _matrix(self, long: Table, metric: str, where: str) -> Table:
        """Methods by corruptions, and the interval of the drop."""
        records = [record for record in long if (record["on"], record["metric"]) == (where, metric)]
        part = Table.of_records(f"{metric.replace('@', '-')}-{where}", long.columns, records)
        table = pivot(part, part.name, down="method", across="corruption", value="value", along=["kind"])
        drops = [
            [record[key] for key in ("low", "high", "cut")] for record in records if record["corruption"] == "drop"
        ]
        return Table(
            part.name,
            [*table.columns, *interval_columns(SHARE, "drop ", "95 % interval of the drop", cut=True, digits=1)],
            [[*row, *drop] for row, drop in zip(table.rows, drops, strict=True)],
            f"{metric} on corrupted images, {PLACES[where]}",
            [NOTE, OVER_SEEDS, *[CUT] * any(drop[2] for drop in drops)],
        )

    @property
    def charts(self) -> list[Chart]:
        """The relative drop of Recall@1, methods by corruptions, queries and gallery corrupted."""
        table, names = self.tables[-1], [words(name) for name in (*CORRUPTIONS, "mean")]
        drops = [abs(row["drop"]) for row in table if row["on"] == "all" and row["drop"] is not None]
        limit = max(drops, default=0.01)
        alt = "How much of Recall@1 is lost, in per cent of the clean value, methods by corruptions."
        axes: dict[str, Any] = {"x": "corruption", "y": "method", "value": "drop", "band": [-limit, limit]}
        only, title = (
            {"on": "all", "metric": "recall@1", "corruption": names},
            "Relative drop of Recall@1 under corruption, %",
        )
        return [Heatmap(name="drops", title=title, table=table, only=only, alt=alt, **axes)]
