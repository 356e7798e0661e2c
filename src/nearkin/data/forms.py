"""The forms in which the images of a table are kept: `Decoded`, `Packed` and `Files`, all read as `images[i]`.

    form      what is kept                                              a read
    Decoded   the pixels of all images in one file, or an array         copies nothing
    Packed    a JPEG of each image at its kept size, in one file        decodes a small JPEG; its pixels differ a little
    Files     nothing but the sizes                                     decodes and resizes the image's own file

Reads may come from several threads at once.
"""

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import simplejpeg

from nearkin.data.images import UnreadableImage, read_image
from nearkin.data.journal import SKIP
from nearkin.data.transforms import scaled, shorter_side
from nearkin.errors import NearkinError

Skipped = list[tuple[str, str]]  # path and reason


class Sums:
    """The CRC-32 of each image of a file in the cache. An image is compared when it is read first.

    Parameters:
        folder: of the cache.
        numbers: (N,) uint32.
    """

    def __init__(self, folder: Path, numbers: np.ndarray):
        self.folder, self.numbers = folder, numbers
        self._right = np.zeros(len(numbers), bool)

    def check(self, index: int, content: np.ndarray) -> None:
        """Refuse a damaged image, and have the next process make the folder again: others may be reading it."""
        if self._right[index]:
            return
        if zlib.crc32(content.data) != self.numbers[index]:
            (self.folder / "index.npz").unlink(missing_ok=True)
            raise NearkinError(
                f"image {index} of {self.folder} is damaged: its CRC-32 differs; the same command again "
                "makes the folder anew, and goes on"
            )
        self._right[index] = True

    def all_right(self, content: np.ndarray, sizes: np.ndarray) -> bool:
        """Has every image its sum? Images of these sizes lie one after another in `content`."""
        ends = offsets(sizes)
        for index, number in enumerate(self.numbers):
            self._right[index] = zlib.crc32(content[ends[index] : ends[index + 1]].data) == number
        return bool(self._right.all())


class Images:
    """N images, each of its own shape: `images[i]` is (H, W, 3) uint8, RGB; what a `PixelSource` reads.

    `open_images(table, ...)` makes it. Where unreadable images were skipped, N is smaller than the table;
    `table.take(images.rows)` is the table of the images that are here.

    Fields:
        shapes: (N, 2) height and width of each image
        rows: (N,) the row of the table that each image is of
        skipped: path and reason of each image that could not be read
    """

    shapes: np.ndarray
    rows: np.ndarray
    skipped: Skipped

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, index: int) -> np.ndarray:
        raise NearkinError(f"{type(self).__name__} does not define images[i]")

    def alone(self) -> "Images":
        """The same images, without rows of a table and without the names of what was skipped."""
        images: Any = self
        return replace(images, rows=np.arange(len(self)), skipped=[])


@dataclass(frozen=True)
class Decoded(Images):
    """N decoded images, each of its own shape: `images[i]` is (H, W, 3) uint8, RGB.

    `decoded(table, ...)` makes it, `Decoded.of(array)` too; a `PixelSource` reads it. Where unreadable images were
    skipped, N is smaller than the table; `table.take(images.rows)` is the table of the images that are here.

    Fields:
        pixels: (bytes,) uint8, all images one after another; a memory-mapped file or an array
        sums: what each image is compared with when it is read first; None: an array, or a file without sums
        shapes: (N, 2) height and width of each image
        rows: (N,) the row of the table that each image is of
        skipped: path and reason of each image that could not be read
    """

    pixels: np.ndarray
    shapes: np.ndarray
    rows: np.ndarray
    skipped: Skipped = field(default_factory=list)
    sums: Sums | None = None

    @classmethod
    def of(cls, images: np.ndarray) -> "Decoded":
        """The images of an array (N, H, W, 3) uint8, without a copy where it is contiguous."""
        return cls(images.reshape(-1), np.tile(images.shape[1:3], (len(images), 1)), np.arange(len(images)))

    @cached_property
    def offsets(self) -> np.ndarray:
        """(N + 1,): where in `pixels` each image begins, and where the last ends."""
        return offsets(self.shapes.prod(1) * 3)  # (N + 1,)

    @property
    def in_memory(self) -> bool:
        """Whether the pixels are an array rather than a mapped file."""
        return not isinstance(self.pixels, np.memmap)

    def __getitem__(self, index: int) -> np.ndarray:
        pixels = self.pixels[self.offsets[index] : self.offsets[index + 1]]
        if self.sums is not None:
            self.sums.check(index, pixels)
        return pixels.reshape(*self.shapes[index], 3)


