"""Leaving images out: which ones are copies (`dedupe`), as a list in a file, and the table without them (`exclude`).

A list has one path per line, relative to the root of the data set or absolute; blank lines and lines that begin with #
do not count. Nothing is ever deleted.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nearkin.data.copies import copies, opened
from nearkin.data.hashing import content_hashes
from nearkin.data.table import Table
from nearkin.errors import NearkinError, and_more


@dataclass(frozen=True)
class Copies:
    """A group of files that are copies of each other, and which of them to leave out; `dedupe` finds them.

    Fields:
        stays: the path that stays, of the largest image, the first of equals; None when the files stand in several
            classes: nobody knows which class is right, so none stays
        left_out: the paths to leave out, in the order of the table
        classes: the names of their classes
        again: those of the paths that differ in content from the one that stays, or else from the first: the same
            image, saved again
    """

    stays: str | None
    left_out: list[str]
    classes: list[str]
    again: list[str]


def dedupe(table: Table) -> list[Copies]:
    """Which files of a table to leave out so that no two are copies (data/copies.py), the same copies that `verify`
    counts: of each group all but one, and all of a group in several classes. Every image is opened.

    A path that is listed in several rows of one class stays: to leave it out would lose them all. A NearkinError when
    the images of the table are no files.

        for group in nearkin.data.dedupe(nearkin.data.load_table("folder", "my_images")):
            print(group.stays, group.left_out)
    """
    paths = _whole_paths(table)
    seen, contents = opened(table), content_hashes(table)
    groups = []
    for rows in copies(table, seen):
        first = {paths[row]: row for row in reversed(rows)}  # path -> its first row
        left = sorted(first.values())
        classes = [table.classes[c] for c in np.unique(table.labels[rows])]
        model = max(left, key=lambda row: (seen.sides[row].prod(), -row)) if len(classes) == 1 else left[0]
        if len(classes) == 1:
            left.remove(model)
        again = [table.shown(row) for row in left if contents[row] != contents[model]]
        stays = table.shown(model) if len(classes) == 1 else None
        groups.append(Copies(stays, [table.shown(row) for row in left], classes, again))
    return groups


def listed(groups: Sequence[Copies]) -> str:
    """The text of a list for `exclude`: the paths that `dedupe` leaves out, with the reasons as comments. A
    NearkinError when a path has a line break in it, which no list can hold."""
    lines = ["# images to leave out, for data.exclude=FILE; paths are relative to the root"]
    for group in groups:
        if group.stays is not None:
            words = f"the same image as {group.stays}, saved again" if group.again else f"equal to {group.stays}"
            lines.append(f"# {words}, which stays:")
        else:
            how = "one image, saved again" if group.again else "equal"
            lines.append(f"# {how}, but in the classes {and_more(group.classes)}, so none stays:")
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
