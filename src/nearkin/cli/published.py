"""`nearkin published` and `nearkin claims`: the literature beside one's own figures."""

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearkin.cli import tables
from nearkin.cli.options import Csv, Json, Latex, Markdown, write_tables

if TYPE_CHECKING:
    from nearkin.comparison.sheet import Sheet
    from nearkin.literature.table import PublishedTable

MARK = " !"  # stands behind a cell with a flag
SHOWN = 12  # flags of a kind that a screen shows; files have all of them
WIDE = 8  # columns that a screen shows side by side
Name = Annotated[str | None, typer.Argument(metavar="TABLE", help="As thesis_t6a; without one, all are listed.")]


def published_command(
    name: Name = None, csv: Csv = None, markdown: Markdown = None, latex: Latex = None, as_json: Json = False
) -> None:
    """Published tables: what they print, under which protocol, and what is wrong in them."""
    from nearkin.literature.tables import table

    one = None if name is None else table(name)
    sheet = all_tables() if one is None else one_table(one)
    if as_json:
        listed = [dict(zip(sheet.header, row, strict=True)) for row in sheet.rows]
        print(json.dumps(listed if one is None else as_dict(one), ensure_ascii=False))
    else:
        for part in [sheet] if one is None else narrow(one_table(one, SHOWN), one):
            tables.sheet(part)
    _written(sheet, csv=csv, markdown=markdown, latex=latex)


def claims_command(
    source: Annotated[str | None, typer.Option("--source", help="Only one source, as psomas2020.")] = None,
    csv: Csv = None,
    markdown: Markdown = None,
    latex: Latex = None,
    as_json: Json = False,
) -> None:
    """What the sources say in words, and whether it holds in their own tables."""
    from nearkin.comparison.sheet import Sheet
    from nearkin.literature.claims import check_source, claims

    chosen = [(claim, check_source(claim)) for claim in claims(source)]
    states = {True: "holds", False: "does not hold", None: "cannot be checked"}
    rows = []
    for claim, found in chosen:
        count = f"{found.hold} of {found.comparisons}" if found.comparisons else "–"
        unit = claim.check["unit"] if claim.check else ""
        measured = "–" if found.measured is None else f"{round(found.measured, 3):g} {unit}"
        rows.append([claim.id, claim.claim, claim.threshold, states[found.holds], count, measured])
    counts = Counter(found.holds for _, found in chosen)
    title = f"{len(rows)} claims in their own tables: {counts[True]} hold, {counts[False]} do not, "
    title += f"{counts[None]} cannot be checked"
    notes = [
        "bound: the source's own, or ours where the source gives a word only and the bound is our reading",
        "these claims are no random sample of what was published: no failure rate may be read from them",
    ]
    header = ["claim", "it says", "bound", "in its own tables", "comparisons that hold", "measured"]
    sheet = Sheet(title, header, rows, 2, notes)
    if as_json:
        print(json.dumps([{**vars(claim), **vars(found)} for claim, found in chosen], ensure_ascii=False))
    else:
        tables.sheet(sheet)
    _written(sheet, csv=csv, markdown=markdown, latex=latex)


def all_tables() -> "Sheet":
    """One row per published table."""
    from nearkin.comparison.sheet import Sheet
    from nearkin.literature.tables import sources
    from nearkin.literature.tables import tables as published

    header = ["table", "what", "data", "network", "size", "flags"]
    rows = [
        [
            t.id,
            f"{t.source}, table {t.table}: {t.title}",
            ", ".join(t.dataset),
            t.backbone,
            t.dim,
            str(len(t.flags) or "–"),
        ]
        for t in published()
    ]
    notes = [f"{name}: {words}" for name, words in sources().items()]
    return Sheet(f"{len(rows)} published tables", header, rows, 1, [*notes, "nearkin published TABLE prints one"])


def one_table(one: "PublishedTable", most: int | None = None) -> "Sheet":
    """A published table with a mark behind flagged cells; below it protocol, what ± is, notes and flags.

    Parameters:
        one: the table.
        most: how many flags of a kind are shown; None: all.
    """
    from nearkin.comparison.sheet import Sheet
    from nearkin.literature.tables import sources

    keys = list(dict.fromkeys(key for row in one.rows for key in row.where))
    rows = []
    for i, (row, texts) in enumerate(zip(one.rows, one.texts(), strict=True)):
        cells = [f"{text}{MARK * (text != '–' and (i, j) in one.flagged)}" for j, text in enumerate(texts)]
        rows.append([row.method, *(str(row.where.get(key, "")) for key in keys), *cells])
    title = f"{sources()[one.source]}, table {one.table}: {one.title}"
    title += f" ({', '.join(one.dataset)}; {one.backbone}; size {one.dim})"
    notes = [f"protocol: {one.protocol}", f"±: {one.spread}", *(f"note: {note}" for note in one.notes)]
    for kind in dict.fromkeys(flag.kind for flag in one.flags):
        words = [flag.words for flag in one.flags if flag.kind == kind]
        notes += [f"! {kind}: {each}" for each in words[:most]]
        if most is not None and len(words) > most:
            notes.append(f"! {kind}: {len(words) - most} more, which --json, --csv, --markdown and --latex tell")
    return Sheet(title, ["method", *keys, *map(str, one.columns)], rows, len(one.columns), notes)


def narrow(sheet: "Sheet", one: "PublishedTable") -> "list[Sheet]":
    """A table that is too wide for a screen in several: by its parts, else every eight columns."""
    words, count = len(sheet.header) - sheet.numbers, sheet.numbers
    step = next((j for j in range(count) if one.columns[j].part != one.columns[0].part), WIDE)
    if count <= WIDE:
        return [sheet]
    made = []
    for start in range(0, count, step):
        here = slice(words + start, words + min(start + step, count))
        rows = [[*row[:words], *row[here]] for row in sheet.rows]
        header = [*sheet.header[:words], *sheet.header[here]]
        title, notes = sheet.title if start == 0 else "", sheet.notes if start + step >= count else []
        made.append(replace(sheet, title=title, header=header, rows=rows, numbers=len(header) - words, notes=notes))
    return made


def as_dict(one: "PublishedTable") -> dict[str, Any]:
    """A published table for JSON: cells by the name of their column."""
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


def _written(sheet: "Sheet", **files: Any) -> None:
    if found := write_tables({"": sheet}, **files):
        tables.err.print(f"written: {', '.join(map(str, found))}", highlight=False, soft_wrap=True)
