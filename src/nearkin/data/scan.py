"""Looking for images in folders: one way for `folder`, `verify` and `nearkin embed`.

Links to files and to folders are followed. Below one top folder each folder is read once, whatever leads to it, so that
links never make an endless loop; a link back to a folder above is not followed. What is hidden is ignored, what
vanishes in the meantime is skipped, and a folder that may not be read is an error that names it. What is no image by
its name is listed too (`Survey`), so that nothing vanishes silently.
"""

import errno
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nearkin.errors import NearkinError

EXTENSIONS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".avif", ".heic", ".heif"})
GONE = (FileNotFoundError, ProcessLookupError, NotADirectoryError)  # what reading a vanished folder raises


@dataclass(frozen=True)
class Survey:
    """What lies in a folder and in all folders below it, hidden things left out; every list is sorted.

    Fields:
        images: the files that are images by their names
        others: all other files
        bare: the folders without an image in or below them; of those inside each other only the outermost
    """

    images: list[Path]
    others: list[Path]
    bare: list[Path]


def is_image(name: str) -> bool:
    """Whether a file is an image, by its name alone; hidden files (the ._x.jpg that macOS leaves behind) are not."""
    return os.path.splitext(name)[1].lower() in EXTENSIONS and not name.startswith(".")


def folders(folder: Path) -> list[Path]:
    """The folders in a folder, sorted: links to folders too, hidden ones not."""
    return [path for path, kind in _entries(folder) if kind in ("folder", "link")]


def images_in(folder: Path) -> list[Path]:
    """The images that lie directly in a folder, sorted."""
    return [path for path, kind in _entries(folder) if kind == "image"]


def others_in(folder: Path) -> list[Path]:
    """The files that lie directly in a folder and are no images, sorted; hidden ones left out."""
    return [path for path, kind in _entries(folder) if kind == "file"]


def images_below(folder: Path) -> list[Path]:
    """The images in a folder and in all folders below it, sorted."""
    return survey(folder).images


def survey(folder: Path) -> Survey:
    """What lies in a folder and in all folders below it."""
    images: list[Path] = []
    others: list[Path] = []
    walked: list[Path] = []
    for path, kind in _walk(folder):
        {"image": images, "file": others, "folder": walked}[kind].append(path)
    full = {parent for path in images for parent in path.parents}
    bare = {path for path in walked if path not in full}
    outermost = [path for path in bare if not bare.intersection(path.parents)]
    return Survey(sorted(images), sorted(others), sorted(outermost))


def _walk(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every folder that is read, the first included, and every file in it: (path, "folder", "image" or "file")."""
    whole = Path(os.path.abspath(folder))
    seen = {_identity(parent) for start in (whole, Path(os.path.realpath(folder))) for parent in start.parents}
    plain, linked = deque([folder]), deque[Path]()
    while plain or linked:  # a folder is found by its own name before by links
        here = plain.popleft() if plain else linked.popleft()
        identity = _identity(here)
        if identity is None or identity in seen:
            continue
        seen.add(identity)
        yield here, "folder"
        for path, kind in _entries(here):
            if kind in ("image", "file"):
                yield path, kind
            else:
                (linked if kind == "link" else plain).append(path)


def _identity(folder: Path) -> tuple[int, int] | None:
    """What a folder is, whatever name leads to it; None when it vanished."""
    try:
        stat = os.stat(folder)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _entries(folder: Path) -> list[tuple[Path, str]]:
    """What lies in a folder and is not hidden, sorted: (path, kind): "folder", "link" to a folder, "image" by its
    name, or another "file"."""
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except GONE:
        return []
    except OSError as error:
        raise _unreadable(folder, error) from error
    kinds = ((entry.name, _kind(entry)) for entry in entries if not entry.name.startswith("."))
    return [(folder / name, kind) for name, kind in kinds if kind is not None]


def _kind(entry: os.DirEntry[str]) -> str | None:
    named = is_image(entry.name)
    try:
        if entry.is_dir():
            return "link" if entry.is_symlink() else "folder"
        # a link that leads nowhere is left for `verify` to tell; a pipe or device is nothing that could be read
        if not entry.is_file() and os.path.exists(entry.path):
            return None
        return "image" if named else "file"
    except OSError as error:
        if named:
            return "image"
        if error.errno == errno.ELOOP or isinstance(error, GONE):
            return None
        raise _unreadable(Path(entry.path), error) from error


def _unreadable(path: Path, error: OSError) -> NearkinError:
    return NearkinError(f"{path} cannot be read: {error.strerror}; make it readable, or move it elsewhere")
