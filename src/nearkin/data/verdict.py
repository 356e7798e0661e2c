"""What is wrong with data, in words: the problems and warnings of a `Report`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nearkin.data import modern
from nearkin.data.table import Table
from nearkin.errors import and_more

if TYPE_CHECKING:
    from nearkin.data.verify import Report

ADVICE = "; nearkin data dedupe lists what to leave out (data.exclude=FILE)"


def judge(
    report: "Report", table: Table, groups: list[list[int]], leaks: list[list[int]], repeated: list[list[int]]
) -> None:
    """Add to a report its problems and warnings.

    Parameters:
        report: of the table, without them.
        table: the data.
        groups: the rows of copies.
        leaks: those of them in several splits; without splits, in several classes.
        repeated: the rows of each file that stands in several rows of one class.
    """
    _judge_counts(report)
    _judge_files(report, table)
    _judge_repeated(report, table, repeated)
    _judge_classes(report, table)
    _judge_copies(report, table, leaks, [group for group in groups if group not in leaks])


def _judge_counts(report: "Report") -> None:
    for split, published in (report.official or {}).items():
        counted = report.counts.get(split, (0, 0))
        for what, n, m in zip(("images", "classes"), counted, published, strict=True):
            if n != m:
                report.problems.append(f"{split}: {n:,} {what}, officially {m:,}")


def _judge_files(report: "Report", table: Table) -> None:
    if report.missing:
        report.problems.append(f"{_number(report.missing, 'file')} missing: {and_more(report.missing)}")
    for kind in ("AVIF", "HEIC"):
        if lacking := modern.lacking(kind):
            files = [path for path, reason in report.unreadable if reason == lacking]
            if files:
                report.problems.append(f"{_number(files, f'{kind} file')} unreadable: {and_more(files)}; {lacking}")
    lacks = {modern.lacking(kind) for kind in ("AVIF", "HEIC")}
    listed = [f"{path} ({reason})" for path, reason in report.unreadable if reason not in lacks]
    if listed:
        report.problems.append(f"{_number(listed, 'file')} unreadable: {and_more(listed)}")
    if table.tree is not None and table.tree.doubt:
        report.problems.append(table.tree.doubt)
    if table.tree is not None and (left := table.tree.sentence):
        report.warnings.append(left)


def _judge_repeated(report: "Report", table: Table, repeated: list[list[int]]) -> None:
    across = [group for group in repeated if table.split is not None and len(set(table.split[group])) > 1]
    for groups, where, lines in (
        (across, "several splits", report.problems),
        ([group for group in repeated if group not in across], "several rows of one class", report.warnings),
    ):
        files = [table.shown(group[0]) for group in groups]
        if files:
            stand = "stands" if len(files) == 1 else "stand"
            lines.append(f"{_number(files, 'file')} {stand} in {where}: {and_more(files)}; keep one row of each")


def _judge_classes(report: "Report", table: Table) -> None:
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
    if report.alike_classes:
        pairs = [" = ".join(repr(name) for name in group) for group in report.alike_classes]
        report.warnings.append(
            f"{_number(pairs, 'group')} of classes whose names differ in case or blanks only: {and_more(pairs)}"
        )


def _judge_copies(report: "Report", table: Table, leaks: list[list[int]], others: list[list[int]]) -> None:
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
        shown = [[table.shown(i) for i in group] for group in groups]
        again = sum(names in report.again for names in shown)
        more += f", {again:,} of them saved again" if again else ""
        names = [" = ".join(group) for group in shown]
        advice = ADVICE if own_data and table.paths is not None else ""
        lines.append(f"{_number(groups, 'group')} of equal images{where}{more}: {and_more(names)}{advice}")


def _number(items: Sequence[Any], noun: str) -> str:
    return f"{len(items):,} {noun}{'' if len(items) == 1 else 's'}"


def _classes(classes: Sequence[Any]) -> str:
    return "1 class" if len(classes) == 1 else f"{len(classes):,} classes"
