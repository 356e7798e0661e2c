"""The decoded cache: every image decoded and resized once, into one flat memory-mapped uint8 file.

    cache_dir()/decoded/<data hash>-<size>/pixels.bin     image after image, (H, W, 3) each
                                           index.npz      shapes, kept rows, skipped files

Keyed by the data hash, so that changed images are never taken for the old ones; the folder appears whole or not at
all. An epoch from it reads memory and decodes nothing.
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
from nearkin.storage import atomic, cache_dir

FORMAT = 1      # raise it when the same image begins to give other pixels

__all__ = ["Decoded", "cache_dir", "data_hash", "decoded"]


@dataclass(frozen=True)
class Decoded:
    """N images, each of its own shape, as `decoded[i]`. Row i is row `kept[i]` of the table."""

    pixels: np.ndarray                                      # (bytes,) uint8, all images one after another
    shapes: np.ndarray                                      # (N, 2) height, width
    kept: np.ndarray                                        # (N,) rows of the table
    skipped: list[tuple[str, str]] = field(default_factory=list)    # path, reason

    @classmethod
    def of(cls, images: np.ndarray) -> "Decoded":
        """An array (N, H, W, 3), as it is."""
        return cls(images.reshape(-1), np.tile(images.shape[1:3], (len(images), 1)), np.arange(len(images)))

    @cached_property
    def offsets(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.shapes.prod(1) * 3)])    # (N + 1,)

    @property
    def in_memory(self) -> bool:
        return not isinstance(self.pixels, np.memmap)

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.pixels[self.offsets[index] : self.offsets[index + 1]].reshape(*self.shapes[index], 3)


def decoded(table: Table, *, resize: int, on_error: Literal["raise", "skip"] = "raise") -> Decoded:
    """The table's images with the shorter side at `resize`, from the cache or into it."""
    if resize < 1:
        raise NearkinError(f"resize={resize}: an image has at least 1 pixel a side")
    if on_error not in ("raise", "skip"):
        raise NearkinError(f"on_error={on_error!r}: {choices(on_error, ('raise', 'skip'))}")
    if table.images is not None:
        return Decoded.of(np.stack([shorter_side(image, resize) for image in table.images]))
    folder = cache_dir() / "decoded" / f"{data_hash(table)}-{resize}-v{FORMAT}"
    was_there = folder.exists()
    images = _open(folder)
    if images is None:
        if was_there:                                       # damaged; what appears only now is another process's, whole
            shutil.rmtree(folder, ignore_errors=True)
        _build(table, folder, resize, on_error)
        images = _open(folder)
        if images is None:
            raise NearkinError(f"{folder} was damaged while it was written; the same command again rebuilds it")
    if images.skipped and on_error == "raise":
        raise UnreadableImage(*images.skipped[0])
    return images


def _open(folder: Path) -> Decoded | None:
    """None when it is absent or not what it should be."""
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
                        raise image
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
