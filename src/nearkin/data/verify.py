"""`verify`: are the data what they should be? Every image is opened; what is wrong is said in words."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from nearkin.data.hashing import content_hashes, data_hash
from nearkin.data.images import UnreadableImage, read_image
from nearkin.data.table import Table
from nearkin.errors import some
from nearkin.progress import parallel

Counts = dict[str, tuple[int, int]]                         # split -> images, classes


@dataclass(frozen=True)
class Report:
    """What `verify` found: lists for programs, and the same in words, as `problems` and `warnings`.

    Problems make `ok` false. Missing and unreadable images and counts that differ from the official ones are problems
    in any data. Duplicates and classes of one image are problems in your own data, but only warnings in official data:
    the published sets contain some, and results on repaired data could not be compared with published ones.

    Fields:
        name: of the data set
        images: how many images the table lists
        counts: split -> (images, classes) as found; the split is `all` where there is none
        official: the same as published, or None for your own data
        missing: names of files that do not exist
        unreadable: name and reason of each file that exists but cannot be read
        duplicates: groups of two or more names of images with equal content
        one_image_classes: names of classes with a single image
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
    one_image_classes: list[str]
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


def verify(table: Table, official: Counts | None = None) -> Report:
    """Open every image of a table, look for duplicates and lone images, and count.

    `official` are the published counts, split -> (images, classes), such as `CUB.official`; None for your own data.
    Nothing is changed, and what is wrong with the data is reported, not raised.
    """
    missing, unreadable = _unopened(table)
    groups = _duplicates(table)
    sizes = np.bincount(table.labels, minlength=len(table.classes))
    report = Report(
        name=table.name,
        images=len(table),
        counts=count(table),
        official=official,
        missing=missing,
        unreadable=unreadable,
        duplicates=[[table.shown(i) for i in group] for group in groups],
        one_image_classes=[table.classes[c] for c in np.flatnonzero(sizes == 1)],
        data_hash=data_hash(table),
    )
    _judge(report, table, groups)
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
    missing = [table.shown(i) for i, why in enumerate(reasons) if why and not paths[i].exists()]
    unreadable = [(table.shown(i), why) for i, why in enumerate(reasons) if why and paths[i].exists()]
    return missing, unreadable


def _duplicates(table: Table) -> list[list[int]]:
    if table.images is not None:
        hashes = [blake2b(np.ascontiguousarray(image).data, digest_size=16).hexdigest() for image in table.images]
    else:
        hashes = content_hashes(table)
    rows: dict[str, list[int]] = defaultdict(list)
    for i, content in enumerate(hashes):
        if content != "missing":
            rows[content].append(i)
    return [group for group in rows.values() if len(group) > 1]


def _judge(report: Report, table: Table, groups: list[list[int]]) -> None:
    for split, wanted in (report.official or {}).items():
        found = report.counts.get(split, (0, 0))
        for what, n, m in zip(("images", "classes"), found, wanted, strict=True):
            if n != m:
                report.problems.append(f"{split}: {n:,} {what}, officially {m:,}")
    if report.missing:
        report.problems.append(f"{_number(report.missing, 'file')} missing: {some(report.missing)}")
    if report.unreadable:
        listed = [f"{path} ({reason})" for path, reason in report.unreadable]
        report.problems.append(f"{_number(listed, 'file')} unreadable: {some(listed)}")

    lesser = report.problems if report.official is None else report.warnings
    if groups:
        listed = [" = ".join(group) for group in report.duplicates]
        crossing = [f"{_number(across, 'group')} across {what}" for what, across in (
            ("classes", [g for g in groups if len(set(table.labels[g])) > 1]),
            ("splits", [g for g in groups if table.split is not None and len(set(table.split[g])) > 1]),
        ) if across]
        words = ", ".join([f"{_number(groups, 'group')} of files with equal content", *crossing])
        lesser.append(f"{words}: {some(listed)}")
    if report.one_image_classes:
        classes = report.one_image_classes
        words = "1 class" if len(classes) == 1 else f"{len(classes):,} classes"
        lesser.append(f"{words} of one image, which can never be retrieved: {some(classes)}")


def _number(items: Sequence[Any], noun: str) -> str:
    return f"{len(items):,} {noun}{'' if len(items) == 1 else 's'}"
