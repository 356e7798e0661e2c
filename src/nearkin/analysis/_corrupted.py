"""Corrupted test images of a run, and what the run makes of them."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from nearkin.analysis._corrupt import corrupt_batch
from nearkin.analysis.embedded import Loaded, loaded, rows_of, stratified, tested
from nearkin.engine.batches import Source
from nearkin.engine.embed import BATCH, embed
from nearkin.errors import NearkinError
from nearkin.evaluation.inputs import make_sets
from nearkin.evaluation.metrics.base import parse
from nearkin.evaluation.ranking import rank
from nearkin.evaluation.retrieval import evaluate
from nearkin.models.cut import FeatureSource, Pixels
from nearkin.numerics import unit
from nearkin.runs.store import Run

VERSION = 1  # raise it when the same images begin to give other numbers
METRICS = ("recall@1", "map_at_r")
SHOWN = 3  # images of the example strip
ALIKE = 0.99  # cosine of an embedding with the stored one of the same image


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


class Measured:
    """A run, its clean embeddings, and what is measured of it."""

    def __init__(self, run: Run, images: int | None, seed: int):
        self.run, self.seed = run, seed
        self.looked: Loaded = loaded(run)
        seen = tested(run)
        places = stratified(seen.labels, images, seed)
        self.rows, self.labels, self.z = rows_of(seen)[places], seen.labels[places], seen.z[torch.from_numpy(places)]
        self.roles = None if seen.plain else seen.roles[places]
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
        fits = known.get("version") == VERSION
        done = known["found"] if fits else {}
        if name not in done:
            z = self.embedded(name)
            done[name] = {
                "all": evaluate(z, self.labels, **self._roles(), metrics=list(METRICS)).metrics,
                "queries": self._queries_only(z),
            }
            Run(folder).write_json(self.parts, {"version": VERSION, "found": done})
        return done[name]

    def _queries_only(self, z: Tensor) -> dict[str, float]:
        """Corrupted queries in the clean gallery; an image is excluded by its index, as ever."""
        sets = make_sets(self.z, self.labels, **self._roles(), distance="cosine")
        asks = self._roles()["query"]
        sets = replace(sets, query=z if asks is None else z[torch.from_numpy(asks)])
        asked = [metric for name in METRICS for metric in parse(name)]
        values, _ = rank(sets, asked, distance="cosine", budget_mib=None, progress=None)
        return {key: float(np.nanmean(per_query)) for key, per_query in values.items()}

    def _roles(self) -> dict[str, Any]:
        if self.roles is None:
            return {"query": None, "gallery": None}
        return {role: np.flatnonzero(np.isin(self.roles, [role, "both"])) for role in ("query", "gallery")}

    def strip(self, names: Iterable[str]) -> np.ndarray:
        """(3, 1 + C, H, W, 3) uint8: images of different classes, clean and with each of C corruptions."""
        some = stratified(self.labels, SHOWN, self.seed)
        made = [CorruptedPixels(self.looked.pixels, self.rows, name, self.seed).test(some) for name in (None, *names)]
        return torch.stack(made, 1).permute(0, 1, 3, 4, 2).numpy()
