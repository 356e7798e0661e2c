"""`FeatureSource`: the output of a model's frozen front, computed once and read like pixels ever after.

    pixels -> front (all before the cut, frozen) -> float16 file      once
    file -> back (all after the cut)                                  every step

An image is kept in `views` views: plain, flipped, then random crops drawn once with a fixed seed; training draws one
of them a time. The file is named by the hash of all that it depends on, so that runs of the same front share it.

Shapes: B images, R rows of the file (views of images), F the shape of the front's output.
"""

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from filelock import FileLock
from torch import Generator, Tensor

from nearkin.errors import NearkinError
from nearkin.models.model import Model
from nearkin.progress import track
from nearkin.storage import atomic, cache_dir

BATCH = 64
VERSION = 1     # raise it when the same settings begin to give other features


class Pixels(Protocol):
    def __len__(self) -> int: ...
    def train(self, indices: np.ndarray, generator: Generator, size: int | None = None) -> Tensor: ...
    def test(self, indices: np.ndarray) -> Tensor: ...


class FeatureSource:
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
        """`augmented`: indices of the images that get all views (None: all); the others, which are never trained on,
        get the plain one."""
        if model.cut == "none":
            raise NearkinError("model.cut='none' leaves no frozen front to compute once; cut at a stage or at 'all'")
        if views < 1:
            raise NearkinError(f"model.views={views}: at least 1, the plain view")
        if len(pixels) == 0:
            raise NearkinError("no images to compute features of")
        self.pixels, self.model, self.views, self.flip = pixels, model, views, flip
        counts = np.full(len(pixels), views)
        if augmented is not None:
            counts[:] = 1
            counts[augmented] = views
        self.counts = torch.from_numpy(counts)                      # (N,) views of each image
        self.first = self.counts.cumsum(0) - self.counts            # (N,) row of its plain view
        path = (cache_dir() if cache is None else cache) / "features" / f"{self._key(data_hash)}.npy"
        self.rows = self._open(path)                                # (R, *F) float16, mapped

    def __len__(self) -> int:
        return len(self.counts)

    def train(self, indices: np.ndarray, generator: Generator, *, part: slice = slice(None)) -> Tensor:
        """A view of each image by lot; `part`: the slice of the batch that is wanted."""
        counts = self.counts[indices]
        view = (torch.rand(len(counts), generator=generator, dtype=torch.float64) * counts).long()
        return self._read((self.first[indices] + view)[part])       # (B, *F)

    def test(self, indices: np.ndarray) -> Tensor:
        """The plain view of each image."""
        return self._read(self.first[indices])                      # (B, *F)

    def _read(self, rows: Tensor) -> Tensor:
        return torch.from_numpy(self.rows[rows.numpy()]).float()

    # -- the file -----------------------------------------------------------------------------------------

    def _open(self, path: Path) -> np.ndarray:
        if not readable(path):
            with locked(path):                                      # a second worker waits instead of repeating
                if not readable(path):
                    self._write(path)
        return np.load(path, mmap_mode="r")

    def _write(self, path: Path) -> None:
        """Plain writes, not a writable map: on a full disk a map ends the process with SIGBUS, a write raises."""
        total = int(self.counts.sum())
        batches = self._batches()
        first = next(batches)
        shape = (total, *first.shape[1:])
        header = {"descr": "<f2", "fortran_order": False, "shape": shape}
        with atomic(path, needs=lambda: 2 * math.prod(shape)) as scratch, open(scratch / path.name, "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            file.write(first.tobytes())
            steps = -(-len(self) // BATCH) - 1
            for batch in track(batches, f"Features up to {self.model.cut}", steps):
                file.write(batch.tobytes())
            file.flush()
            os.fsync(file.fileno())

    def _batches(self) -> Iterator[np.ndarray]:
        """The rows of 64 images at a time, image by image, view by view."""
        generator = torch.Generator().manual_seed(0)
        for start in range(0, len(self), BATCH):
            indices = np.arange(start, min(start + BATCH, len(self)))
            counts = self.counts[indices]
            plain = self.pixels.test(indices)
            rows = self._front(plain)                               # (B, *F)
            batch = rows.new_empty(len(indices), self.views, *rows.shape[1:])
            batch[:, 0] = rows
            more = np.flatnonzero(counts > 1)
            for view in range(1, self.views) if len(more) else ():
                if view == 1 and self.flip:
                    images = plain[more].flip(-1)
                else:                                               # one shape for all views: that of the plain one
                    images = self.pixels.train(indices[more], generator, size=plain.shape[-1])
                batch[more, view] = self._front(images)
            yield batch[torch.arange(self.views) < counts[:, None]].numpy()                 # (rows of B, *F)

    def _front(self, images: Tensor) -> Tensor:
        device = next(self.model.backbone.parameters()).device
        features = self.model.front(images.to(device)).half().cpu()
        if not features.isfinite().all():
            raise NearkinError(f"the features at cut={self.model.cut!r} leave the range of float16; cut elsewhere")
        return features

    def _key(self, data_hash: str) -> str:
        """Data, front and views; and a few pixels as the source gives them, so that another crop or augmentation
        never meets the wrong file."""
        model, backbone = self.model, self.model.backbone
        settings = [VERSION, data_hash, self.views, self.flip, self.counts.tolist(), BATCH]
        pool = model.pool if model.cut == "all" else None
        front = [backbone.name, backbone.version, repr(model.record), model.cut, pool]
        key = sha256(json.dumps([settings, front]).encode())
        for module in model.stage_modules(model.frozen_stages):
            for name, value in module.state_dict().items():
                key.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
                key.update(value.cpu().contiguous().numpy().tobytes())
        some = np.unique(np.linspace(0, len(self) - 1, 4).astype(int))
        plain = self.pixels.test(some)
        drawn = self.pixels.train(some, torch.Generator().manual_seed(0), size=plain.shape[-1])
        for images in (plain, drawn):
            key.update(repr(tuple(images.shape)).encode() + images.contiguous().numpy().tobytes())
        return key.hexdigest()[:24]


def readable(path: Path) -> bool:
    try:
        np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError):     # absent, or not whole
        return False
    return True


@contextmanager
def locked(path: Path) -> Iterator[None]:
    lock = FileLock(path.with_suffix(".lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        place = f"{path.parent} (another place: NEARKIN_CACHE=DIR)"
        raise NearkinError(f"cannot write features in {place}: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()
