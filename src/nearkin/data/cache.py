"""The images of a table, from the cache: every image decoded and resized once.

    cache_dir()/decoded/<data hash>-<size>-v<format>/         pixels.bin   image after image, (H, W, 3) each
                packed/<data hash>-<size>-q<quality>-v<format>/             image after image, a JPEG each
                sizes/<data hash>-v<format>/                                empty
                                                              index.npz    shapes, bytes, CRC-32, kept rows, skipped
                                                                           files

The data hash is part of the name, so that changed images are never taken for the old ones. A folder appears whole or
not at all, and a build that was stopped goes on (data/journal.py). When several processes need it at once, one builds
and the others wait.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import simplejpeg

from nearkin.cache import cache_dir
from nearkin.data.forms import Decoded, Files, Images, Packed, Sums, fitted
from nearkin.data.hashing import data_hash
from nearkin.data.images import UnreadableImage, image_shape, read_image
from nearkin.data.journal import SKIP, Made, build
from nearkin.data.modern import unread_here
from nearkin.data.room import FORMS, PACKED_SHARE, Form, chosen, needed_for
from nearkin.data.table import Table
from nearkin.errors import NearkinError, choices
from nearkin.progress import note
from nearkin.storage import UNREADABLE, arrays_of, locked

FORMAT = 2  # raise it when the same image begins to give other pixels; 2: numbers of 32 bits
QUALITY, SUBSAMPLING = 90, "420"  # of packed JPEGs
SMALL = 1 << 26  # bytes of a file that is verified when it is opened; larger ones image by image
OnError = Literal["raise", "skip"]

__all__ = ["Decoded", "Files", "Images", "Packed", "cache_dir", "check_kept", "data_hash", "decoded", "open_images"]


@dataclass(frozen=True)
class Index:
    """What `index.npz` of a folder says, and the mapped `pixels.bin`."""

    pixels: np.ndarray
    shapes: np.ndarray
    sizes: np.ndarray
    rows: np.ndarray
    skipped: list[tuple[str, str]]
    sums: Sums | None


def decoded(table: Table, *, resize: int, keep: int | None = None, on_error: OnError = "raise") -> Decoded:
    """The images of a table with the shorter side at `resize` pixels, from the cache.

    The first call for these data and this size decodes them into the cache; later calls, also of other processes, only
    map the file. A process that comes while another decodes waits for it. A damaged cache is made again. A table of
    arrays is resized in memory, without the cache. `keep` as in `open_images`.

    An unreadable image raises `UnreadableImage` with `on_error="raise"`; with "skip" it is left out and listed in
    `skipped`. In a spec this is `data.on_error`. A NearkinError also when no image is readable, or the cache cannot be
    written.
    """
    images = open_images(table, resize=resize, keep=keep, cache="decoded", on_error=on_error)
    assert isinstance(images, Decoded)
    return images


def open_images(
    table: Table,
    *,
    resize: int,
    keep: int | None = None,
    cache: Form = "auto",
    on_error: OnError = "raise",
    known_hash: str | None = None,
) -> Images:
    """The images of a table, each as `images[i]`; the first call for these data and sizes fills the cache.

    Parameters:
        table: of files; a table of arrays is resized in memory.
        resize: the shorter side, in pixels, that every image has at least; smaller ones are enlarged to it.
        keep: the shorter side that an image has at most; between the two it stays as it is. None: `resize`, so that
            all images have it.
        cache: `decoded` keeps all pixels in one file, `none` nothing but sizes and decodes a file whenever it is read,
            with the same pixels; `auto` takes decoded where that fits into half of the free disk and into the limit of
            the cache, else none, and says so. `packed` keeps JPEGs (quality 90, colours at half resolution), about a
            tenth of decoded; their pixels differ a little.
        on_error: `raise` stops at an unreadable image and names it, `skip` leaves it out and lists it in `skipped`.
            With `none` and `raise`, only the beginning of each file is looked at: one that is damaged further inside
            is named when it is read.
        known_hash: `data_hash(table)`, where it is known already; for a million files it takes a minute.

    A NearkinError when a setting is out of range, no image is readable, or the cache cannot be written.

    Example:
        images = nearkin.data.open_images(table, resize=256, keep=512)
        images[0].shape, images.shapes[0]                       # (H, W, 3), (H, W)
    """
    check_kept(table, resize=resize, keep=keep, cache=cache, on_error=on_error)
    if table.images is not None:
        return Decoded.of(np.stack([fitted(image, resize, resize) for image in table.images]))
    most = resize if keep is None else keep
    size = str(resize) if most == resize else f"{resize}to{most}"
    name = known_hash or data_hash(table)
    folders = {
        "decoded": cache_dir() / "decoded" / f"{name}-{size}-v{FORMAT}",
        "packed": cache_dir() / "packed" / f"{name}-{size}-q{QUALITY}-v{FORMAT}",
        "none": cache_dir() / "sizes" / f"{name}{'-checked' if on_error == 'skip' else ''}-v{FORMAT}",
    }
    form: str = "decoded" if cache == "auto" else cache
    if on_error == "raise" and (unread := unread_here(table.paths or ())):
        raise NearkinError(f"{unread[0]}; data.on_error=skip leaves them out")

    def needs() -> int:
        return int(needed_for(table, resize, most) * {"decoded": 1, "packed": PACKED_SHARE, "none": 0}[form])

    if form != "none" and not folders[form].exists():
        form = chosen(cache, needs(), folders[form])
    make, title = {
        "decoded": (_pixels(resize, most), f"Decoding images at {most} px"),
        "packed": (_jpeg(resize, most), f"Packing images at {most} px"),
        "none": (_size(on_error), "Checking images" if on_error == "skip" else "Reading the sizes of images"),
    }[form]
    index = _opened(folders[form], make, table, title, on_error, needs)
    if form == "decoded":
        return Decoded(index.pixels, index.shapes, index.rows, index.skipped, index.sums)
    if form == "packed":
        return Packed(index.pixels, index.sizes, index.shapes, index.rows, index.skipped, index.sums)
    paths = [(table.paths or ())[row] for row in index.rows]
    return Files.of(paths, index.shapes, rows=index.rows, resize=resize, keep=most, skipped=index.skipped)


def held_images(name: str, *, resize: int, keep: int | None = None) -> Images | None:
    """What the cache holds of the images of data with this hash, decoded or packed; None: nothing. Nothing is made, and
    the files themselves may be gone."""
    size = str(resize) if keep in (None, resize) else f"{resize}to{keep}"
    if (index := _open(cache_dir() / "decoded" / f"{name}-{size}-v{FORMAT}")) is not None:
        return Decoded(index.pixels, index.shapes, index.rows, index.skipped, index.sums)
    if (index := _open(cache_dir() / "packed" / f"{name}-{size}-q{QUALITY}-v{FORMAT}")) is not None:
        return Packed(index.pixels, index.sizes, index.shapes, index.rows, index.skipped, index.sums)
    return None


def check_kept(
    table: Table, *, resize: int, keep: int | None = None, cache: str = "auto", on_error: str = "raise"
) -> None:
    """Refuse sizes and forms that images of this table cannot be kept in."""
    if resize < 1:
        raise NearkinError(f"resize={resize}: an image has at least 1 pixel per side")
    if keep is not None and keep < resize:
        raise NearkinError(f"data.keep={keep}: at least data.resize={resize}, the side that test images are cut from")
    for key, value, known in (("cache", cache, FORMS), ("on_error", on_error, ("raise", "skip"))):
        if value not in known:
            raise NearkinError(f"{key}={value!r}: {choices(value, known)}")
    if table.images is not None and (keep is not None or cache == "packed"):
        what = "data.cache=packed" if keep is None else f"data.keep={keep}"
        raise NearkinError(f"{what}: the images of {table.name} are arrays, drawn at data.resize, and no files to keep")


# -- what is kept of an image -------------------------------------------------------------------------------------


def _pixels(resize: int, keep: int) -> Callable[[Path], Made]:
    def make(path: Path) -> Made:
        image = np.ascontiguousarray(fitted(read_image(path), resize, keep))
        return image.data, image.shape[:2]

    return make


def _jpeg(resize: int, keep: int) -> Callable[[Path], Made]:
    def make(path: Path) -> Made:
        image = np.ascontiguousarray(fitted(read_image(path), resize, keep))
        return simplejpeg.encode_jpeg(image, QUALITY, "RGB", SUBSAMPLING), image.shape[:2]

    return make


def _size(on_error: str) -> Callable[[Path], Made]:
    """To skip what is damaged further inside, a file must be decoded; to stop at it, one may wait until it is read."""
    return lambda path: (b"", read_image(path).shape[:2] if on_error == "skip" else image_shape(path))


# -- the folder ---------------------------------------------------------------------------------------------------


def _opened(
    folder: Path, make: Callable[[Path], Made], table: Table, title: str, on_error: OnError, needs: Callable[[], int]
) -> Index:
    index = _open(folder)
    if index is None:
        with locked(folder):  # another process may be at it: wait, then look again
            index = _open(folder)
            if index is None:
                if folder.exists():
                    note(f"{folder} is damaged and is made again")
                    shutil.rmtree(folder, ignore_errors=True)
                build(folder, make, table.paths or (), title, on_error=on_error, needs=needs)
                index = _open(folder)
        if index is None:
            raise NearkinError(f"{folder} was damaged while it was written; the same command again rebuilds it")
    if index.skipped and on_error == "raise":
        raise UnreadableImage(*index.skipped[0], SKIP)
    return index


def _open(folder: Path) -> Index | None:
    """What lies in a folder of the cache; None when it is absent or damaged."""
    file = folder / "pixels.bin"
    try:
        index = arrays_of(folder / "index.npz")
        shapes, rows, skipped = index["shapes"], index["kept"], json.loads(str(index["skipped"]))
        sizes = index["sizes"] if "sizes" in index else shapes.prod(1) * 3  # decoded before there were others
        pixels = np.memmap(file, np.uint8, "r") if file.stat().st_size else np.empty(0, np.uint8)
    except UNREADABLE:
        return None
    if sizes.sum() != len(pixels):
        return None
    sums = Sums(folder, index["sums"]) if "sums" in index and len(pixels) else None  # none: an older nearkin's
    if sums is not None and len(pixels) <= SMALL and not sums.all_right(pixels, sizes):
        return None
    return Index(pixels, shapes, sizes, rows, [(path, reason) for path, reason in skipped], sums)
