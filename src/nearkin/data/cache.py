"""The decoded cache: every image decoded and resized once, into one flat memory-mapped uint8 file.

    cache_dir()/decoded/<data hash>-<size>-v<format>/pixels.bin     image after image, (H, W, 3) each
                                                     index.npz      shapes, kept rows, skipped files

The data hash is part of the name, so that changed images are never taken for the old ones. The folder appears whole or
not at all. An epoch from it reads memory and decodes nothing. When several processes need it at once, one decodes and
the others wait.
"""

import json
import shutil
import zipfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from nearkin.data.hashing import data_hash
from nearkin.data.images import UnreadableImage, read_image
from nearkin.data.table import Table
from nearkin.data.transforms import shorter_side
from nearkin.errors import NearkinError, choices
from nearkin.progress import parallel
from nearkin.storage import atomic, cache_dir, locked

FORMAT = 2      # raise it when the same image begins to give other pixels; 2: numbers of 32 bits
SKIP = "data.on_error=skip leaves unreadable images out, nearkin data verify lists them"

__all__ = ["Decoded", "cache_dir", "data_hash", "decoded"]


@dataclass(frozen=True)
class Decoded:
    """N decoded images, each of its own shape: `images[i]` is (H, W, 3) uint8, RGB.

    `decoded(table, ...)` makes it, `Decoded.of(array)` too; a `PixelSource` reads it. Where unreadable images were
    skipped, N is smaller than the table; `table.take(images.kept)` is the table of the images that are here.

    Fields:
        pixels: (bytes,) uint8, all images one after another; a memory-mapped file or an array
        shapes: (N, 2) height and width of each image
        kept: (N,) the row of the table that each image is of
        skipped: path and reason of each image that could not be read
    """

    pixels: np.ndarray
    shapes: np.ndarray
    kept: np.ndarray
    skipped: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, images: np.ndarray) -> "Decoded":
        """The images of an array (N, H, W, 3) uint8, without a copy where it is contiguous."""
        return cls(images.reshape(-1), np.tile(images.shape[1:3], (len(images), 1)), np.arange(len(images)))

    @cached_property
    def offsets(self) -> np.ndarray:
        """(N + 1,): where in `pixels` each image begins, and where the last ends."""
        return np.concatenate([[0], np.cumsum(self.shapes.prod(1) * 3)])    # (N + 1,)

    @property
    def in_memory(self) -> bool:
        """Whether the pixels are an array rather than a mapped file."""
        return not isinstance(self.pixels, np.memmap)

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.pixels[self.offsets[index] : self.offsets[index + 1]].reshape(*self.shapes[index], 3)


def decoded(table: Table, *, resize: int, on_error: Literal["raise", "skip"] = "raise") -> Decoded:
    """The images of a table with the shorter side at `resize` pixels, from the cache.

    The first call for these data and this size decodes them into the cache; later calls, also of other processes, only
    map the file. A process that comes while another decodes waits for it. A damaged cache is made again. A table of
    arrays is resized in memory, without the cache.

    An unreadable image raises `UnreadableImage` with `on_error="raise"`; with "skip" it is left out and listed in
    `skipped`. In a spec this is `data.on_error`. A NearkinError also when no image is readable, or the cache cannot be
    written.
    """
    if resize < 1:
        raise NearkinError(f"resize={resize}: an image has at least 1 pixel per side")
    if on_error not in ("raise", "skip"):
        raise NearkinError(f"on_error={on_error!r}: {choices(on_error, ('raise', 'skip'))}")
    if table.images is not None:
        return Decoded.of(np.stack([shorter_side(image, resize) for image in table.images]))
    folder = cache_dir() / "decoded" / f"{data_hash(table)}-{resize}-v{FORMAT}"
    images = _open(folder)
    if images is None:
        with locked(folder):                                # another process may be decoding: wait, then look again
            images = _open(folder)
            if images is None:
                shutil.rmtree(folder, ignore_errors=True)   # if it is there, it is damaged
                _build(table, folder, resize, on_error)
                images = _open(folder)
        if images is None:
            raise NearkinError(f"{folder} was damaged while it was written; the same command again rebuilds it")
    if images.skipped and on_error == "raise":
        raise UnreadableImage(*images.skipped[0], SKIP)
    return images


def _open(folder: Path) -> Decoded | None:
    """The cache in this folder; None when it is absent or damaged."""
    try:
        with np.load(folder / "index.npz") as index:
            shapes, kept, skipped = index["shapes"], index["kept"], json.loads(str(index["skipped"]))
        pixels = np.memmap(folder / "pixels.bin", np.uint8, "r")
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    images = Decoded(pixels, shapes, kept, [(path, reason) for path, reason in skipped])
    return images if images.offsets[-1] == len(pixels) else None


def _build(table: Table, folder: Path, resize: int, on_error: str) -> None:
    paths = table.paths or ()
    shapes: list[tuple[int, int]] = []
    kept: list[int] = []
    skipped: list[tuple[str, str]] = []
    written = 0

    def load(path: Path) -> np.ndarray | UnreadableImage:
        try:
            return shorter_side(read_image(path), resize)
        except UnreadableImage as error:
            return error

    def needs() -> int:
        return written * len(paths) // max(1, len(kept))

    with atomic(folder, needs=needs) as scratch:
        building = scratch / folder.name
        building.mkdir()
        with open(building / "pixels.bin", "wb") as file:
            for row, image in enumerate(parallel(load, paths, f"Decoding images at {resize} px")):
                if isinstance(image, UnreadableImage):
                    if on_error == "raise":
                        raise UnreadableImage(str(paths[row]), image.reason, SKIP)
                    skipped.append((str(paths[row]), image.reason))
                    continue
                file.write(np.ascontiguousarray(image).data)
                written += image.nbytes
                shapes.append(image.shape[:2])
                kept.append(row)
        if not kept:
            raise NearkinError(f"all {len(paths)} images are unreadable; the first, {skipped[0][0]}: {skipped[0][1]}")
        np.savez(
            building / "index.npz",
            shapes=np.array(shapes, np.int64).reshape(-1, 2),
            kept=np.array(kept, np.int64),
            skipped=np.array(json.dumps(skipped)),
        )
