"""What the data sets that read files share: finding the files, reading lists, saying what is wrong with them."""

import os
from pathlib import Path

import numpy as np

from nearkin.data.scan import folders
from nearkin.errors import NearkinError

SPLITS = ("train", "val", "test", "query", "gallery")
LEARNT, TESTED = SPLITS[:2], SPLITS[2:]  # what a run learns from, what it is tested on
OTHER_NAMES = {"training": "train", "valid": "val", "validation": "val", "dev": "val", "testing": "test"}


def split_of(name: str) -> str | None:
    """The split that a name stands for, in any case: `Valid`, `validation` and `dev` mean val. None when it is none."""
    lower = name.lower()
    return lower if lower in SPLITS else OTHER_NAMES.get(lower)


def rooted(name: str, root: Path | None, kind: str = "DIR") -> Path:
    """The root of the data set `name` as a path; a NearkinError when it is None or does not exist. `kind` stands in the
    message: DIR or FILE."""
    if root is None:
        raise NearkinError(f"dataset={name} needs root={kind}")
    root = Path(root).expanduser()
    try:
        os.stat(root)
    except (FileNotFoundError, NotADirectoryError):
        raise NearkinError(f"root={root} does not exist; dataset={name} needs root={kind}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise NearkinError(f"root={root} cannot be read: {reason}; dataset={name} needs root={kind}") from error
    return root


def home(name: str, root: Path | None, marker: str, inner: str) -> Path:
    """The folder that holds the file `marker`: the root itself, or its folder `inner`, into which the archive unpacks.
    A NearkinError when it is in neither."""
    root = rooted(name, root)
    for folder in (root, root / inner):
        if os.path.isfile(folder / marker):
            return folder
    raise misplaced(name, root, f"{marker} is missing", marker, f"{inner}/{marker}")


def misplaced(name: str, root: Path, missing: str, *markers: str) -> NearkinError:
    """The error for a root that is not the layout of the data set `name`. When one of the files `markers` lies one
    level below or above, it asks whether that was meant; `missing` says what is not there."""
    near = [place for place in (*folders(root), root.parent) if any(os.path.exists(place / m) for m in markers)]
    hint = f"; did you mean root={near[0]}?" if near else ""
    return NearkinError(f"root={root} is not the official layout of {name}: {missing}{hint}")


def needed(name: str, path: Path) -> Path:
    """The path, when it exists; else a NearkinError that says what the data set `name` misses."""
    if not os.path.exists(path):
        raise NearkinError(f"root={path.parent} is not the official layout of {name}: {path.name} is missing")
    return path


def rows(path: Path, fields: int, *, skip: int = 0) -> list[list[str]]:
    """The lines of a text file, each split into `fields` words, without the first `skip` lines and empty ones.

    The last word may hold spaces. A NearkinError names a line with too few words, or says that no line is left.
    """
    rows = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise NearkinError(f"{path} cannot be read as text: {error}") from error
    for number, line in enumerate(lines[skip:], start=skip + 1):
        words = line.split(maxsplit=fields - 1)
        if not words:
            continue
        if len(words) != fields:
            raise NearkinError(f"{path}, line {number}: {len(words)} words, {fields} expected: {line.strip()[:80]!r}")
        rows.append([word.strip() for word in words])
    if not rows:
        raise NearkinError(f"{path} lists no image")
    return rows


def whole_number(word: str, low: int, high: int, path: Path) -> int:
    """The number of a class from the file `path`; a NearkinError when it is not a number from `low` to `high`."""
    if not word.isdigit() or not low <= int(word) <= high:
        raise NearkinError(f"{path}: class {word!r} is not a number from {low} to {high}")
    return int(word)


def numbered(names: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """The number of each image's class (N,), and the names of the classes, sorted."""
    classes, labels = np.unique(np.array(names), return_inverse=True)
    return labels.astype(np.int64), tuple(classes.tolist())
