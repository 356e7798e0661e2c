"""A long table as a matrix."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nearkin.present.table import Column, Table


def pivot(
    table: Table, name: str, *, down: str, across: str, value: str, along: Sequence[str] = (), **rest: Any
) -> Table:
    """One row for every value of a column, one column for every value of another, a number in each cell. The columns
    that the number shows beside it (plus_minus, to, star) come along.

    Parameters:
        table: one row for every cell; of several rows for one cell the last counts.
        name: the name of the new table.
        down: the column whose values begin the rows.
        across: the column whose values stand above.
        value: the column of numbers.
        along: columns that tell more of every row.
        rest: title and notes of the new table.
    """
    by_name = {column.name: column for column in table.columns if isinstance(column, Column)}
    number, records = by_name[value], table.records()
    heads = list(dict.fromkeys(row[across] for row in records))
    columns = [by_name[down], *(by_name[column] for column in along)]
    for head in heads:
        parts = {key: getattr(number, key) for key in ("plus_minus", "to", "star")}
        beside: dict[str, Any] = {key: f"{part} {head}" for key, part in parts.items() if part}
        columns.append(replace(number, name=f"{value} {head}", heading=str(head), **beside))
        columns += [replace(by_name[column], name=f"{column} {head}") for column in number.beside]
    names = [value, *number.beside]
    cells = {(row[down], row[across]): [row[column] for column in names] for row in records}
    firsts = {row[down]: [row[column] for column in (down, *along)] for row in records}
    rows = [
        [*first, *(cell for head in heads for cell in cells.get((key, head), [None] * len(names)))]
        for key, first in firsts.items()
    ]
    return Table(name, columns, rows, **rest)
