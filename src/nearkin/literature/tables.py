"""The tables of five publications, from `data/tables.json`. They are read when they are first needed."""

import json
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from nearkin.errors import NearkinError, choices
from nearkin.literature._flags import flags_of, transposed
from nearkin.literature.table import Cell, Column, PublishedTable, Row


@lru_cache(maxsize=1)
def _content() -> dict[str, Any]:
    return json.loads((files("nearkin.literature") / "data" / "tables.json").read_text(encoding="utf-8"))


def sources() -> dict[str, str]:
    """The publications: short name -> author, year and document."""
    return dict(_content()["sources"])


@lru_cache(maxsize=1)
def _tables() -> dict[str, PublishedTable]:
    bare = {raw["id"]: _read(raw) for raw in _content()["tables"]}
    flags = flags_of(bare)
    return {name: replace(transposed(table), flags=tuple(flags[name])) for name, table in bare.items()}


def tables() -> list[PublishedTable]:
    """All published tables with their flags; null cells of a symmetric table are read from its other half."""
    return list(_tables().values())


def table(name: str) -> PublishedTable:
    """The table of this id, as thesis_t6a."""
    if name not in _tables():
        raise NearkinError(f"unknown published table {name!r}: {choices(name, _tables())}")
    return _tables()[name]


def _read(raw: dict[str, Any]) -> PublishedTable:
    parts = raw["columns"] if isinstance(raw["columns"], dict) else {None: raw["columns"]}
    columns = tuple(Column(name, part) for part, names in parts.items() for name in names)
    rows = []
    for row in raw["rows"]:
        values = row["values"]
        cells = [x for part in parts for x in values[part]] if isinstance(values, dict) else values
        rows.append(Row(row["method"], row.get("where", {}), tuple(map(_cell, cells))))
    data = (raw["dataset"],) if isinstance(raw["dataset"], str) else tuple(raw["dataset"])
    return PublishedTable(
        raw["id"],
        raw["source"],
        raw["table"],
        raw["title"],
        data,
        raw["backbone"],
        _size(raw["dim"]),
        raw["protocol"],
        raw["spread"],
        columns,
        tuple(rows),
        tuple(raw.get("notes", ())),
        kind=raw.get("kind", "results"),
    )


def _cell(value: Any) -> Cell | str | None:
    if value is None or isinstance(value, str):
        return value
    return Cell(*value) if isinstance(value, list) else Cell(value)


def _size(dim: Any) -> str:
    if dim is None:
        return "various"
    if isinstance(dim, dict):
        return ", ".join(f"{size} {part}" for part, size in dim.items())
    return ", ".join(map(str, dim)) if isinstance(dim, list) else str(dim)
