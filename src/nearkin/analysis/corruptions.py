"""How much of the retrieval is left when test images are corrupted? Nine corruptions, of a run and of a study."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nearkin.analysis.base import Analysis, Table
from nearkin.analysis.corrupt import CORRUPTIONS
from nearkin.analysis.corrupted import METRICS, VERSION, Measured
from nearkin.analysis.over_runs import (
    OneMethod,
    found_in,
    interval_numbers,
    interval_of,
    methods_of,
    stored,
    stored_arrays,
)
from nearkin.comparison.gather import Gathered
from nearkin.comparison.pages import Sheet
from nearkin.evaluation.metrics.base import metric_of
from nearkin.registry import ANALYSES
from nearkin.runs.store import Run

WHERE = {"all": "queries and gallery", "queries": "queries only"}
NOTE = (
    "mean is that of the nine; drop is (clean - mean) / clean; the same seed does the same to an image, whatever "
    "the run"
)


@ANALYSES.register("corruptions", version=VERSION)
@dataclass(frozen=True)
class Corruptions(Analysis):
    """Recall@1 and MAP@R on corrupted test images: nine corruptions, each on queries and gallery and on queries alone.

    A run is trained on clean images and its test images are corrupted, each in a way that the seed and its row decide.
    With queries only, the gallery is the clean one, in which an image is never its own neighbour. Images of a run
    behind a cut pass its frozen front, once for all runs that share it. What the corruptions do:
    `nearkin.analysis.corrupt`.

    Source: Lim et al. 2022 (HIST), supplement.

    Parameters:
        told: metrics of the clean images, and of each corruption for `all` images and for `queries`.
        strip: (3, 10, H, W, 3) uint8: examples, the clean one first.
        options: images (how many of the test images, of all classes alike; None: all) and seed.
    """

    needs_pixels: ClassVar[bool] = True

    told: dict[str, Any]
    strip: np.ndarray
    options: Mapping[str, Any]

    @classmethod
    def of(cls, run: Run, *, images: int | None = None, seed: int = 0) -> "Corruptions":
        """Of the test images of a run. A corruption that was measured before is not measured again."""
        options = {"images": images, "seed": seed}
        if (told := stored(cls, run, options)) and (arrays := stored_arrays(cls, run)) is not None:
            return cls(told, arrays["strip"], options)
        own = Measured(run, images, seed)
        found = {name: own.measured(name) for name in CORRUPTIONS}
        told = {"images": len(own.rows), "clean": own.clean, "corruptions": found, **over_all(own.clean, found)}
        return cls(told, own.strip(CORRUPTIONS), options)

    @classmethod
    def between(cls, gathered: Gathered, *, images: int | None = None, seed: int = 0) -> "CorruptionsOfStudy":
        """Of all tested runs of a study."""
        found = found_in(cls, gathered, images=images, seed=seed)
        return CorruptionsOfStudy(
            methods_of(gathered), {name: each.told for name, each in found.items()}, {"images": images, "seed": seed}
        )

    @property
    def summary(self) -> dict[str, Any]:
        """Metrics of each corruption, their mean, and the relative drop."""
        return self.told

    def sheets(self) -> dict[str, Sheet]:
        """One row per corruption."""
        header = ["corruption", *(f"{metric}, {words}" for words in WHERE.values() for metric in METRICS)]

        def row(name: str, of: Mapping[str, Any]) -> list[str]:
            return [name, *(_percent(of[where][metric]) for where in WHERE for metric in METRICS)]

        told = self.told
        rows = [row("clean", dict.fromkeys(WHERE, told["clean"]))]
        rows += [row(name.replace("_", " "), own) for name, own in told["corruptions"].items()]
        rows += [row("mean", told["mean"]), row("drop", told["drop"])]
        return {"corruptions": Sheet(f"{told['images']:,} test images, corrupted; in %", header, rows, 4, [NOTE])}

    def tables(self) -> dict[str, Table]:
        """One row per corruption, place and metric."""
        rows = [
            [name, where, metric, own[where][metric]]
            for name, own in self.told["corruptions"].items()
            for where in WHERE
            for metric in METRICS
        ]
        clean = [["clean", where, metric, self.told["clean"][metric]] for where in WHERE for metric in METRICS]
        return {"all": (["corruption", "on", "metric", "value"], [*clean, *rows])}

    def files(self) -> dict[str, Callable[[Path], Any]]:
        """The example strip as an array and as a picture, and a figure of the drops."""
        from nearkin.analysis import corruptions_figures as figures

        return {
            "corruptions.npz": lambda path: np.savez_compressed(path, strip=self.strip),
            "corruptions_strip.png": lambda path: figures.strip(self.strip).savefig(path),
            "corruptions.png": lambda path: figures.bars(self.told).savefig(path),
        }


def over_all(clean: Mapping[str, float], found: Mapping[str, Any]) -> dict[str, Any]:
    """The mean over corruptions, and the relative drop of each metric: None where the clean one is 0."""
    mean = {
        where: {metric: float(np.mean([own[where][metric] for own in found.values()])) for metric in METRICS}
        for where in WHERE
    }
    drop = {
        where: {metric: 1 - mean[where][metric] / clean[metric] if clean[metric] else None for metric in METRICS}
        for where in WHERE
    }
    return {"mean": mean, "drop": drop}


class CorruptionsOfStudy(Analysis):
    """The corruptions of all runs of a study.

    Parameters:
        methods: its methods.
        found: run's hash -> what its corruptions.json holds.
        options: images and seed.
    """

    name = "corruptions"
    version = Corruptions.version

    def __init__(self, methods: list[OneMethod], found: Mapping[str, dict[str, Any]], options: Mapping[str, Any]):
        self.methods, self.found, self.options = methods, found, options

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Every method: clean, each corruption, mean and drop, over the seeds that have all folds."""
        return {"methods": {m.name: {"kind": m.kind, **{w: self._of(m, w) for w in WHERE}} for m in self.methods}}

    def _of(self, method: OneMethod, where: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for metric in METRICS:
            found[metric] = {}
            for name in ("clean", *CORRUPTIONS, "mean", "drop"):
                values = {m.run.hash: _value(self.found[m.run.hash], name, where, metric) for m in method.members}
                bounds = (None, 1.0) if name == "drop" else metric_of(metric).bounds
                interval = interval_of(method.row(lambda m, values=values: values[m.run.hash]), bounds)  # type: ignore[misc]
                found[metric][name] = None if interval is None else interval_numbers(interval)
        return found

    def sheets(self) -> dict[str, Sheet]:
        """For each metric and place: methods by corruptions."""
        found = {}
        for metric in METRICS:
            for where, words in WHERE.items():
                rows = []
                for name, own in self.summary["methods"].items():
                    cells = own[where][metric]
                    texts = [_percent(cell and cell["mean"]) for cell in cells.values()]
                    drop = cells["drop"]
                    ends = (None, None, False) if drop is None else (drop["low"], drop["high"], drop["cut"])
                    rows.append([name, own["kind"], *texts, _span(*ends)])
                header = [
                    "method",
                    "kind",
                    "clean",
                    *(n.replace("_", " ") for n in CORRUPTIONS),
                    "mean",
                    "drop",
                    "95 % interval of the drop",
                ]
                notes = [NOTE, "means and intervals are over seeds that have all folds, folds averaged first"]
                notes += ["* cut at the end of the range"] * any(row[-1].endswith("*") for row in rows)
                title = f"{metric} % on corrupted images, {words}"
                found[f"{metric} {where}"] = Sheet(title, header, rows, 13, notes)
        return found

    def tables(self) -> dict[str, Table]:
        """One row per method, place, metric and corruption."""
        nothing = {"mean": None, "low": None, "high": None, "seeds": 0}
        rows = [
            [name, own["kind"], where, metric, corruption, *((cell or nothing)[key] for key in nothing)]
            for name, own in self.summary["methods"].items()
            for where in WHERE
            for metric in METRICS
            for corruption, cell in own[where][metric].items()
        ]
        return {"all": (["method", "kind", "on", "metric", "corruption", "value", "low", "high", "seeds"], rows)}

    def files(self) -> dict[str, Callable[[Path], Any]]:
        """Relative drops, methods by corruptions."""
        from nearkin.analysis import corruptions_figures as figures

        return {"corruptions.png": lambda path: figures.matrix(self.summary["methods"]).savefig(path)}


def _value(told: Mapping[str, Any], name: str, where: str, metric: str) -> float | None:
    """One number of a run: of the clean images, of a corruption, their mean or the drop."""
    if name == "clean":
        return told["clean"][metric]
    return (told if name in ("mean", "drop") else told["corruptions"])[name][where][metric]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _span(low: float | None, high: float | None, cut: bool) -> str:
    """An interval in per cent, with a star where it is cut at the end of the range."""
    return "–" if low is None or high is None else f"{_percent(low)} to {_percent(high)}{'*' * cut}"
