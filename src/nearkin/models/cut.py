"""`FeatureSource`: the output of a model's frozen front, computed once and then read like pixels.

    pixels -> front (all up to the cut, frozen) -> float16 files     once
    files -> back (all after the cut)                                every step

Shapes: N images, B of them in a batch, R further views of the images that train, F the shape of the front's output for
one image.
"""

import json
import math
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from hashlib import sha256
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Protocol
from zlib import crc32

import numpy as np
import torch
from torch import Generator, Tensor

from nearkin.cache import cache_dir
from nearkin.errors import NearkinError
from nearkin.models.model import Model
from nearkin.progress import track
from nearkin.storage import atomic, locked

BATCH = 64
# a mark and the CRC-32 of everything before it; 13 bytes, an odd number, which no rows of float16 can fill
SUM, MARK = struct.Struct("<9sI"), b"nearkin 1"
BLOCK = 1 << 20  # bytes that are read at a time for it
VERSION = 2  # raise it when the same settings give different features
Compute = Callable[[list[np.ndarray]], Iterator[np.ndarray]]  # batches of images -> their rows
_verified: set[tuple[int, int, int, int]] = set()  # device, inode, time and size of files that were compared


class Pixels(Protocol):
    """What a `FeatureSource` needs of its images; a `PixelSource` has it."""

    def __len__(self) -> int: ...

    def train(self, indices: np.ndarray, generator: Generator, size: int | None = None) -> Tensor:
        """Augmented images (B, 3, size, size) uint8; all randomness comes from the generator."""
        ...

    def test(self, indices: np.ndarray) -> Tensor:
        """Images (B, 3, H, W) uint8 as they are tested."""
        ...