@dataclass(frozen=True)
class Packed(Images):
    """N images as JPEGs of their kept size, one after another in one file; `images[i]` decodes one.

    Fields:
        jpegs: (bytes,) uint8, the memory-mapped file
        sizes: (N,) the bytes of each JPEG
        sums: as in `Decoded`
        shapes, rows, skipped: as in `Images`
    """

    jpegs: np.ndarray
    sizes: np.ndarray
    shapes: np.ndarray
    rows: np.ndarray
    skipped: Skipped = field(default_factory=list)
    sums: Sums | None = None

    @cached_property
    def offsets(self) -> np.ndarray:
        """(N + 1,): where in `jpegs` each image begins, and where the last ends."""
        return offsets(self.sizes)  # (N + 1,)

    def __getitem__(self, index: int) -> np.ndarray:
        jpeg = self.jpegs[self.offsets[index] : self.offsets[index + 1]]
        if self.sums is not None:
            self.sums.check(index, jpeg)
        try:
            return simplejpeg.decode_jpeg(jpeg)
        except ValueError as error:
            file = getattr(self.jpegs, "filename", "in memory")
            raise NearkinError(
                f"image {index} of the packed images {file} is damaged: {error}; nearkin cache clear removes them"
            ) from error


@dataclass(frozen=True)
class Files(Images):
    """N images that are decoded and resized from their own files, every time that they are read.

    The names of the files are one array of bytes, so that a million of them take little memory. Training is given it,
    with the folders of test images in it: nothing in nearkin reads them, but a loss that decodes the bytes could.

    Fields:
        names: (bytes,) uint8, the paths of all files, one after another
        ends: (N + 1,) where in `names` each begins, and where the last ends
        shapes, rows, skipped: as in `Images`
        resize, keep: what an image's shorter side is brought to: at least resize, at most keep
    """

    names: np.ndarray
    ends: np.ndarray
    shapes: np.ndarray
    rows: np.ndarray
    resize: int
    keep: int
    skipped: Skipped = field(default_factory=list)

    @classmethod
    def of(cls, paths: Sequence[Path], shapes: np.ndarray, **fields: Any) -> "Files":
        """The images of these N files, whose heights and widths before resizing are `shapes` (N, 2)."""
        names = [os.fsencode(os.path.abspath(path)) for path in paths]
        ends = offsets(np.array([len(name) for name in names]))
        shapes = fitted_shapes(shapes, fields["resize"], fields["keep"])
        return cls(np.frombuffer(b"".join(names), np.uint8), ends, shapes, **fields)

    def __getitem__(self, index: int) -> np.ndarray:
        path = os.fsdecode(self.names[self.ends[index] : self.ends[index + 1]].tobytes())
        try:
            image = fitted(read_image(path), self.resize, self.keep)
        except UnreadableImage as error:
            raise UnreadableImage(path, error.reason, SKIP) from None
        if image.shape[:2] != tuple(self.shapes[index]):
            raise NearkinError(f"{path} has changed since the data were read; start again")
        return image


def offsets(sizes: np.ndarray) -> np.ndarray:  # (N,) -> (N + 1,)
    """Where things of these sizes begin that lie one after another, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)])


def fitted(pixels: np.ndarray, resize: int, keep: int) -> np.ndarray:
    """An image (H, W, 3) as it is kept: enlarged to the shorter side `resize` where it is smaller, made smaller to
    `keep` where it is larger, else as it is."""
    return shorter_side(pixels, min(max(min(pixels.shape[:2]), resize), keep))


def fitted_shapes(shapes: np.ndarray, resize: int, keep: int) -> np.ndarray:  # (N, 2) -> (N, 2)
    """The heights and widths that `fitted` gives images of these heights and widths."""
    shorter = shapes.min(1, keepdims=True)  # (N, 1)
    side = shorter.clip(resize, keep)
    return scaled(shapes, side)
