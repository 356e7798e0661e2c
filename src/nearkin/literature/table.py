"""One published table: rows of methods, columns of metrics, and what a reader must know of its cells."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from nearkin.errors import NearkinError, choices


class Column(NamedTuple):
    """A column, and the part of the table that it belongs to: a data set, or `concatenated` and `separated`."""

    name: str
    part: str | None = None

    def __str__(self) -> str:
        return self.name if self.part is None else f"{self.part} {self.name}"


class Cell(NamedTuple):
    """A number as it is printed, and its ± where there is one: the table's `spread` says what that is."""

    mean: float
    spread: float | None = None

    def __str__(self) -> str:
        return f"{self.mean:g}" if self.spread is None else f"{self.mean:g} ± {self.spread:g}"


class Row(NamedTuple):
    """One row: the method, what else tells rows of a method apart, and one cell per column (a word, or None)."""

    method: str
    where: dict[str, Any]
    cells: tuple[Cell | str | None, ...]


class Flag(NamedTuple):
    """What is wrong with cells of a table, or must be known of them."""

    kind: str  # misprint, recall falls, MAP@R above RP, repeated, unreadable, ...
    words: str
    cells: tuple[tuple[int, int], ...] = ()  # (row, column); none: the table as a whole


@dataclass(frozen=True)
class PublishedTable:
    """A table of a publication. Per cent unless a rank; None where the source has nothing that can be read."""

    id: str
    source: str  # psomas2020, roth2020, hist2022, drml2021, kobs2021
    table: str  # its number there
    title: str
    dataset: tuple[str, ...]
    backbone: str
    dim: str  # of the embedding, in words where it is several
    protocol: str
    spread: str  # what ± is
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()  # sentences that no code can find
    flags: tuple[Flag, ...] = ()  # what _flags.py finds
    kind: str = "results"  # results; or settings, of a set-up: there is nothing to reproduce in it

    @property
    def place(self) -> str:
        """Where it stands in its source: table 6a, section 3.1."""
        return f"table {self.table}" if self.table[0].isdigit() else self.table

    @property
    def methods(self) -> list[str]:
        """The names of its methods, each once."""
        return list(dict.fromkeys(row.method for row in self.rows))

    @property
    def flagged(self) -> set[tuple[int, int]]:
        """(row, column) of every cell with a flag."""
        return {cell for flag in self.flags for cell in flag.cells}

    def decimals(self, column: int) -> int | None:
        """How many decimals the numbers of a column are printed with; None where very small ones stand beside large
        ones, and in a column of words."""
        cells = [row.cells[column] for row in self.rows]
        numbers = [number for cell in cells if isinstance(cell, Cell) for number in cell if number is not None]
        most = max((len(f"{number:.6f}".rstrip("0").partition(".")[2]) for number in numbers), default=3)
        return most if most <= 2 else None

    def find(self, column: str, part: str | None = None) -> int:
        """The place of a column."""
        key = Column(column, part)
        if key not in self.columns:
            known = [str(existing) for existing in self.columns]
            raise NearkinError(f"table {self.id} has no column {str(key)!r}: {choices(str(key), known)}")
        return self.columns.index(key)

    def row(self, method: str, where: Mapping[str, Any] | None = None) -> int:
        """The place of the first row of a method; of several, that with these settings, as {"sampler": "DDM"}."""
        if method not in self.methods:
            raise NearkinError(f"table {self.id} has no method {method!r}: {choices(method, self.methods)}")
        for i, row in enumerate(self.rows):
            if row.method == method and (where or {}).items() <= row.where.items():
                return i
        raise NearkinError(f"table {self.id} has no row of {method} with {dict(where or {})}")

    def value(
        self, method: str, column: str, part: str | None = None, where: Mapping[str, Any] | None = None
    ) -> float | None:
        """The number in a cell; None where it cannot be read."""
        cell = self.rows[self.row(method, where)].cells[self.find(column, part)]
        if isinstance(cell, str):
            raise NearkinError(f"table {self.id}, {method}, {column}: {cell!r} is no number")
        return None if cell is None else cell.mean
