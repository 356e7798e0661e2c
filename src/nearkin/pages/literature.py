"""Published rows beside ours, with what differs, and what the literature claims, checked against these runs."""

import re
from typing import Any

from nearkin.comparison.compare import canonical_metric
from nearkin.comparison.method import Method
from nearkin.comparison.pages import claims_sheet, measured_claims, sentence
from nearkin.errors import NearkinError
from nearkin.literature.table import Column as Published
from nearkin.literature.table import PublishedTable
from nearkin.pages.base import Column, Grid, Part, Section, Table, Words
from nearkin.pages.material import Board, Material, final_of
from nearkin.pages.overview import counted, network, protocol, rule

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
    if not parts:
        return None
    lead = "What others printed, what differs from it here, and what becomes of their claims."
    return Section("literature", "Beside the literature", lead, parts)


def _published(material: Material) -> list[Part]:
    if material.published is None:
        return []
    from nearkin.literature.tables import sources, table

    published = table(material.published)
    columns = {i: metric for i, column in enumerate(published.columns) if (metric := _metric(column.name)) is not None}
    if not columns:
        known = ", ".join(map(str, published.columns))
        raise NearkinError(f"published={published.id}: none of its columns ({known}) is a metric")
    header = ["method", "from", *(str(published.columns[i]) for i in columns)]
    rows: list[list[Any]] = []
    for row in published.rows:
        where = ", ".join(f"{k} {v}" for k, v in row.where.items())
        numbers = [getattr(row.cells[i], "mean", None) for i in columns]
        rows.append([row.method + (f" ({where})" if where else ""), published.source, *numbers])
    for board in material.boards:
        rows += [
            [
                method.name,
                f"here, {board.data}",
                *(own_value(board, method, published, i, metric) for i, metric in columns.items()),
            ]
            for method in board.methods
        ]
    flags = [f"{flag.kind}: {flag.words}." for flag in published.flags]
    notes = [f"Per cent. Their ±: {published.spread}.", *published.notes, *flags]
    if any(column.part is not None for column in published.columns):
        notes.append(
            "A cell of ours is filled only where data set, embedding size and, for folds, evaluation are "
            "those of its part of the table."
        )
    notes += material.missing(dict.fromkeys(columns.values()))
    grid = Grid(
        "published",
        f"{sources().get(published.source, published.source)}, table {published.table}: {published.title}",
        Table(f"published-{published.id}", header, rows),
        columns=[Column("method"), Column("from"), *map(_printed, header[2:])],
        filters=["from"],
        notes=notes,
    )
    return [
        Words("Rows of different publications are no comparison. What differs here:", "warning"),
        *[_differs(board, published) for board in material.boards],
        grid,
    ]


def own_value(board: Board, method: Method, published: PublishedTable, i: int, metric: str) -> float | None:
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
    named = re.search(rf"\b(\d+) {re.escape(part)}", published.dim)
    return int(named[1]) if named else int(published.dim) if published.dim.isdecimal() else None


def _differs(board: Board, published: PublishedTable) -> Grid:
    members = [member for method in board.trained for member in method.members if member.done]
    rows = [
        ["data", ", ".join(published.dataset), board.data],
        ["network", f"{published.backbone}, embedding size {published.dim}", counted([network(m) for m in members])],
        ["protocol", published.protocol, counted([f"{protocol(m)}; {rule(final_of(m))}" for m in members])],
        ["±", published.spread, "95 % interval over seeds"],
    ]
    table = Table(f"what-differs{board.suffix}", ["what", published.source, "here"], rows)
    return Grid(f"what-differs{board.suffix}", f"{board.where}What differs", table)


def _printed(name: str) -> Column:
    """A column of numbers with two decimals, as most tables print them."""
    return Column(name, name, lambda row: "–" if row[name] is None else f"{row[name]:.2f}")


def _metric(column: str) -> str | None:
    """The metric of ours that a column of theirs is."""
    recall = re.fullmatch(r"R@(\d+)", column)
    name = f"recall@{recall[1]}" if recall else SAME.get(column)
    return None if name is None else canonical_metric(name)


def _claims(material: Material) -> list[Part]:
    sheet = claims_sheet(material.gathered)
    measured = measured_claims(sheet).rows
    others = [row for row in sheet.rows if row not in measured]
    grids: list[Part] = []
    if measured:
        table, title = Table("claims", sheet.header, measured), "Claims of the literature, checked here"
        grids.append(Grid("claims", title, table, filters=[sheet.header[2]], notes=[sentence(n) for n in sheet.notes]))
    if others:
        table = Table("claims-open", sheet.header[:4], [row[:4] for row in others])
        grids.append(Grid("claims-open", f"{len(others)} claims that need other runs", table, folded=True))
    return grids
