"""Nine corruptions of test images, those of HIST (Lim et al. 2022, supplement), uint8 in, uint8 out; and what a run
makes of the corrupted images.

They are done to images as they are tested, after resizing and cropping, before normalisation. The parameters of an
image are drawn from a generator that is seeded by (seed, corruption, row), so that neither batches nor other images
change it. The distributions are those of the paper's library with the paper's parameters; three points that the paper
leaves open are decided here: cutout's 20 % is the most that its random height and width can be, the coarse mask has 5
to 50 % of the image's sides, and an image that is turned, warped or compressed stays at its size.

Shapes: H x W pixels.
"""

import io
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from PIL import Image
from scipy import ndimage
from torch import Generator, Tensor

from nearkin.analysis.embedded import Loaded, loaded, rows_of, stratified, tested
from nearkin.engine.batches import Source
from nearkin.engine.embed import BATCH, embed
from nearkin.errors import NearkinError, choices
from nearkin.evaluation.inputs import make_sets
from nearkin.evaluation.metrics.base import parse
from nearkin.evaluation.ranking import rank
from nearkin.models.cut import FeatureSource, Pixels
from nearkin.numerics import unit
from nearkin.runs.store import Run

VERSION = 2  # raise it when the same images begin to give other numbers
METRICS = ("recall@1", "map_at_r")
SHOWN = 3  # images of the example strip
ALIKE = 0.99  # cosine of an embedding with the stored one of the same image
Random = np.random.Generator


def corrupt(name: str, image: np.ndarray, seed: int, row: int) -> np.ndarray:
    """A corrupted copy of an image (H, W, 3) uint8.

    Parameters:
        name: one of CORRUPTIONS.
        image: the image.
        seed: of all that is drawn.
        row: which image it is; with the seed it decides what is drawn.
    """
    if name not in CORRUPTIONS:
        raise NearkinError(f"unknown corruption {name!r}: {choices(name, CORRUPTIONS)}")
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise NearkinError(f"an image is uint8 RGB of shape (H, W, 3), not {image.dtype} of shape {image.shape}")
    random = np.random.default_rng((seed, list(CORRUPTIONS).index(name), row))
    return CORRUPTIONS[name](image, random)


def corrupt_batch(name: str, images: Tensor, seed: int, rows: np.ndarray) -> Tensor:
    """Corrupted copies of images (B, 3, H, W) uint8 of the rows (B,)."""
    pairs = zip(images.permute(0, 2, 3, 1).numpy(), rows.tolist(), strict=True)
    copies = np.stack([corrupt(name, image, seed, row) for image, row in pairs])
    return torch.from_numpy(copies).permute(0, 3, 1, 2).contiguous()


def gaussian_noise(image: np.ndarray, random: Random) -> np.ndarray:
    """Noise of standard deviation σ, uniform in 0..25.5, added to every pixel, the same to all channels."""
    noise = random.uniform(0, 25.5) * random.standard_normal(image.shape[:2])  # (H, W)
    return _whole(image + noise[..., None])


def salt_and_pepper(image: np.ndarray, random: Random) -> np.ndarray:
    """Every pixel is replaced with a chance of 5 %, by a grey of 255·Beta(½, ½)."""
    chosen = random.random(image.shape[:2]) < 0.05  # (H, W)
    copy = image.copy()
    copy[chosen] = _whole(255 * random.beta(0.5, 0.5, int(chosen.sum())))[:, None]
    return copy


def uniform_noise(image: np.ndarray, random: Random) -> np.ndarray:
    """One whole number, uniform in -50..50, added to the whole image: a change of brightness, whatever its name."""
    return _whole(image + float(random.integers(-50, 51)))


def cutout(image: np.ndarray, random: Random) -> np.ndarray:
    """Two rectangles are grey (128); height and width of each are uniform in 0..20 % of the image's, at least a pixel,
    and their middles lie anywhere in the image."""
    copy = image.copy()
    for _ in range(2):
        spans = []
        for side in image.shape[:2]:
            length = max(1, round(random.uniform(0, 0.2) * side))
            start = round(random.random() * side - length / 2)
            spans.append(slice(max(start, 0), max(start + length, 0)))
        copy[tuple(spans)] = 128
    return copy


