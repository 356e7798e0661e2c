"""`verify`: are the data what they should be? Every image is opened; what is wrong is said in words."""

import os
from collections import defaultdict
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from nearkin import present
from nearkin.data.classes import alike
from nearkin.data.copies import copies, opened
from nearkin.data.hashing import content_hashes, data_hash
from nearkin.data.layout import LEARNT, TESTED
from nearkin.data.outline import left_unread, outline
from nearkin.data.table import Table
from nearkin.data.verdict import judge
from nearkin.units import COUNT

Counts = dict[str, tuple[int, int]]  # split -> images, classes


@dataclass(frozen=True)
class Report(present.Shown):
    """What `verify` found: lists for programs, and the same in words, as `problems` and `warnings`.

    Problems make `ok` false. Missing and unreadable images, and counts that differ from the official ones, are problems
    in any data. Leaks (below), classes of one image, and classes in train and in test are problems in your own data,
    but only warnings in official data: the published sets contain some, and results on repaired data could not be
    compared with published ones. Other duplicates are warnings.

    `verify` and `dedupe` count the same copies: equal files, and images that were saved again (data/copies.py).

    Fields:
        name: of the data set
        images: how many images the table lists
        counts: split -> (images, classes) as found; the split is `all` where there is none
        official: the same as published, or None for your own data
        missing: names of files that do not exist
        unreadable: name and reason of each file that exists but cannot be read
        duplicates: groups of two or more names of images that are copies of each other
        leaks: those of the duplicates that stand in different splits; without splits, in different classes
        again: those of the duplicates whose files differ: an image that was saved again
        repeated: names of files that stand in several rows of one class
        one_image_classes: names of classes with a single image
        shared_classes: names of classes that stand in train or val and in test, query or gallery
        alike_classes: groups of class names that differ in case or blanks only
        classes_from: the rule by which folders became classes (data.classes_from); None: no folders were looked at
        unread: kind of file -> names of the files that were not read: they lie in no class folder, or are no images by
            their names
        bare: names of folders without an image
        data_hash: `data_hash(table)`
        problems: sentences about what must be repaired
        warnings: sentences about what may stay

    Example:
        report = nearkin.data.verify(nearkin.data.load_table("cub", "CUB_200_2011"), nearkin.data.CUB.official)
        report.ok or report.problems
    """

    name: str
    images: int
    counts: Counts
    official: Counts | None
    missing: list[str]
    unreadable: list[tuple[str, str]]
    duplicates: list[list[str]]
    leaks: list[list[str]]
    again: list[list[str]]
    repeated: list[str]
    one_image_classes: list[str]
    shared_classes: list[str]
    alike_classes: list[list[str]]
    classes_from: str | None
    unread: dict[str, list[str]]
    bare: list[str]
    data_hash: str
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    further: list[present.Table] = field(default_factory=list, repr=False)  # what was read of a folder, and what not

    @property
    def ok(self) -> bool:
        """Whether there are no problems; warnings do not count."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """`ok` and all fields, ready for JSON."""
        plain = asdict(replace(self, further=[]))
        del plain["further"]
        return {"ok": self.ok, **plain}

    @property
    def tables(self) -> list[present.Table]:
        """Images and classes of every split, beside the official counts; of a folder the tree and what was not read."""
        official = self.official or {}
        rows = [[split, *counts, *official.get(split, (None, None))] for split, counts in self.counts.items()]
        names = ("images", "classes", "official images", "official classes")
        columns = [present.Column("split"), *(present.Column(name, unit=COUNT) for name in names)]
        title = f"{self.name}: {self.images:,} images, data {self.data_hash}"
        return [present.Table("verified", columns, rows, title).without_gaps(), *self.further]

    @property
    def below(self) -> list[str]:
        """Every problem and every warning, and whether all is well."""
        problems, warnings = (
            [f"problem: {line}" for line in self.problems],
            [f"warning: {line}" for line in self.warnings],
        )
        return [*problems, *warnings, "everything is in order" if self.ok else "something is wrong"]


def verify(table: Table, official: Counts | None = None) -> Report:
    """Open every image of a table, look for duplicates and lone images, and count.

    `official` are the published counts, split -> (images, classes), such as `CUB.official`; None for your own data.
    Nothing is changed, and what is wrong with the data is reported, not raised.
    """
    seen = opened(table)
    exists = {row: os.path.exists((table.paths or ())[row]) for row in seen.reasons}
    groups = copies(table, seen)
    sides = table.labels if table.split is None else table.split
    leaks = [group for group in groups if len(set(sides[group])) > 1]
    contents = content_hashes(table)
    again = [group for group in groups if contents and len({contents[row] for row in group}) > 1]
    sizes = np.bincount(table.labels, minlength=len(table.classes))
    tree, repeated = table.tree, _repeated(table)
    report = Report(
        name=table.name,
        images=len(table),
        counts=count(table),
        official=official,
        missing=[table.shown(row) for row in seen.reasons if not exists[row]],
        unreadable=[(table.shown(row), why) for row, why in seen.reasons.items() if exists[row]],
        duplicates=[[table.shown(i) for i in group] for group in groups],
        leaks=[[table.shown(i) for i in group] for group in leaks],
        again=[[table.shown(i) for i in group] for group in again],
        repeated=[table.shown(group[0]) for group in repeated],
        one_image_classes=[table.classes[c] for c in np.flatnonzero(sizes == 1)],
        shared_classes=[table.classes[c] for c in table.shared(LEARNT, TESTED)],
        alike_classes=alike(table.classes[c] for c in np.flatnonzero(sizes)),
        classes_from=None if tree is None else tree.rule,
        unread={} if tree is None else tree.unread,
        bare=[] if tree is None else tree.bare,
        data_hash=data_hash(table, contents or None),
        further=[] if tree is None else [outline(table, tree), *([left_unread(tree)] if tree.sentence else [])],
    )
    judge(report, table, groups, leaks, repeated)
    return report


def _repeated(table: Table) -> list[list[int]]:
    """The rows of each file that stands in several rows of one class, which `dedupe` must not leave out."""
    rows = defaultdict(list)
    for row, (path, label) in enumerate(zip(table.paths or (), table.labels.tolist(), strict=False)):
        rows[os.path.abspath(path), label].append(row)
    return [group for group in rows.values() if len(group) > 1]


def count(table: Table) -> Counts:
    """Split -> (images, classes) of a table; the only split is `all` when it has no column `split`."""
    split = table.split if table.split is not None else np.repeat("all", len(table))
    names = dict.fromkeys(split.tolist())
    return {name: (int((split == name).sum()), len(np.unique(table.labels[split == name]))) for name in names}
