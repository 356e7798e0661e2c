"""Published rows beside ours, with what differs, and what the literature claims, checked against these runs."""

import re
from dataclasses import replace
from typing import Any

from nearkin.comparison.claims import claims_table, measured_claims
from nearkin.comparison.compare import canonical_metric
from nearkin.comparison.method import Method
from nearkin.errors import NearkinError
from nearkin.literature.table import Column as Published
from nearkin.literature.table import PublishedTable
from nearkin.pages._base import Grid, Part, Section, Words
from nearkin.pages._board import Board
from nearkin.pages._material import Material
from nearkin.pages._members import final_of, missing, network, protocol, rule, tallied
from nearkin.present import Column, Table, sentence
from nearkin.units import NUMBER

# columns of the literature -> metrics of ours
SAME = {
    "P@1": "p@1",
    "RP": "r_precision",
    "MAP@R": "map_at_r",
    "mAP@C": "map_at_c",
    "mAP@1000": "map@1000",
    "NMI": "nmi",
    "F1": "f1",
}
DATA = {"CUB200-2011": "cub", "Cars196": "cars196", "SOP": "sop"}  # data sets of the literature -> ours
JOINED, APART = "concatenated", "separated"  # parts of a table that are evaluations of folds


def section(material: Material) -> Section | None:
    """None where nothing was asked for and no claim can be checked."""
    parts = [*_published(material), *_claims(material)]
    lead = "What others printed, what differs from it here, and what becomes of their claims."
    return Section("literature", "Beside the literature", lead, parts) if parts else None


def _published(material: Material) -> list[Part]:
    if material.published is None:
        return []
    from nearkin.literature.tables import sources
    from nearkin.literature.tables import table as published_table

    published = published_table(material.published)
    columns = {i: metric for i, column in enumerate(published.columns) if (metric := _metric(column.name)) is not None}
    if not columns:
        printed = ", ".join(map(str, published.columns))
        raise NearkinError(f"published={published.id}: none of its columns ({printed}) is a metric")
    numbers = [Column(str(published.columns[i]), unit=NUMBER, digits=2) for i in columns]
    rows: list[list[Any]] = []
    for row in published.rows:
        where = ", ".join(f"{k} {v}" for k, v in row.where.items())
        means = [getattr(row.cells[i], "mean", None) for i in columns]
        rows.append([row.method + (f" ({where})" if where else ""), published.source, *means])
    for board in material.boards:
        for method in board.methods:
            means = [our_value(board, method, published, i, metric) for i, metric in columns.items()]
            rows.append([method.name, f"here, {board.data}", *means])
    flags = [f"{flag.kind}: {flag.words}." for flag in published.flags]
    notes = [f"Per cent. Their ±: {published.spread}.", *published.notes, *flags]
    if any(column.part is not None for column in published.columns):
        notes.append(
            "A cell of ours is filled only where data set, embedding size and, for folds, evaluation are "
            "those of its part of the table."
        )
    notes += missing(material.gathered, dict.fromkeys(columns.values()))
    title = f"{sources().get(published.source, published.source)}, table {published.table}: {published.title}"
    table = Table(f"published-{published.id}", ["method", "from", *numbers], rows, title, notes)
    return [
        Words("Rows of different publications are no comparison. What differs here:", "warning"),
        *[board.placed(_differs(board, published)) for board in material.boards],
        Grid(table, "published", filters=["from"]),
    ]


def our_value(board: Board, method: Method, published: PublishedTable, i: int, metric: str) -> float | None:
    """What a row of ours has for a column of theirs, in per cent; None where it is not stored, or where the column
    stands in a part of the table that the row does not belong to."""
    column = published.columns[i]
    if not _belongs(method, published, column):
        return None
    interval = board.interval(method, metric, evaluation=JOINED if column.part == JOINED else APART)
    return None if interval is None else 100 * interval.mean


def _belongs(method: Method, published: PublishedTable, column: Published) -> bool:
    """Are data set, evaluation and embedding size of a row those of a part of a table? A table without parts takes
    every row: what differs stands above it."""
    if column.part is None:
        return True
    data = column.part if column.part in DATA else published.dataset[0]
    if {member.settings["data.name"] for member in method.members} != {DATA.get(data)}:
        return False
    folds = {member.fold for member in method.members}
    if column.part in (JOINED, APART) and None in folds:
        return False  # without folds there is nothing to join or separate
    vectors = len(folds) if column.part == JOINED else 1  # a joined vector is as long as those of all folds
    sizes = {member.settings["model.dim"] for member in method.members}
    return len(sizes) == 1 and [vectors * (size or 0) for size in sizes] == [_size(published, column.part)]


def _size(published: PublishedTable, part: str) -> int | None:
    """The embedding size of a part: of `512 concatenated, 128 separated`, or of the table."""
    for_part = re.search(rf"\b(\d+) {re.escape(part)}", published.dim)
    return int(for_part[1]) if for_part else int(published.dim) if published.dim.isdecimal() else None


def _differs(board: Board, published: PublishedTable) -> Grid:
    members = [member for method in board.trained for member in method.members if member.done]
    rows = [
        ["data", ", ".join(published.dataset), board.data],
        ["network", f"{published.backbone}, embedding size {published.dim}", tallied([network(m) for m in members])],
        ["protocol", published.protocol, tallied([f"{protocol(m)}; {rule(final_of(m))}" for m in members])],
        ["±", published.spread, "95 % interval over seeds"],
    ]
    return Grid(Table("what-differs", ["what", published.source, "here"], rows, "What differs"))


def _metric(column: str) -> str | None:
    """The metric of ours that a column of theirs is."""
    recall = re.fullmatch(r"R@(\d+)", column)
    name = f"recall@{recall[1]}" if recall else SAME.get(column)
    return None if name is None else canonical_metric(name)


def _claims(material: Material) -> list[Part]:
    claims = claims_table(material.gathered)
    measured = measured_claims(claims).rows
    others = [row for row in claims.rows if row not in measured]
    grids: list[Part] = []
    if measured:
        title, notes = "Claims of the literature, checked here", [sentence(note) for note in claims.notes]
        grids.append(Grid(replace(claims, rows=measured, title=title, notes=notes), filters=["here"]))
    if others:
        needed = "claim that needs" if len(others) == 1 else "claims that need"
        table = replace(claims, name="claims-open", rows=others, notes=[], title=f"{len(others)} {needed} other runs")
        grids.append(Grid(table.only(["claim", "says", "here", "because"]), folded=True))
    return grids