def coarse_dropout(image: np.ndarray, random: Random) -> np.ndarray:
    """Each cell of a coarse mask is black with a chance that is uniform in 0..0.05; it has 5 to 50 % of the sides."""
    p, size = random.uniform(0, 0.05), random.uniform(0.05, 0.5)
    height, width = image.shape[:2]
    rows, columns = max(1, round(size * height)), max(1, round(size * width))
    cells = random.random((rows, columns)) < p
    mask = cells[np.arange(height) * rows // height][:, np.arange(width) * columns // width]  # (H, W)
    return np.where(mask[..., None], np.uint8(0), image)


def rotation(image: np.ndarray, random: Random) -> np.ndarray:
    """Turned about the middle by an angle that is uniform in ±30°, bilinear; beyond the border it is mirrored."""
    angle = np.radians(random.uniform(-30, 30))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    middle = (np.array(image.shape[:2]) - 1) / 2
    how = {"matrix": turn, "offset": middle - turn @ middle, "order": 1, "mode": "reflect"}
    channels = [ndimage.affine_transform(channel, **how) for channel in np.moveaxis(image.astype(np.float32), -1, 0)]
    return _whole(np.stack(channels, -1))


def perspective(image: np.ndarray, random: Random) -> np.ndarray:
    """Every corner moves inwards by |N(0, s)| of the sides, s uniform in 0.05..0.15; what is inside fills the image,
    bilinear. A move beyond the middle, once in a thousand images, ends there."""
    height, width = image.shape[:2]
    moved = np.abs(random.normal(0, random.uniform(0.05, 0.15), (4, 2))) % 1  # (4, 2) x, y
    moved = np.minimum(moved, 0.49)
    ends = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    source = np.where(ends == 0, moved, 1 - moved) * [width, height]
    how = (Image.Transform.PERSPECTIVE, _warp(ends * [width, height], source), Image.Resampling.BILINEAR)
    return np.asarray(Image.fromarray(image).transform((width, height), *how))


def _warp(target: np.ndarray, source: np.ndarray) -> list[float]:
    """The eight numbers of the perspective that takes four points (x, y) of the result to points of the image."""
    lines, values = [], []
    for (x, y), (u, v) in zip(target.tolist(), source.tolist(), strict=True):
        lines += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return np.linalg.solve(np.array(lines, float), np.array(values, float)).tolist()


def gaussian_blur(image: np.ndarray, random: Random) -> np.ndarray:
    """A Gaussian of σ, uniform in 1..3 pixels; beyond the border it is mirrored."""
    sigma = random.uniform(1, 3)
    return _whole(ndimage.gaussian_filter(image.astype(np.float32), (sigma, sigma, 0), mode="mirror"))


def jpeg(image: np.ndarray, random: Random) -> np.ndarray:
    """Written and read as JPEG of quality round(1 + 99 (1 - c/101)), c uniform in 80..95: from 22 down to 7."""
    quality = round(1 + 99 * (1 - random.uniform(80, 95) / 101))
    file = io.BytesIO()
    Image.fromarray(image).save(file, "jpeg", quality=quality)
    return np.array(Image.open(file))


def _whole(values: np.ndarray) -> np.ndarray:
    return np.rint(values).clip(0, 255).astype(np.uint8)


NINE = (
    *(gaussian_noise, salt_and_pepper, uniform_noise, cutout, coarse_dropout),
    *(rotation, perspective, gaussian_blur, jpeg),
)
CORRUPTIONS: dict[str, Callable[[np.ndarray, Random], np.ndarray]] = {one.__name__: one for one in NINE}


# -- of a run ----------------------------------------------------------------------------------------------------------


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
        self.loaded: Loaded = loaded(run)
        whole = tested(run)
        at = stratified(whole.labels, images, seed)
        self.rows = rows_of(whole)[at]
        z, labels, roles = whole.z[torch.from_numpy(at)], whole.labels[at], whole.roles[at]
        self.stored = replace(whole, z=z, labels=labels, roles=roles, rows=self.rows)
        self.parts = f"corruptions-parts-{images or 'all'}-{seed}.json"
        few = self.embedded(None, self.rows[:BATCH])
        alike = float((unit(few) * unit(self.stored.z[: len(few)])).sum(1).min())
        if alike < ALIKE:
            raise NearkinError(
                f"run {run.hash} embeds its test images otherwise here than when it was tested (cosine {alike:.3f}, at "
                f"least {ALIKE}): its model or its images were exchanged"
            )

    def embedded(self, name: str | None, rows: np.ndarray | None = None) -> Tensor:
        """Embeddings (N, D) of the corrupted images, computed as the test computes them."""
        model, device = self.loaded.model, self.loaded.device
        rows = self.rows if rows is None else rows
        pixels = CorruptedPixels(self.loaded.pixels, rows, name, self.seed)
        source: Source = pixels
        if model.cut != "none":
            which = sha256(np.ascontiguousarray(rows).tobytes()).hexdigest()[:16]
            key = f"{self.run.head()['data_hash']} {name} {VERSION} {self.seed} {which}"
            source = FeatureSource(pixels, model, data_hash=key, views=1, flip=False)
        return embed(model, source, np.arange(len(rows)), device, title=f"Embedding, {name}" if name else "")

    @cached_property
    def clean(self) -> dict[str, float]:
        """The metrics of the stored embeddings."""
        return self.stored.evaluate(metrics=list(METRICS)).metrics

    def measured(self, name: str) -> dict[str, Any]:
        """The metrics of a corruption, stored at once."""
        folder = self.run.path / "analysis"
        known = Run(folder).read_json(self.parts) if (folder / self.parts).exists() else {}
        parts = known["found"] if known.get("version") == VERSION else {}
        if name not in parts:
            z = self.embedded(name)
            both = replace(self.stored, z=z).evaluate(metrics=list(METRICS)).metrics
            parts[name] = {"all": both, "queries": self._queries_only(z)}
            Run(folder).write_json(self.parts, {"version": VERSION, "found": parts})
        return parts[name]

    def _queries_only(self, z: Tensor) -> dict[str, float]:
        """Corrupted queries in the clean gallery; an image is excluded by its index, as ever."""
        clean = self.stored
        roles: dict[str, Any] = {} if clean.plain else {"query": clean.query, "gallery": clean.gallery}
        sets = make_sets(clean.z, clean.labels, **{"query": None, "gallery": None} | roles, distance="cosine")
        sets = replace(sets, query=z[torch.from_numpy(clean.query)])
        metrics = [metric for name in METRICS for metric in parse(name)]
        values, _ = rank(sets, metrics, distance="cosine", budget_mib=None, progress=None)
        return {key: float(np.nanmean(per_query)) for key, per_query in values.items()}

    def strip(self, names: Iterable[str]) -> np.ndarray:
        """(3, 1 + C, H, W, 3) uint8: images of different classes, clean and with each of C corruptions."""
        some = stratified(self.stored.labels, SHOWN, self.seed)
        images = [CorruptedPixels(self.loaded.pixels, self.rows, name, self.seed).test(some) for name in (None, *names)]
        return torch.stack(images, 1).permute(0, 1, 3, 4, 2).numpy()
