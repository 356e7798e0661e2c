"""Published rows beside ours, with what differs, and what the literature claims, checked against these runs."""

import re
from typing import Any

from nearkin.comparison.compare import canonical_metric
from nearkin.comparison.pages import claims_sheet, measured_claims
from nearkin.errors import NearkinError
from nearkin.report.base import Column, Grid, Part, Section, Table, Words
from nearkin.report.material import Board, Material
from nearkin.report.overview import common, network, protocol, rule

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


def section(material: Material) -> Section | None:
    """None where nothing was asked for and no claim can be checked."""
    parts = [*_published(material), *_claims(material)]
    if not parts:
        return None
    return Section(
        "literature",
        "Beside the literature",
        "What others printed, what differs from it here, and what becomes of their claims.",
        parts,
    )


def _published(material: Material) -> list[Part]:
    if material.published is None:
        return []
    from nearkin.published.tables import sources, table

    found = table(material.published)
    columns = {i: metric for i, column in enumerate(found.columns) if (metric := _metric(column.name)) is not None}
    if not columns:
        raise NearkinError(
            f"--published {found.id}: none of its columns ({', '.join(map(str, found.columns))}) is a metric"
        )
    header = ["method", "from", *(str(found.columns[i]) for i in columns)]
    rows: list[list[Any]] = []
    for row in found.rows:
        where = ", ".join(f"{k} {v}" for k, v in row.where.items())
        cells = [getattr(row.cells[i], "mean", None) for i in columns]
        rows.append([row.method + (f" ({where})" if where else ""), found.source, *cells])
    for board in material.boards:
        for method in board.methods:
            values = [material.interval(method.members, metric) for metric in columns.values()]
            rows.append([method.name, f"here, {board.data}", *(None if v is None else 100 * v.mean for v in values)])
    flags = [f"{flag.kind}: {flag.words}." for flag in found.flags]
    grid = Grid(
        "published",
        f"{sources().get(found.source, found.source)}, table {found.table}: {found.title}",
        Table(f"published-{found.id}", header, rows),
        columns=[Column("method"), Column("from"), *map(_printed, header[2:])],
        filters=["from"],
        notes=[f"Per cent. Their ±: {found.spread}.", *found.notes, *flags],
    )
    return [
        Words("Rows of different publications are no comparison. What differs here:", "warning"),
        *[_differs(material, board, found) for board in material.boards],
        grid,
    ]


def _differs(material: Material, board: Board, found: Any) -> Grid:
    records = [material.record(m) for method in board.comparison.trained for m in method.members if m.done]
    ours = {
        "data": board.data,
        "network": common([network(r.member) for r in records]),
        "protocol": common([f"{protocol(r.member)}; {rule(r.final)}" for r in records]),
        "±": "95 % interval over seeds",
    }
    theirs = {
        "data": ", ".join(found.dataset),
        "network": f"{found.backbone}, embedding size {found.dim}",
        "protocol": found.protocol,
        "±": found.spread,
    }
    table = Table(
        f"what-differs{board.suffix}", ["what", found.source, "here"], [[k, theirs[k], ours[k]] for k in ours]
    )
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
    notes = [f"{note[0].upper()}{note[1:]}." for note in sheet.notes]
    grids: list[Part] = []
    if measured:
        table = Table("claims", sheet.header, measured)
        title = "Claims of the literature, checked here"
        grids.append(Grid("claims", title, table, filters=[sheet.header[2]], notes=notes))
    if others:
        table = Table("claims-open", sheet.header[:4], [row[:4] for row in others])
        grids.append(Grid("claims-open", f"{len(others)} claims that need other runs", table, folded=True))
    return grids