class FeatureSource:
    """The features of N images at a model's cut, from a file that is written once; used in place of a `PixelSource`.

    `train` and `test` give the input of `model.back`. An image is kept in `views` views: the plain one, its mirror
    image, then random crops that are drawn once, with a fixed seed; every time that training reads an image, one of its
    views is drawn. Without `flip`, crops take the place of the mirror image.

    There are two files: the plain views of all images, which all divisions of the data share, and the further views of
    the images that train. Each lies at features/<hash>.npy in the cache. The hash covers all that it depends on (data,
    frozen weights, cut, views, a few pixels as the source gives them), so that runs with the same front share it and no
    other run finds it. When two processes need it at once, one computes it and the other waits. Its CRC-32 stands at
    its end and is compared once in a process; a damaged file is computed again.

    Fields:
        plain: (N, *F) float16, the mapped file of plain views
        more: (R, *F) float16, that of further views, image after image, view after view; None: there are none
        counts: (N,) how many views of each image there are
        first: (N,) the row of each image's first further view
        pixels, model, views, flip: as given

    Parameters:
        pixels: the N images
        model: the model with the cut; its front must not change afterwards
        data_hash: what the images are (`nearkin.data.data_hash`)
        views: how many views of an image, at least 1
        flip: the second view is the mirror image
        augmented: indices of the images that get all views (None: all); the others, never trained on, get the plain one
        cache: the cache folder (None: `cache_dir()`)

    A NearkinError when the model has no cut, `views` is below 1, there are no images, the features leave the range of
    float16, or the file cannot be written.

    Example:
        source = FeatureSource(pixels, model, data_hash=data_hash(table), views=4)
        z = model.back(source.train(indices, generator)).z      # (B, D)
    """

    def __init__(
        self,
        pixels: Pixels,
        model: Model,
        *,
        data_hash: str,
        views: int = 4,
        flip: bool = True,
        augmented: np.ndarray | None = None,
        cache: Path | None = None,
    ):
        if model.cut == "none":
            raise NearkinError("model.cut='none' leaves no frozen front to compute once; cut at a stage or at 'all'")
        if views < 1:
            raise NearkinError(f"model.views={views}: must be at least 1, the plain view")
        if len(pixels) == 0:
            raise NearkinError("no images to compute features of")
        self.pixels, self.model, self.views, self.flip = pixels, model, views, flip
        counts = np.full(len(pixels), views)
        if augmented is not None:
            counts[:] = 1
            counts[augmented] = views
        self.counts = torch.from_numpy(counts)  # (N,) views of each image
        further = self.counts - 1
        self.first = further.cumsum(0) - further  # (N,)
        folder = (cache_dir() if cache is None else cache) / "features"
        key = self._key(data_hash)
        everything = np.arange(len(self))
        self.plain = self._open(folder / f"{key}.npy", everything, 1, self._plain_views)
        self.more = None
        if len(training := np.flatnonzero(counts > 1)):
            self.more = self._open(folder / f"{self._more_key(key)}.npy", training, views - 1, self._further_views)

    def __len__(self) -> int:
        return len(self.counts)

    def train(self, indices: np.ndarray, generator: Generator, *, only: slice = slice(None)) -> Tensor:
        """Features (B, *F) float32 of the images at `indices` (B,), each in one of its views, drawn at random.

        `only` selects a slice of the batch. The views of the whole batch are drawn in any case, so that the slices of
        processes with equal generators together make the batch.
        """
        counts = self.counts[indices]
        view = (torch.rand(len(counts), generator=generator, dtype=torch.float64) * counts).long()
        indices, view = np.asarray(indices)[only], view[only]  # (B,)
        features = np.empty((len(view), *self.plain.shape[1:]), np.float16)
        is_plain = (view == 0).numpy()
        features[is_plain] = self.plain[indices[is_plain]]
        if self.more is not None:
            rows = self.first[indices] + view - 1
            features[~is_plain] = self.more[rows.numpy()[~is_plain]]
        return torch.from_numpy(features).float()  # (B, *F)

    def test(self, indices: np.ndarray) -> Tensor:
        """Features (B, *F) float32 of the images at `indices` (B,), each in its plain view."""
        return torch.from_numpy(self.plain[np.asarray(indices)]).float()

    # -- the files ----------------------------------------------------------------------------------------

    def _open(self, path: Path, images: np.ndarray, views: int, compute: Compute) -> np.ndarray:
        """The mapped file with so many views of each of these images."""
        if not readable(path):
            with locked(path):  # a second worker waits here, then finds the file
                if not readable(path):
                    if path.is_dir() and not path.is_symlink():  # no file can take its place
                        shutil.rmtree(path)
                    self._write(path, images, views, compute)
        return np.load(path, mmap_mode="r")

    def _write(self, path: Path, images: np.ndarray, views: int, compute: Compute) -> None:
        """Compute a file. It is written, not mapped for writing: on a full disk a write raises an error, whereas a map
        would end the process with SIGBUS."""
        places = np.split(images, np.flatnonzero(np.diff(images // BATCH)) + 1)  # those of 64 neighbours at a time
        batches = compute(places)
        first = next(batches)
        shape = (len(images) * views, *first.shape[1:])
        header = {"descr": "<f2", "fortran_order": False, "shape": shape}
        with atomic(path, needs=lambda: 2 * math.prod(shape)) as scratch, open(scratch / path.name, "wb") as file:
            beginning = BytesIO()
            np.lib.format.write_array_header_1_0(beginning, header)
            rest = track(batches, f"Features up to {self.model.cut}", len(places) - 1)
            crc = 0
            for content in chain([beginning.getvalue(), first.tobytes()], (batch.tobytes() for batch in rest)):
                crc = crc32(content, crc)
                file.write(content)
            file.write(SUM.pack(MARK, crc))
            file.flush()
            os.fsync(file.fileno())

    def _plain_views(self, places: list[np.ndarray]) -> Iterator[np.ndarray]:
        """The rows (B, *F) of batch after batch."""
        for indices in places:
            yield self._front(self.pixels.test(indices)).numpy()

    def _further_views(self, places: list[np.ndarray]) -> Iterator[np.ndarray]:
        """The rows (B · (views - 1), *F) of batch after batch, image after image, view after view."""
        generator = torch.Generator().manual_seed(0)
        for indices in places:
            plain = self.pixels.test(indices)
            views = []
            for view in range(1, self.views):
                if view == 1 and self.flip:
                    images = plain.flip(-1)
                else:  # one shape for all views: that of the plain one
                    images = self.pixels.train(indices, generator, size=plain.shape[-1])
                views.append(self._front(images))  # (B, *F)
            yield torch.stack(views, 1).flatten(0, 1).numpy()

    def _front(self, images: Tensor) -> Tensor:
        device = next((p.device for p in self.model.backbone.parameters()), images.device)
        features = self.model.front(images.to(device)).half().cpu()
        if not features.isfinite().all():
            raise NearkinError(
                f"the features at cut={self.model.cut!r} leave the range of float16; use another model.cut"
            )
        return features

    def _key(self, data_hash: str) -> str:
        """The hash of all that plain views depend on: data and front; and a few images as the source gives them, so
        that a source with another crop does not find the wrong file."""
        model, backbone = self.model, self.model.backbone
        pool = model.pool if model.cut == "all" else None
        name = getattr(backbone, "name", type(backbone).__qualname__)
        front = [name, backbone.version, repr(model.record), model.cut, pool]
        if backbone.source is not None:  # from outside: another network may have its weights
            front.append(backbone.source)
        key = sha256(json.dumps([VERSION, data_hash, len(self), BATCH, front]).encode())
        for module in model.stage_modules(model.frozen_stages):
            for name, value in module.state_dict().items():
                key.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
                key.update(value.cpu().contiguous().numpy().tobytes())
        images = getattr(self.pixels, "images", None)
        if images is not None and getattr(self.pixels, "resize", None) is not None:
            key.update(images.shapes.tobytes())  # larger copies: all crops may be others
        key.update(self._sample(self.pixels.test))
        return key.hexdigest()[:24]

    def _more_key(self, key: str) -> str:
        """The hash of all that further views depend on: plain ones, which images have them, and the augmentation."""
        more = sha256(json.dumps([key, self.views, self.flip, self.counts.tolist()]).encode())
        side = self.pixels.test(np.arange(1)).shape[-1]
        more.update(self._sample(lambda rows: self.pixels.train(rows, torch.Generator().manual_seed(0), size=side)))
        return more.hexdigest()[:24]

    def _sample(self, read: Callable[[np.ndarray], Tensor]) -> bytes:
        """A few images as the source gives them."""
        images = read(np.unique(np.linspace(0, len(self) - 1, 4).astype(int)))
        return repr(tuple(images.shape)).encode() + images.contiguous().numpy().tobytes()


def readable(path: Path) -> bool:
    """Is the file complete and as it was written? A file without a sum comes from an older nearkin."""
    try:
        rows = np.load(path, mmap_mode="r")
        stat = path.stat()
        file = stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size
        if stat.st_size > rows.offset + rows.nbytes and file not in _verified:
            if not _has_its_sum(path, stat.st_size - SUM.size):
                return False
            _verified.add(file)
    except (OSError, ValueError, EOFError, struct.error):  # absent, or not whole
        return False
    return True


def _has_its_sum(path: Path, size: int) -> bool:
    crc = 0
    with open(path, "rb") as file:
        while size > 0 and (block := file.read(min(BLOCK, size))):
            crc, size = crc32(block, crc), size - len(block)
        return SUM.unpack(file.read()) == (MARK, crc)
