"""The literature as tables: what was published, what is wrong in it, and what it says in words."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

from nearkin.literature._tournament import datasets, published_tournament_table
from nearkin.literature.claims import check_source, claims
from nearkin.literature.inventory import MARKS, items, parts
from nearkin.literature.table import Cell, PublishedTable
from nearkin.literature.tables import sources, table, tables
from nearkin.present import Column, Shown, Table
from nearkin.units import COUNT, NUMBER, WORDS, counted

SHOWN = 12  # flags of a kind that a screen shows; files have all of them
WIDE = 8  # columns that a screen shows side by side
HOLDS = {True: "holds", False: "does not hold", None: "cannot be checked"}


class Published(Shown):
    """Published tables or claims, and the tables that show them.

    Parameters:
        whole: the tables for files.
        narrow: the same for a screen.
        content: everything as plain values.
    """

    def __init__(self, whole: list[Table], narrow: list[Table], content: Any):
        self.whole, self.narrow, self.content = whole, narrow, content

    @property
    def tables(self) -> list[Table]:
        """The whole tables."""
        return self.whole

    @property
    def screen(self) -> list[Table]:
        """Wide tables in several parts."""
        return self.narrow

    def to_json(self) -> str:
        """Everything as JSON."""
        return json.dumps(self.content, ensure_ascii=False)


def published(
    name: str | None = None, *, claims: bool = False, ranks: bool = False, inventory: bool = False, source: str = ""
) -> Published:
    """What others have published.

    Parameters:
        name: a table, as thesis_t6a; None: the list of all tables.
        claims: what the sources say in words instead, and whether it holds in their own tables.
        ranks: the tournaments over the published tables of Psomas 2020 instead.
        inventory: every item of the sources instead, and where nearkin has it.
        source: only the claims of one source, as psomas2020.
    """
    if claims:
        return _claims(source or None)
    if ranks:
        made = [published_tournament_table(data) for data in datasets()]
        content = [{"data": data, "methods": made[i].records()} for i, data in enumerate(datasets())]
        return Published(made, made, content)
    if inventory:
        made = [inventory_table(part) for part in parts()]
        return Published(made, made, [item._asdict() for item in items()])
    if name is None:
        whole = [_list()]
        return Published(whole, whole, whole[0].records())
    one = table(name)
    return Published([one_table(one)], _narrow(one_table(one, SHOWN), one), _content(one))


def _list() -> Table:
    """One row per published table."""
    rows = [
        [t.id, f"{t.source}, {t.place}: {t.title}", ", ".join(t.dataset), t.backbone, t.dim, len(t.flags) or None]
        for t in tables()
    ]
    notes = [*(f"{name}: {words}" for name, words in sources().items()), "nearkin published TABLE prints one"]
    columns = ["table", "what", "data", "network", "size", Column("flags", unit=COUNT)]
    return Table("published", columns, rows, f"{len(rows)} published tables", notes)


def one_table(one: PublishedTable, most: int | None = None) -> Table:
    """A published table, a star behind flagged cells; below it protocol, what ± is, notes and flags.

    Parameters:
        one: the table.
        most: how many flags of a kind are listed; None: all.
    """
    keys = list(dict.fromkeys(key for row in one.rows for key in row.where))
    columns = [Column("method", "method" if one.kind == "results" else "what"), *(Column(key) for key in keys)]
    for j, column in enumerate(one.columns):
        digits = one.decimals(j)
        looks: dict[str, Any] = {"unit": WORDS, "digits": 6} if digits is None else {"unit": NUMBER, "digits": digits}
        name = str(column)
        columns.append(Column(name, **looks, plus_minus=f"{name} ±", star=f"{name} flagged"))
        columns += [Column(f"{name} ±"), Column(f"{name} flagged")]
    rows = []
    for i, row in enumerate(one.rows):
        values: list[Any] = [row.method, *(row.where.get(key) for key in keys)]
        for j, cell in enumerate(row.cells):
            mean, spread = (cell.mean, cell.spread) if isinstance(cell, Cell) else (cell, None)
            values += [mean, spread, (i, j) in one.flagged]
        rows.append(values)
    network = [one.backbone, f"size {one.dim}"] if one.backbone != "none" else []
    title = f"{sources()[one.source]}, {one.place}: {one.title} ({'; '.join([', '.join(one.dataset), *network])})"
    plus_minus = [f"±: {one.spread}"] if one.kind == "results" else []
    notes = [f"protocol: {one.protocol}", *plus_minus, *(f"note: {note}" for note in one.notes)]
    for kind in dict.fromkeys(flag.kind for flag in one.flags):
        words = [flag.words for flag in one.flags if flag.kind == kind]
        notes += [f"* {kind}: {sentence}" for sentence in words[:most]]
        if most is not None and len(words) > most:
            notes.append(f"* {kind}: {len(words) - most} more, which JSON and files have")
    return Table(one.id, columns, rows, title, notes)


def _narrow(whole: Table, one: PublishedTable) -> list[Table]:
    """A table that is too wide for a screen in several: by its parts, else every eight columns."""
    names = [str(column) for column in one.columns]
    if len(names) <= WIDE:
        return [whole]
    words = [column.name for column in whole.shown if column.name not in names]
    step = next((j for j, column in enumerate(one.columns) if column.part != one.columns[0].part), WIDE)
    made = [whole.only([*words, *names[start : start + step]]) for start in range(0, len(names), step)]
    parts = [replace(part, title="" if i else whole.title, notes=[]) for i, part in enumerate(made)]
    return [*parts[:-1], replace(parts[-1], notes=whole.notes)]


def _content(one: PublishedTable) -> dict[str, Any]:
    """A published table as plain values: cells by the name of their column."""
    columns = [str(column) for column in one.columns]
    rows = []
    for row in one.rows:
        values = [cell._asdict() if isinstance(cell, tuple) else cell for cell in row.cells]
        rows.append({"method": row.method, **row.where, "values": dict(zip(columns, values, strict=True))})
    flags = []
    for flag in one.flags:
        cells = [[one.rows[i].method, columns[j]] for i, j in flag.cells]
        flags.append({"kind": flag.kind, "words": flag.words, "cells": cells})
    return {**vars(one), "columns": columns, "rows": rows, "flags": flags}


def inventory_table(part: str) -> Table:
    """One part of the inventory: a row for each item."""
    chosen = [item for item in items() if item.part == part]
    rows = [[i.id, i.item, i.source, i.mark, ", ".join(i.where) or None, i.missing or None] for i in chosen]
    columns = ["id", "item", "source", Column("mark", " "), "where", Column("missing", "what is missing, or to know")]
    marks = [f"{count} {MARKS[mark]}" for mark, count in Counter(item.mark for item in chosen).items()]
    return Table(f"inventory-{part}", columns, rows, f"{part}. {parts()[part]}: {', '.join(marks)}")


def _claims(source: str | None) -> Published:
    """What the sources say in words, and whether it holds in their own tables."""
    checked = [(claim, check_source(claim)) for claim in claims(source)]
    rows = []
    for claim, result in checked:
        unit = claim.check["unit"] if claim.check else None
        counts = [result.hold, result.comparisons] if result.comparisons else [None, None]
        state = HOLDS[result.holds]
        rows.append([claim.id, claim.claim, claim.threshold, state, *counts, result.measured, unit])
    count = Counter(result.holds for _, result in checked)
    title = (
        f"{counted(len(rows), 'claim')} in their own tables: {count[True]} hold, {count[False]} do not, "
        f"{count[None]} cannot be checked"
    )
    notes = [
        "bound: the source's own, or ours where the source gives a word only and the bound is our reading",
        "these claims are no random sample of what was published: no failure rate may be read from them",
    ]
    columns = [
        "claim",
        Column("says", "it says"),
        "bound",
        Column("state", "in its own tables"),
        Column("hold", "comparisons that hold", COUNT),
        Column("comparisons", "of", COUNT),
        Column("measured", digits=3),
        Column("unit", "in"),
    ]
    made = [Table("claims", columns, rows, title, notes)]
    return Published(made, made, [{**vars(claim), **vars(result)} for claim, result in checked])
