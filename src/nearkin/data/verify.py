"""`verify`: is this the data it should be? Every image is opened; what is wrong is said in words."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from nearkin.data.hashing import content_hashes, data_hash
from nearkin.data.images import UnreadableImage, read_image
from nearkin.data.table import Table
from nearkin.progress import parallel

Counts = dict[str, tuple[int, int]]                         # split -> images, classes


@dataclass(frozen=True)
class Report:
    """Problems make `ok` false. Missing and unreadable images and counts that differ from the official ones are
    problems in any data. Duplicates and classes of one image are problems in your own data, and warnings in official
    data: the published sets contain some, and repairing them would end all comparison."""

    name: str
    images: int
    counts: Counts
    official: Counts | None
    missing: list[str]
    unreadable: list[tuple[str, str]]                       # path, reason
    duplicates: list[list[str]]                             # groups of files of equal content
    one_image_classes: list[str]
    data_hash: str
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


def verify(table: Table, official: Counts | None = None) -> Report:
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
    """Images and classes of each split; of `all` where there is none."""
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
        report.problems.append(f"{_number(report.missing, 'file')} missing: {_some(report.missing)}")
    if report.unreadable:
        listed = [f"{path} ({reason})" for path, reason in report.unreadable]
        report.problems.append(f"{_number(listed, 'file')} unreadable: {_some(listed)}")

    lesser = report.problems if report.official is None else report.warnings
    if groups:
        listed = [" = ".join(group) for group in report.duplicates]
        crossing = [f"{_number(across, 'group')} across {what}" for what, across in (
            ("classes", [g for g in groups if len(set(table.labels[g])) > 1]),
            ("splits", [g for g in groups if table.split is not None and len(set(table.split[g])) > 1]),
        ) if across]
        words = ", ".join([f"{_number(groups, 'group')} of files with equal content", *crossing])
        lesser.append(f"{words}: {_some(listed)}")
    if report.one_image_classes:
        classes = report.one_image_classes
        words = "1 class" if len(classes) == 1 else f"{len(classes):,} classes"
        lesser.append(f"{words} of one image, which can never be retrieved: {_some(classes)}")


def _number(items: Sequence[Any], noun: str) -> str:
    return f"{len(items):,} {noun}{'' if len(items) == 1 else 's'}"


def _some(items: Sequence[str], shown: int = 5) -> str:
    rest = len(items) - shown
    return ", ".join(items[:shown]) + (f" and {rest:,} more" if rest > 0 else "")
