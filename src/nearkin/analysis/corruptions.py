"""How much of the retrieval is left when test images are corrupted? Nine corruptions, of a run and of a study."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Generator, Tensor

from nearkin.analysis.base import Analysis, Table
from nearkin.analysis.corrupt import CORRUPTIONS, corrupt_batch
from nearkin.analysis.embedded import Loaded, loaded, stratified
from nearkin.analysis.over_runs import OneMethod, found_in, methods_of, stored, stored_arrays
from nearkin.analysis.tested import Tested, tested
from nearkin.comparison.gather import Gathered
from nearkin.comparison.pages import Sheet
from nearkin.engine.batches import Source
from nearkin.engine.embed import BATCH, embed
from nearkin.errors import NearkinError
from nearkin.evaluation.inputs import make_sets
from nearkin.evaluation.metrics.base import parse
from nearkin.evaluation.ranking import rank
from nearkin.evaluation.retrieval import evaluate
from nearkin.models.cut import FeatureSource, Pixels
from nearkin.numerics import unit
from nearkin.registry import ANALYSES
from nearkin.runs.store import Run

METRICS = ("recall@1", "map_at_r")
WHERE = {"all": "queries and gallery", "queries": "queries only"}
SHOWN = 3                           # images of the example strip
ALIKE = 0.99                        # cosine of an embedding with the stored one of the same image
NOTE = ("mean is that of the nine; drop is (clean - mean) / clean; the same seed does the same to an image, whatever "
        "the run")  # fmt: skip


@ANALYSES.register("corruptions")
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
        own = _Measured(run, images, seed)
        found = {name: own.measured(name) for name in CORRUPTIONS}
        told = {"images": len(own.rows), "clean": own.clean, "corruptions": found, **over_all(own.clean, found)}
        return cls(told, own.strip(), options)

    @classmethod
    def between(cls, gathered: Gathered, *, images: int | None = None, seed: int = 0) -> "CorruptionsOfStudy":
        """Of all tested runs of a study."""
        found = found_in(cls, gathered, images=images, seed=seed)
        return CorruptionsOfStudy(methods_of(gathered), {name: each.told for name, each in found.items()},
                                  {"images": images, "seed": seed})  # fmt: skip

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
        rows = [[name, where, metric, own[where][metric]] for name, own in self.told["corruptions"].items()
                for where in WHERE for metric in METRICS]  # fmt: skip
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
    mean = {where: {metric: float(np.mean([own[where][metric] for own in found.values()])) for metric in METRICS}
            for where in WHERE}  # fmt: skip
    drop = {where: {metric: 1 - mean[where][metric] / clean[metric] if clean[metric] else None for metric in METRICS}
            for where in WHERE}  # fmt: skip
    return {"mean": mean, "drop": drop}


class CorruptedPixels:
    """The test images of a run, corrupted; a source of pixels like any other.

    Parameters:
        pixels: the images.
        rows: (N,) which of them are tested.
        name: the corruption; None: none.
        seed: of what is drawn.
    """

    def __init__(self, pixels: Pixels, rows: np.ndarray, name: str | None, seed: int):
        self.pixels, self.rows, self.name, self.seed = pixels, rows, name, seed

    def __len__(self) -> int:
        return len(self.rows)

    def test(self, indices: np.ndarray) -> Tensor:
        """Images (B, 3, H, W) uint8 of the places `indices` (B,) among the tested rows."""
        rows = self.rows[np.asarray(indices)]
        images = self.pixels.test(rows)
        return images if self.name is None else corrupt_batch(self.name, images, self.seed, rows)

    def train(
        self, indices: np.ndarray, generator: Generator, size: int | None = None, only: slice = slice(None)
    ) -> Tensor:
        """The same: nothing is trained on them."""
        return self.test(np.asarray(indices)[only])


class _Measured:
    """A run, its clean embeddings, and what is measured of it."""

    def __init__(self, run: Run, images: int | None, seed: int):
        self.run, self.seed = run, seed
        self.looked: Loaded = loaded(run)
        seen: Tested = tested(run)
        places = stratified(seen.labels, images, seed)
        self.rows, self.labels, self.z = seen.rows[places], seen.labels[places], seen.z[torch.from_numpy(places)]
        self.roles = None if seen.roles is None else seen.roles[places]
        self.parts = f"corruptions-parts-{images or 'all'}-{seed}.json"
        few = self.embedded(None, self.rows[:BATCH])
        alike = float((unit(few) * unit(self.z[: len(few)])).sum(1).min())
        if alike < ALIKE:
            raise NearkinError(
                f"run {run.hash} embeds its test images otherwise here than when it was tested (cosine {alike:.3f}, at "
                f"least {ALIKE}): its model or its images were exchanged"
            )

    def embedded(self, name: str | None, rows: np.ndarray | None = None) -> Tensor:
        """Embeddings (N, D) of the corrupted images, computed as the test computes them."""
        model, device = self.looked.model, self.looked.device
        rows = self.rows if rows is None else rows
        pixels = CorruptedPixels(self.looked.pixels, rows, name, self.seed)
        source: Source = pixels
        if model.cut != "none":
            which = sha256(np.ascontiguousarray(rows).tobytes()).hexdigest()[:16]
            key = f"{self.run.head()['data_hash']} {name} {self.seed} {which}"
            source = FeatureSource(pixels, model, data_hash=key, views=1, flip=False)
        return embed(model, source, np.arange(len(rows)), device, title=f"Embedding, {name}" if name else "")

    @cached_property
    def clean(self) -> dict[str, float]:
        """The metrics of the stored embeddings."""
        return evaluate(self.z, self.labels, **self._roles(), metrics=list(METRICS)).metrics

    def measured(self, name: str) -> dict[str, Any]:
        """The metrics of a corruption, stored at once."""
        folder = self.run.path / "analysis"
        known = Run(folder).read_json(self.parts) if (folder / self.parts).exists() else {}
        fits = known.get("version") == Corruptions.version
        done = known["found"] if fits else {}
        if name not in done:
            z = self.embedded(name)
            done[name] = {
                "all": evaluate(z, self.labels, **self._roles(), metrics=list(METRICS)).metrics,
                "queries": self._queries_only(z),
            }
            Run(folder).write_json(self.parts, {"version": Corruptions.version, "found": done})
        return done[name]

    def _queries_only(self, z: Tensor) -> dict[str, float]:
        """Corrupted queries in the clean gallery; an image is excluded by its index, as ever."""
        sets = make_sets(self.z, self.labels, **self._roles(), distance="cosine")
        asks = self._roles()["query"]
        sets = replace(sets, query=z if asks is None else z[torch.from_numpy(asks)])
        asked = [metric for name in METRICS for metric in parse(name)]
        values, _ = rank(sets, asked, distance="cosine", budget_mib=256, progress=None)
        return {key: float(np.nanmean(own)) for key, own in values.items()}

    def _roles(self) -> dict[str, Any]:
        if self.roles is None:
            return {"query": None, "gallery": None}
        return {role: np.flatnonzero(np.isin(self.roles, [role, "both"])) for role in ("query", "gallery")}

    def strip(self) -> np.ndarray:
        """(3, 10, H, W, 3) uint8: images of different classes, clean and with every corruption."""
        some = stratified(self.labels, SHOWN, self.seed)
        made = [CorruptedPixels(self.looked.pixels, self.rows, name, self.seed).test(some)
                for name in (None, *CORRUPTIONS)]  # fmt: skip
        return torch.stack(made, 1).permute(0, 1, 3, 4, 2).numpy()


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
        """Every method: clean, each corruption, mean and drop, over folds and then seeds."""
        return {"methods": {m.name: {"kind": m.kind, **{w: self._of(m, w) for w in WHERE}} for m in self.methods}}

    def _of(self, method: OneMethod, where: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for metric in METRICS:
            found[metric] = {}
            for name in ("clean", *CORRUPTIONS, "mean", "drop"):
                values = {m.run.hash: _value(self.found[m.run.hash], name, where, metric) for m in method.members}
                own = method.interval(lambda member, values=values: values[member.run.hash])  # type: ignore[misc]
                found[metric][name] = None if own is None else {
                    "mean": own.mean, "low": own.low, "high": own.high, "seeds": own.n}  # fmt: skip
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
                    interval = ("–" if drop is None or drop["low"] is None
                                else f"{_percent(drop['low'])} to {_percent(drop['high'])}")  # fmt: skip
                    rows.append([name, own["kind"], *texts, interval])
                header = ["method", "kind", "clean", *(n.replace("_", " ") for n in CORRUPTIONS), "mean", "drop",
                          "95 % interval of the drop"]  # fmt: skip
                notes = [NOTE, "intervals are over seeds"]
                title = f"{metric} % on corrupted images, {words}"
                found[f"{metric} {where}"] = Sheet(title, header, rows, 13, notes)
        return found

    def tables(self) -> dict[str, Table]:
        """One row per method, place, metric and corruption."""
        rows = [[name, own["kind"], where, metric, corruption, *(cell or {"mean": None, "low": None, "high": None,
                 "seeds": 0}).values()] for name, own in self.summary["methods"].items() for where in WHERE
                for metric in METRICS for corruption, cell in own[where][metric].items()]  # fmt: skip
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
