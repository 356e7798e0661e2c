"""Looking for images in folders: one way for `folder`, `verify` and `nearkin embed`.

Links to files and to folders are followed. Below one top folder each folder is read once, whatever leads to it, so that
links never make an endless loop; a link back to a folder above is not followed. What is hidden is ignored, what
vanishes in the meantime is skipped, and a folder that may not be read is an error that names it.
"""

import errno
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from nearkin.errors import NearkinError

EXTENSIONS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff"})
GONE = (FileNotFoundError, ProcessLookupError, NotADirectoryError)  # what reading a vanished folder raises


def is_image(name: str) -> bool:
    """Whether a file is an image, by its name alone; hidden files (the ._x.jpg that macOS leaves behind) are not."""
    return os.path.splitext(name)[1].lower() in EXTENSIONS and not name.startswith(".")


def folders(folder: Path) -> list[Path]:
    """The folders in a folder, sorted: links to folders too, hidden ones not."""
    return [path for path, kind in _entries(folder) if kind != "image"]


def images_in(folder: Path) -> list[Path]:
    """The images that lie directly in a folder, sorted."""
    return [path for path, kind in _entries(folder) if kind == "image"]


def images_below(folder: Path) -> list[Path]:
    """The images in a folder and in all folders below it, sorted."""
    return sorted(_walk(folder))


def _walk(folder: Path) -> Iterator[Path]:
    whole = Path(os.path.abspath(folder))
    seen = {_identity(parent) for start in (whole, Path(os.path.realpath(folder))) for parent in start.parents}
    plain, linked = deque([folder]), deque[Path]()
    while plain or linked:  # a folder is found by its own name before by links
        here = plain.popleft() if plain else linked.popleft()
        identity = _identity(here)
        if identity is None or identity in seen:
            continue
        seen.add(identity)
        for path, kind in _entries(here):
            if kind == "image":
                yield path
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
    """What lies in a folder and is not hidden, sorted: (path, "folder", "link" to a folder, or "image")."""
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
        # a link that leads nowhere is left for `verify` to tell; a pipe or device is no image
        return "image" if named and (entry.is_file() or not os.path.exists(entry.path)) else None
    except OSError as error:
        if named:
            return "image"
        if error.errno == errno.ELOOP or isinstance(error, GONE):
            return None
        raise _unreadable(Path(entry.path), error) from error


def _unreadable(path: Path, error: OSError) -> NearkinError:
    return NearkinError(f"{path} cannot be read: {error.strerror}; make it readable, or move it elsewhere")
