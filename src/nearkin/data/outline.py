"""What `verify` shows of a folder: the tree of classes that was read, with counts, and the files that were not read."""

from collections import defaultdict
from collections.abc import Iterator

from nearkin import present
from nearkin.data.classes import class_folders
from nearkin.data.table import Table, Tree
from nearkin.errors import and_more
from nearkin.units import COUNT, counted

WHOLE, SHORT = 30, 4  # a tree of at most WHOLE lines is shown whole, else SHORT lines of each folder
Folder = tuple[str, ...]
Line = list[str | int]  # the folder, its images, its classes


def outline(table: Table, tree: Tree) -> present.Table:
    """The tree of class folders below the root: folders with the images and classes in them. Of a large tree the first
    few folders of each, and how many more there are."""
    parents = [path.relative_to(table.root or "/").parts[:-1] for path in table.paths or ()]
    splits = [parts[:1] if tree.divided else () for parts in parents]
    classes = class_folders(tree.rule, [parts[len(split) :] for parts, split in zip(parents, splits, strict=True)])
    counts: dict[Folder, tuple[int, set[int]]] = {}  # folder -> images, numbers of classes
    inside: dict[Folder, set[Folder]] = defaultdict(set)
    for split, folder, label in zip(splits, classes, table.labels.tolist(), strict=True):
        whole = (*split, *folder)
        for depth in range(len(whole) + 1):
            images, labels = counts.get(whole[:depth], (0, set()))
            labels.add(label)
            counts[whole[:depth]] = images + 1, labels
            if depth:
                inside[whole[: depth - 1]].add(whole[:depth])
    limit = None if len(counts) <= WHOLE + 1 else SHORT if len(inside) > 1 else WHOLE // 2
    lines = list(_lines((), counts, inside, limit))
    title = f"classes from {described(tree.rule)}: {counted(len(table), 'image')}"
    columns = ["folder", present.Column("images", unit=COUNT), present.Column("classes", unit=COUNT)]
    return present.Table("tree", columns, lines, title)


def described(rule: str) -> str:
    """A rule as a setting, with what it means."""
    meaning = {"leaf": "the folders that images lie in", "top": "the top folders"}
    return f"{meaning.get(rule) or 'folders on one level'} (data.classes_from={rule})"


def _lines(
    folder: Folder, counts: dict[Folder, tuple[int, set[int]]], inside: dict[Folder, set[Folder]], limit: int | None
) -> Iterator[Line]:
    """The lines of all folders in a folder, each indented below its own."""
    here = sorted(inside.get(folder, ()))
    shown = here if limit is None or len(here) <= limit + 1 else here[:limit]
    indent = "\u00a0\u00a0" * len(folder)  # ordinary blanks are cut off
    for inner in shown:
        images, labels = counts[inner]
        yield [f"{indent}{inner[-1]}", images, len(labels)]
        yield from _lines(inner, counts, inside, limit)
    if rest := here[len(shown) :]:
        labels = set[int]().union(*(counts[inner][1] for inner in rest))
        yield [f"{indent}and {len(rest):,} more", sum(counts[inner][0] for inner in rest), len(labels)]


def left_unread(tree: Tree) -> present.Table:
    """The files that were not read, by kind."""
    rows = [[kind, len(files), and_more(files, 3)] for kind, files in tree.unread.items()]
    if tree.bare:
        rows.append(["folder without an image", len(tree.bare), and_more(tree.bare, 3)])
    columns = ["not read", present.Column("files", unit=COUNT), "which"]
    return present.Table("unread", columns, rows)
