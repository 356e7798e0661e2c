"""`verify`: are the data what they should be? Every image is opened; what is wrong is said in words."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from nearkin import present
from nearkin.data.exclude import duplicates
from nearkin.data.hashing import data_hash
from nearkin.data.images import UnreadableImage, read_image
from nearkin.data.layout import LEARNT, TESTED
from nearkin.data.table import Table
from nearkin.errors import and_more
from nearkin.progress import parallel
from nearkin.units import COUNT

Counts = dict[str, tuple[int, int]]  # split -> images, classes
ADVICE = "; nearkin data dedupe lists what to leave out (data.exclude=FILE)"


@dataclass(frozen=True)
class Report(present.Shown):
    """What `verify` found: lists for programs, and the same in words, as `problems` and `warnings`.

    Problems make `ok` false. Missing and unreadable images, and counts that differ from the official ones, are problems
    in any data. Leaks (below), classes of one image, and classes in train and in test are problems in your own data,
    but only warnings in official data: the published sets contain some, and results on repaired data could not be
    compared with published ones. Other duplicates are warnings.

    Fields:
        name: of the data set
        images: how many images the table lists
        counts: split -> (images, classes) as found; the split is `all` where there is none
        official: the same as published, or None for your own data
        missing: names of files that do not exist
        unreadable: name and reason of each file that exists but cannot be read
        duplicates: groups of two or more names of images with equal content
        leaks: those of the duplicates that stand in different splits; without splits, in different classes
        one_image_classes: names of classes with a single image
        shared_classes: names of classes that stand in train or val and in test, query or gallery
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
    one_image_classes: list[str]
    shared_classes: list[str]
    data_hash: str
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there are no problems; warnings do not count."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """`ok` and all fields, ready for JSON."""
        return {"ok": self.ok, **asdict(self)}

    @property
    def tables(self) -> list[present.Table]:
        """Images and classes of every split, beside the official counts."""
        official = self.official or {}
        rows = [[split, *counts, *official.get(split, (None, None))] for split, counts in self.counts.items()]
        names = ("images", "classes", "official images", "official classes")
        columns = [present.Column("split"), *(present.Column(name, unit=COUNT) for name in names)]
        title = f"{self.name}: {self.images:,} images, data {self.data_hash}"
        return [present.Table("verified", columns, rows, title).without_gaps()]

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
    missing, unreadable = _unopened(table)
    groups = duplicates(table)
    sides = table.labels if table.split is None else table.split
    leaks, others = ([g for g in groups if (len(set(sides[g])) > 1) is leaking] for leaking in (True, False))
    sizes = np.bincount(table.labels, minlength=len(table.classes))
    report = Report(
        name=table.name,
        images=len(table),
        counts=count(table),
        official=official,
        missing=missing,
        unreadable=unreadable,
        duplicates=[[table.shown(i) for i in group] for group in groups],
        leaks=[[table.shown(i) for i in group] for group in leaks],
        one_image_classes=[table.classes[c] for c in np.flatnonzero(sizes == 1)],
        shared_classes=[table.classes[c] for c in table.shared(LEARNT, TESTED)],
        data_hash=data_hash(table),
    )
    _judge(report, table)
    _judge_duplicates(report, table, leaks, others)
    return report


def count(table: Table) -> Counts:
    """Split -> (images, classes) of a table; the only split is `all` when it has no column `split`."""
    split = table.split if table.split is not None else np.repeat("all", len(table))
    names = dict.fromkeys(split.tolist())
    return {name: (int((split == name).sum()), len(np.unique(table.labels[split == name]))) for name in names}


def _unopened(table: Table) -> tuple[list[str], list[tuple[str, str]]]:
    if table.paths is None:
        return [], []
    paths = table.paths

    def reason(row: int) -> str | None:
        try:
            read_image(paths[row])
        except UnreadableImage as error:
            return error.reason
        return None

    reasons = list(parallel(reason, range(len(paths)), "Opening images"))
    exists = [os.path.exists(path) for path in paths]
    missing = [table.shown(i) for i, why in enumerate(reasons) if why and not exists[i]]
    unreadable = [(table.shown(i), why) for i, why in enumerate(reasons) if why and exists[i]]
    return missing, unreadable


def _judge(report: Report, table: Table) -> None:
    for split, published in (report.official or {}).items():
        counted = report.counts.get(split, (0, 0))
        for what, n, m in zip(("images", "classes"), counted, published, strict=True):
            if n != m:
                report.problems.append(f"{split}: {n:,} {what}, officially {m:,}")
    if report.missing:
        report.problems.append(f"{_number(report.missing, 'file')} missing: {and_more(report.missing)}")
    if report.unreadable:
        listed = [f"{path} ({reason})" for path, reason in report.unreadable]
        report.problems.append(f"{_number(listed, 'file')} unreadable: {and_more(listed)}")
    if report.shared_classes:
        lesser = report.problems if report.official is None else report.warnings  # ImageNet is made so
        lesser.append(
            f"{_classes(report.shared_classes)} in train and in test: {and_more(report.shared_classes)}; "
            "only protocol=within takes such data: it keeps the given split"
        )
    elif seen := [table.classes[c] for c in table.shared(["train"], ["val"])]:
        report.warnings.append(
            f"{_classes(seen)} in train and in val: {and_more(seen)}; "
            "protocol=fixed_val refuses them, protocol=standard trains on both"
        )
    if report.one_image_classes:
        lesser = report.problems if report.official is None else report.warnings
        classes = report.one_image_classes
        lesser.append(f"{_classes(classes)} of one image, which can never be retrieved: {and_more(classes)}")


def _judge_duplicates(report: Report, table: Table, leaks: list[list[int]], others: list[list[int]]) -> None:
    own_data = report.official is None
    for groups, where, lines in (
        (
            leaks,
            " in different classes" if table.split is None else " in different splits",
            report.problems if own_data else report.warnings,
        ),
        (others, "", report.warnings),
    ):
        if not groups:
            continue
        across = sum(len(set(table.labels[group])) > 1 for group in groups)
        more = f", {across:,} of them in different classes" if across and table.split is not None else ""
        names = [" = ".join(table.shown(i) for i in group) for group in groups]
        advice = ADVICE if own_data and table.paths is not None else ""
        lines.append(f"{_number(groups, 'group')} of equal images{where}{more}: {and_more(names)}{advice}")


def _number(items: Sequence[Any], noun: str) -> str:
    return f"{len(items):,} {noun}{'' if len(items) == 1 else 's'}"


def _classes(classes: Sequence[Any]) -> str:
    return "1 class" if len(classes) == 1 else f"{len(classes):,} classes"
