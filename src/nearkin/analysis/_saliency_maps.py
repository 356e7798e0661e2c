"""Saliency maps: which pixels move the distance of an image to a black one, under the loss's own measure.

    x        the network's input, normalised; x₀ that of a black image
    x_s      x + σ ε_s, σ = 0.15 (max x - min x), s = 1..50 noisy copies               (SmoothGrad)
    m        Σ_s | mean over channels of ∂/∂x_s (1/50) measure(f(x_s), f(x₀)) |
    map      clip((m - min m) / (p₉₉ - min m), 0, 1), p₉₉ the 99th percentile of m

measure, by which a loss compares two embeddings, so that a map asks what the loss asked:

    euclid            ‖e - e₀‖                      e = z/‖z‖
    squared_euclid    ‖e - e₀‖²
    cosine            e·e₀
    dot               z·z₀
    raw_euclid        ‖z - z₀‖
    snr               Var(e - e₀) / Var(e)          variances over the coordinates; the image is the anchor

Source: Kobs et al. 2021 (their code), after Smilkov et al. 2017. The noise of an image is drawn from (seed, row): it is
the same for all models and does not depend on the other images, so that equal models have equal maps.

Shapes: N images, B copies in a batch, H x W pixels.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nearkin.analysis.embedded import Loaded, from_input, loaded
from nearkin.config.parse import flatten
from nearkin.engine.allocator import skip_memory_fill
from nearkin.errors import NearkinError, choices
from nearkin.models.fold import folded
from nearkin.numerics import sqrt0, unit
from nearkin.progress import bar
from nearkin.runs.prepare import Data
from nearkin.runs.store import Run
from nearkin.storage import UNREADABLE, atomic

VERSION = 1  # raise it when the same settings begin to give other maps
COPIES, NOISE = 50, 0.15
PIXELS = 2**20  # of a batch on a CPU: 64 images of 128 x 128; larger ones are no faster
EVERY = 60.0  # seconds between two writes

Embed = Callable[[Tensor], Tensor]  # normalised images (B, 3, H, W) -> raw embeddings (B, D)

KOBS = "Kobs et al. 2021 (their code)"
FORMULA = "the loss's own formula"


class Measure(NamedTuple):
    """A measure by name, and who says so."""

    name: str
    source: str


MEASURES: dict[str, Measure] = {
    "angular": Measure("cosine", FORMULA),
    "arcface": Measure("cosine", KOBS),
    "contrastive": Measure("euclid", KOBS),
    "cosface": Measure("cosine", KOBS),
    "fastap": Measure("squared_euclid", KOBS),
    "generalized_lifted": Measure("raw_euclid", FORMULA),
    "hist": Measure("squared_euclid", FORMULA),
    "histogram": Measure("cosine", FORMULA),
    "lifted_similarity": Measure("cosine", FORMULA),
    "lifted_structure": Measure("euclid", FORMULA),
    "lifted_weighted": Measure("cosine", FORMULA),
    "margin": Measure("euclid", KOBS),
    "multi_similarity": Measure("cosine", KOBS),
    "norm_softmax": Measure("cosine", f"{KOBS}: the dot product of unit vectors"),
    "npair": Measure("dot", FORMULA),
    "nt_xent": Measure("cosine", KOBS),
    "proxy_anchor": Measure("cosine", FORMULA),
    "proxy_nca": Measure("squared_euclid", KOBS),
    "proxy_nca_pp": Measure("squared_euclid", KOBS),
    "proxy_repel": Measure("cosine", FORMULA),
    "quadruplet": Measure("euclid", FORMULA),
    "snr_contrastive": Measure("snr", KOBS),
    "snr_triplet": Measure("snr", FORMULA),
    "soft_triple": Measure("cosine", KOBS),
    "softmax": Measure("dot", FORMULA),
    "triplet": Measure("squared_euclid", FORMULA),
}
VARIANTS: list[tuple[str, str, Any, Measure]] = [  # loss, setting, value: another measure than the default's
    ("contrastive", "form", "cosine", Measure("cosine", FORMULA)),
    ("contrastive", "form", "similarity", Measure("cosine", FORMULA)),
    ("margin", "form", "similarity", Measure("cosine", FORMULA)),
    ("npair", "unit", True, Measure("cosine", FORMULA)),
    ("triplet", "squared", False, Measure("euclid", KOBS)),
]
UNTRAINED = Measure("euclid", f"{KOBS}: of the network without training")
FOREIGN = Measure("cosine", "the measure of the evaluation: nothing is known of a loss from outside")


def measure_of(settings: Mapping[str, Any]) -> Measure:
    """The measure of a run, by its settings as dotted keys (`train.epochs`, `loss.name`, `loss.form`)."""
    if settings.get("train.epochs") == 0:
        return UNTRAINED
    loss = settings["loss.name"]
    for name, key, value, measure in VARIANTS:
        if loss == name and settings.get(f"loss.{key}") == value:
            return measure
    return MEASURES.get(loss, FOREIGN)


def compared(measure: str, z: Tensor, reference: Tensor) -> Tensor:
    """The measure of B raw embeddings z (B, D) and one raw reference (1, D), with gradients.         -> (B,)"""
    if measure == "dot":
        return (z * reference).sum(1)
    if measure == "raw_euclid":
        return sqrt0((z - reference).square().sum(1))
    e, e0 = unit(z), unit(reference)
    if measure == "cosine":
        return (e * e0).sum(1)
    if measure == "snr":
        return (e - e0).var(1) / e.var(1).clamp_min(1e-12)
    squares = (e - e0).square().sum(1)
    if measure == "squared_euclid":
        return squares
    if measure == "euclid":
        return sqrt0(squares)
    known = ("cosine", "dot", "euclid", "raw_euclid", "snr", "squared_euclid")
    raise NearkinError(f"unknown measure {measure!r}: {choices(measure, known)}")


def smooth_maps(
    embed: Embed,
    x: Tensor,
    reference: Tensor,
    measure: str,
    rows: np.ndarray,
    *,
    copies: int = COPIES,
    noise: float = NOISE,
    seed: int = 0,
    batch: int | None = None,
) -> Tensor:
    """m of N images, before it is cut off at the percentile. Batches run over images and copies alike.   -> (N, H, W)

    Parameters:
        embed: the network, from its normalised input.
        x: (N, 3, H, W), normalised images.
        reference: (1, D), the raw embedding of a black image.
        measure: its name.
        rows: (N,), what the noise of each image is drawn from, beside the seed.
        copies: noisy copies of an image.
        noise: σ as a share of the range of an image.
        seed: of the noise.
        batch: copies that are computed at once; None: as many as fit.
    """
    n, _, h, w = x.shape
    batch = batch or max(1, PIXELS * (1 if x.device.type == "cpu" else 16) // (h * w))
    sigma = noise * (x.amax((1, 2, 3)) - x.amin((1, 2, 3)))  # (N,)
    maps = torch.zeros(n, h, w, device=x.device)
    drawn: dict[int, Tensor] = {}
    for start in range(0, n * copies, batch):
        place = torch.arange(start, min(start + batch, n * copies))
        images = (place // copies).tolist()
        of_batch = range(images[0], images[-1] + 1)
        drawn = {i: drawn[i] if i in drawn else _noise(x, int(rows[i]), copies, seed) for i in of_batch}
        noisy = torch.empty(len(place), *x.shape[1:], device=x.device).to(memory_format=torch.channels_last)
        at = 0
        for i in of_batch:  # each image's share of the batch
            first = max(0, start - i * copies)
            noises = drawn[i][first : first + len(place) - at]
            torch.add(x[i], noises, alpha=float(sigma[i]), out=noisy[at : at + len(noises)])
            at += len(noises)
        noisy.requires_grad_()
        value = compared(measure, embed(noisy), reference).sum() / copies
        (gradient,) = torch.autograd.grad(value, noisy)  # (B, 3, H, W)
        maps.index_add_(0, (place // copies).to(x.device), gradient.mean(1).abs())
    return maps


def _noise(x: Tensor, row: int, copies: int, seed: int) -> Tensor:
    """ε of one image, the same on every device.                                            (copies, 3, H, W)"""
    state = int(np.random.SeedSequence((seed, row)).generate_state(1, np.uint64)[0] >> 1)
    generator = torch.Generator().manual_seed(state)
    return torch.randn(copies, *x.shape[1:], generator=generator).to(x.device)


def scaled(maps: np.ndarray) -> np.ndarray:
    """Maps (N, H, W) between 0 and 1, cut off at their 99th percentile; a constant map becomes 0."""
    low = maps.min((1, 2), keepdims=True)
    top = np.percentile(maps, 99, axis=(1, 2), keepdims=True)
    width = top - low
    bright = (maps > low).astype(maps.dtype)  # where more than 99 % of the pixels are the least
    return np.where(width > 0, ((maps - low) / np.where(width > 0, width, 1)).clip(0, 1), bright)


def maps_of(
    run: Run, rows: np.ndarray, *, seed: int = 0, known: dict[str, Data] | None = None, title: str = ""
) -> np.ndarray:
    """The scaled maps of these test images as the run's chosen model sees them.                  -> (N, H, W) float16

    They are stored with the run (analysis/saliency-maps.npz); only images without a map are computed, and what is
    computed stays when the work is interrupted.

    Parameters:
        run: a tested run.
        rows: (N,) rows of the data set.
        seed: of the noise.
        known: remembers data from call to call.
        title: what the progress bar says; the run's hash by default.
    """
    path = run.path / "analysis" / "saliency-maps.npz"
    settings = about(run, seed)
    maps = read(path, settings)
    missing = np.array([row for row in rows.tolist() if row not in maps], dtype=np.int64)
    if len(missing):
        seen = loaded(run, known=known)
        written = time.monotonic()
        try:
            with bar(title or f"Saliency of run {run.hash}", len(missing)) as advance:
                for done, (row, scaled_map) in enumerate(each_map(seen, missing, settings["measure"], seed), start=1):
                    maps[row] = scaled_map
                    advance(done)
                    if time.monotonic() - written > EVERY:
                        write(path, maps, settings)
                        written = time.monotonic()
        finally:
            write(path, maps, settings)
    return np.stack([maps[row] for row in rows.tolist()])


def each_map(seen: Loaded, rows: np.ndarray, measure: str, seed: int) -> Iterator[tuple[int, np.ndarray]]:
    """Row and scaled map (H, W) float16 of every image, a few images at a time."""
    embed, reference = network(seen, rows[:1])
    few = 8
    for start in range(0, len(rows), few):
        batch_rows = rows[start : start + few]
        x = seen.model.record.normalise(seen.pixels.test(batch_rows).to(seen.device))  # (n, 3, H, W)
        with skip_memory_fill():
            raw = smooth_maps(embed, x, reference, measure, batch_rows, seed=seed)
        yield from zip(batch_rows.tolist(), scaled(raw.cpu().double().numpy()).astype(np.float16), strict=True)


def network(seen: Loaded, rows: np.ndarray) -> tuple[Embed, Tensor]:
    """The network of a run from its normalised input, BatchNorm folded, and its raw embedding (1, D) of a black image
    of the size of these rows' images."""
    black = torch.zeros_like(seen.pixels.test(rows[:1])).to(seen.device)  # (1, 3, H, W) uint8
    probe = seen.model.record.normalise(seen.pixels.test(rows[:1]).to(seen.device))
    model = folded(seen.model, lambda network: from_input(network, probe.clone()))
    with torch.no_grad():
        reference = from_input(model, seen.model.record.normalise(black))  # (1, D)
    return (lambda x: from_input(model, x)), reference


def about(run: Run, seed: int) -> dict[str, Any]:
    """What a map depends on beside run and image."""
    measure = measure_of(flatten(run.stored)).name
    return {"version": VERSION, "measure": measure, "copies": COPIES, "noise": NOISE, "seed": seed}


def read(path: Path, settings: dict[str, Any]) -> dict[int, np.ndarray]:
    """Stored maps by row; none where the file is not there, cannot be read, or was made in another way."""
    try:
        with np.load(path) as file:
            if json.loads(str(file["about"])) != settings:
                return {}
            return dict(zip(file["rows"].tolist(), file["maps"], strict=True))
    except UNREADABLE:
        return {}


def write(path: Path, maps: dict[int, np.ndarray], settings: dict[str, Any]) -> None:
    """Store maps by row, whole or not at all."""
    if not maps:
        return
    rows = np.array(sorted(maps), np.int64)
    arrays = {
        "rows": rows,
        "maps": np.stack([maps[row] for row in rows.tolist()]),
        "about": np.array(json.dumps(settings)),
    }
    with atomic(path) as scratch:
        np.savez(scratch / path.name, **arrays)  # type: ignore[arg-type]
