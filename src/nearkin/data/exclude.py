"""Leaving images out: which ones are copies (`dedupe`), as a list in a file, and the table without them (`exclude`).

A list has one path per line, relative to the root of the data set or absolute; blank lines and lines that begin with #
do not count. Nothing is ever deleted.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from nearkin.data.hashing import content_hashes
from nearkin.data.table import Table
from nearkin.errors import NearkinError, and_more


@dataclass(frozen=True)
class Copies:
    """A group of files with equal content, and which of them to leave out; `dedupe` finds them.

    Fields:
        stays: the path that stays, the first of the group; None when the files stand in several classes: nobody knows
            which class is right, so none stays
        left_out: the paths to leave out, in the order of the table
        classes: the names of their classes
    """

    stays: str | None
    left_out: list[str]
    classes: list[str]


def duplicates(table: Table) -> list[list[int]]:
    """The rows of images with equal content: groups of two or more, in the order of the table."""
    if table.images is not None:
        hashes = [blake2b(np.ascontiguousarray(image).data, digest_size=16).hexdigest() for image in table.images]
    else:
        hashes = content_hashes(table)
    rows: dict[str, list[int]] = defaultdict(list)
    for i, content in enumerate(hashes):
        if content != "missing":
            rows[content].append(i)
    return [group for group in rows.values() if len(group) > 1]


def dedupe(table: Table) -> list[Copies]:
    """Which files of a table to leave out so that no two have equal content: of each group all but the first, and all
    of a group in several classes.

    A path that is listed in several rows of one class stays: to leave it out would lose them all. A NearkinError when
    the images of the table are no files.

        for group in nearkin.data.dedupe(nearkin.data.load_table("folder", "my_images")):
            print(group.stays, group.left_out)
    """
    paths = _whole_paths(table)
    groups = []
    for rows in duplicates(table):
        first = {paths[row]: row for row in reversed(rows)}  # path -> its first row
        shown = [table.shown(row) for row in sorted(first.values())]
        classes = [table.classes[c] for c in np.unique(table.labels[rows])]
        stays = shown.pop(0) if len(classes) == 1 else None
        if shown:
            groups.append(Copies(stays, shown, classes))
    return groups


def listed(groups: Sequence[Copies]) -> str:
    """The text of a list for `exclude`: the paths that `dedupe` leaves out, with the reasons as comments. A
    NearkinError when a path has a line break in it, which no list can hold."""
    lines = ["# images to leave out, for data.exclude=FILE; paths are relative to the root"]
    for group in groups:
        if group.stays is not None:
            lines.append(f"# equal to {group.stays}, which stays:")
        else:
            lines.append(f"# equal, but in the classes {and_more(group.classes)}, so none stays:")
        lines += [f"./{path}" if path[0] == "#" or path[0].isspace() else path for path in group.left_out]
    for line in lines:
        if "\n" in line or "\r" in line:
            raise NearkinError(f"{line!r} has a line break in it, which a list of paths cannot hold; rename the file")
    return "\n".join(lines) + "\n"


def exclude(table: Table, file: Path | str) -> Table:
    """The table without the images that a list names; classes and their numbers stay as they are.

    A NearkinError when the list cannot be read, names a path that is in no row, or leaves nothing.

        table = nearkin.data.exclude(nearkin.data.load_table("folder", "my_images"), "duplicates.txt")
    """
    setting = f"data.exclude={file}"
    paths = _whole_paths(table, f"{setting}: ")
    try:
        text = Path(file).expanduser().read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError as error:
        raise NearkinError(f"{setting} cannot be read: {error.strerror}; one path per line is needed") from error
    known, gone, strange = set(paths), set(), []
    for line in text.split("\n"):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        names = (os.path.join(table.root or "", name) for name in (line, line.strip()))
        matches = [whole for name in names if (whole := os.path.abspath(name)) in known]
        gone.update(matches[:1])
        if not matches:
            strange.append(repr(line.strip()[:200]))
    if strange:
        number = f"{len(strange):,} path{'s are' if len(strange) > 1 else ' is'}"
        where = f"; paths are relative to {table.root}" if table.root else ""
        raise NearkinError(f"{setting}: {number} not among the data: {and_more(strange, 3)}{where}")
    rows = np.array([i for i, path in enumerate(paths) if path not in gone], np.int64)
    if len(rows) == 0:
        raise NearkinError(f"{setting} leaves out all {len(table):,} images; shorten the list")
    return table.take(rows)


def _whole_paths(table: Table, prefix: str = "") -> list[str]:
    if table.paths is None:
        raise NearkinError(f"{prefix}the images of {table.name} are arrays, not files; only files can be left out")
    return [os.path.abspath(path) for path in table.paths]
