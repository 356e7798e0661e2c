"""A table: columns that know their unit, rows of plain values. Everything that shows numbers shows those of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearkin.units import GAP, UNITS, WORDS, Unit, as_number

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from markupsafe import Markup
    from rich.console import Group


@dataclass(frozen=True)
class Column:
    """A column of a table: which values it holds and how they are shown.

    Parameters:
        name: its name in files and in Python.
        heading: what stands above it; by default the name. A share's says "%".
        unit: how its values are written. A text names the column that holds the name of every row's unit.
        digits: decimals, where the unit's would be wrong.
        about: what the heading says on hover.
        signed: does a plus stand before positive values?
        plus_minus: the column of a spread, shown behind the value: 12.34 ± 0.56.
        to: the column of the upper end: 0.21 to 0.95, or one value where both are the same.
        star: the column of truth values that put a star behind the value, or of the marks that stand there.
        hidden: is it only in files and in Python?
    """

    name: str
    heading: str = ""
    unit: Unit | str = WORDS
    digits: int | None = None
    about: str = ""
    signed: bool = False
    plus_minus: str = ""
    to: str = ""
    star: str = ""
    hidden: bool = False

    @property
    def title(self) -> str:
        """What stands above it."""
        mark = self.unit.mark if isinstance(self.unit, Unit) else ""
        return f"{self.heading or self.name} {mark}".rstrip()

    @property
    def beside(self) -> list[str]:
        """The columns that are shown in this one, not for themselves."""
        used = [self.plus_minus, self.to, self.star, self.unit if isinstance(self.unit, str) else ""]
        return [name for name in used if name]

    def text(self, row: dict[str, Any]) -> str:
        """The cell of a row as people read it."""
        unit = self.unit if isinstance(self.unit, Unit) else UNITS[row[self.unit] or WORDS.name]
        words = unit.text(row[self.name], self.digits, self.signed)
        if self.to:
            end = unit.text(row[self.to], self.digits, self.signed)
            words = GAP if GAP in (words, end) else words if words == end else f"{words} to {end}"
        if words != GAP and self.plus_minus and row[self.plus_minus] is not None:
            words += f" ± {unit.text(row[self.plus_minus], self.digits)}"
        if words != GAP and unit is not self.unit and unit.mark:  # no heading can say it for all rows
            words += f" {unit.mark}"
        if words != GAP and self.star and row[self.star]:
            mark = row[self.star]
            words += mark if isinstance(mark, str) else "*"
        return words


@dataclass
class Table:
    """Rows of plain values and how to show them.

    It renders itself: `print(table)` in a terminal, by itself in a notebook, `write("table.csv")` (or .md, .tex,
    .parquet), `to_arrow()`, `to_pandas()`. Texts are made from values, never the other way round.

    Parameters:
        name: file name of what is written, without ending.
        columns: `Column`s; a text is a column of that name without a unit.
        rows: one list per row, one value per column; None is a gap.
        title: what stands above it.
        notes: what a reader must know, one sentence each, below it.
        warn: numbers of rows that must not be overlooked.
        detail: does the terminal leave it out, and the page fold it away?
    """

    name: str
    columns: Sequence[Any]
    rows: list[list[Any]]
    title: str = ""
    notes: list[str] = field(default_factory=list)
    warn: Sequence[int] = ()
    detail: bool = False

    def __post_init__(self) -> None:
        self.columns = [Column(column) if isinstance(column, str) else column for column in self.columns]
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row of {len(row)} values for columns {self.header}: {row}")

    @classmethod
    def of_records(cls, name: str, columns: Sequence[Any], records: Iterable[Mapping[str, Any]], **rest: Any) -> Table:
        """A table of mappings from column to value: a gap where one has no value of that name, more than the columns is
        left out. `rest` is as in `Table`."""
        table = cls(name, columns, [], **rest)
        table.rows = [[record.get(column) for column in table.header] for record in records]
        return table

    @property
    def header(self) -> list[str]:
        """The names of all columns."""
        return [column.name for column in self._columns]

    @property
    def _columns(self) -> list[Column]:
        return list(self.columns)

    @property
    def shown(self) -> list[Column]:
        """The columns that people see: without hidden ones, and those that another one shows beside its value."""
        beside = {name for column in self._columns for name in column.beside}
        return [column for column in self._columns if column.name not in beside and not column.hidden]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records())

    def column(self, name: str) -> list[Any]:
        """The values of one column."""
        place = self.header.index(name)
        return [row[place] for row in self.rows]

    def records(self) -> list[dict[str, Any]]:
        """Every row as column -> value."""
        header = self.header
        return [dict(zip(header, row, strict=True)) for row in self.rows]

    def is_numeric(self, column: Column) -> bool:
        """Is it set flush right? By its unit; a column of words is, when it holds nothing but numbers."""
        if isinstance(column.unit, Unit) and column.unit.numeric:
            return True
        values = [value for value in self.column(column.name) if value is not None]
        return isinstance(column.unit, str) or (bool(values) and all(map(as_number, values)))

    def texts(self) -> list[list[str]]:
        """Every row as people read it: one text for each column of `shown`."""
        shown = self.shown
        return [[column.text(row) for column in shown] for row in self.records()]

    def only(self, names: Sequence[str]) -> Table:
        """The same table with these columns in this order, and those that they show beside their values."""
        columns = {column.name: column for column in self._columns}
        shown = [name for name in names if name in columns]
        chosen = list(dict.fromkeys(one for name in shown for one in (name, *columns[name].beside)))
        places = [self.header.index(name) for name in chosen]
        rows = [[row[i] for i in places] for row in self.rows]
        return replace(self, columns=[columns[name] for name in chosen], rows=rows)

    def without_gaps(self) -> Table:
        """The same table without the shown columns that hold nothing at all."""
        empty = {c.name for c in self.shown if self.rows and all(value is None for value in self.column(c.name))}
        return self.only([column.name for column in self.shown if column.name not in empty])

    def rich(self) -> Group:
        """What a terminal prints."""
        from nearkin.present.terminal import render

        return render(self)

    def html(self, **looks: Any) -> Markup:
        """An HTML table; see `nearkin.present.html.render` for its looks."""
        from nearkin.present.html import render

        return render(self, **looks)

    def markdown(self) -> str:
        """A Markdown table, with the notes below it."""
        from nearkin.present.files import markdown

        return markdown(self)

    def latex(self) -> str:
        """A bare tabular with the rules of booktabs."""
        from nearkin.present.files import latex

        return latex(self)

    def write(self, path: Path | str) -> Path:
        """Write it, whole or not at all; the ending of the name says how: .csv, .md, .tex or .parquet."""
        from nearkin.present.files import write

        return write(self, Path(path))

    def to_arrow(self) -> pyarrow.Table:
        """The plain values as an Arrow table; how they are shown is in its metadata."""
        from nearkin.present.files import to_arrow

        return to_arrow(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The plain values as a data frame of pandas, which must be installed."""
        from nearkin.present.files import to_pandas

        return to_pandas(self)

    def describe(self) -> dict[str, Any]:
        """Everything but the rows, as plain values; `Table.described` reads it."""
        columns = []
        for column in self._columns:
            unit = column.unit.name if isinstance(column.unit, Unit) else f"column {column.unit}"
            given = {k: v for k, v in asdict(column).items() if k != "unit" and v not in ("", None, False)}
            columns.append({**given, "unit": unit})
        rest = {"title": self.title, "notes": list(self.notes), "warn": list(self.warn), "detail": self.detail}
        return {"name": self.name, "columns": columns, **rest}

    @classmethod
    def described(cls, description: dict[str, Any], rows: list[list[Any]]) -> Table:
        """The table of a description."""
        columns = []
        for given in description["columns"]:
            unit = given["unit"]
            of_column = unit.startswith("column ")
            columns.append(Column(**{**given, "unit": unit.removeprefix("column ") if of_column else UNITS[unit]}))
        return cls(**{**description, "columns": columns}, rows=rows)

    def __str__(self) -> str:
        from nearkin.present.terminal import plain

        return plain([self.rich()])

    def _repr_html_(self) -> str:
        return str(self.html())
