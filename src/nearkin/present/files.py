"""Tables as files: CSV, Markdown, LaTeX and Parquet, by the ending of the name; and as tables of Arrow and pandas."""

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearkin.errors import NearkinError
from nearkin.present.table import Table
from nearkin.storage import atomic

if TYPE_CHECKING:
    import pandas
    import pyarrow

ENDINGS = (".csv", ".md", ".tex", ".parquet")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for one
DESCRIPTION = b"nearkin"  # where Parquet holds how a table is shown
LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "_": r"\_",
        "#": r"\#",
        "$": r"\$",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "±": r"$\pm$",
        "–": "--",
    }
)


def check_ending(path: Path) -> None:
    """Refuse a name whose ending is no format."""
    if path.suffix.lower() not in ENDINGS:
        raise NearkinError(f"{path}: a table is written as {', '.join(ENDINGS)}, by the ending of its name")


def write(table: Table, path: Path) -> Path:
    """Write a table, whole or not at all. Notes stand below it; in .csv they are a last column, in every row."""
    check_ending(path)
    with atomic(path) as scratch:
        file = scratch / path.name
        if path.suffix.lower() == ".csv":
            _csv(table, file)
        elif path.suffix.lower() == ".parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(to_arrow(table), file, compression="zstd")
        else:
            file.write_text(markdown(table) if path.suffix.lower() == ".md" else latex(table), encoding="utf-8")
    return path


def sentence(note: str) -> str:
    """A note as a sentence of its own: a capital letter, unless it begins with a symbol, and a full stop."""
    first = note.partition(" ")[0]
    capital = f"{note[:1].upper()}{note[1:]}" if len(first) > 1 and first.isascii() and "_" not in first else note
    return capital if capital.endswith((".", "!", "?")) else f"{capital}."


def _csv(table: Table, path: Path) -> None:
    notes = "; ".join(table.notes)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(map(spreadsheet, [*table.header, "notes"] if notes else table.header))
        for row in table.rows:
            writer.writerow(map(spreadsheet, [*row, notes] if notes else row))


def spreadsheet(value: Any) -> Any:
    """A value for a spreadsheet: a text that begins like a formula is marked as text; a gap is empty."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def markdown(table: Table) -> str:
    """A Markdown table with the notes below it."""
    rule = ["---:" if table.is_numeric(column) else "---" for column in table.shown]
    lines = [[column.title for column in table.shown], rule, *table.texts()]
    text = "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)
    return text + "".join(f"\n{sentence(note)}\n" for note in table.notes)


def latex(table: Table) -> str:
    """A bare tabular with the rules of booktabs, and the notes below it."""

    def line(cells: list[str]) -> str:
        return " & ".join(cell.translate(LATEX) for cell in cells) + r" \\"

    columns = "".join("r" if table.is_numeric(column) else "l" for column in table.shown)
    head = line([column.title for column in table.shown])
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *map(line, table.texts())]
    below = "".join(f"\n\\par {sentence(note).translate(LATEX)}\n" for note in table.notes)
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n" + below


def to_arrow(table: Table) -> "pyarrow.Table":
    """The plain values; the schema's metadata says how they are shown. A column of mixed kinds becomes texts."""
    import pyarrow

    arrays = []
    for name in table.header:
        values = table.column(name)
        try:
            arrays.append(pyarrow.array(values))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            arrays.append(pyarrow.array([None if value is None else str(value) for value in values]))
    arrow = pyarrow.Table.from_arrays(arrays, names=table.header)
    return arrow.replace_schema_metadata({DESCRIPTION: json.dumps(table.describe())})


def from_arrow(arrow: "pyarrow.Table") -> Table:
    """The table that `to_arrow` made."""
    description = json.loads(arrow.schema.metadata[DESCRIPTION])
    columns = [column.to_pylist() for column in arrow.columns]
    return Table.described(description, [list(row) for row in zip(*columns, strict=True)])


def read(path: Path) -> Table:
    """A table that was written as Parquet."""
    import pyarrow.parquet

    return from_arrow(pyarrow.parquet.read_table(path))


def to_pandas(table: Table) -> "pandas.DataFrame":
    """The plain values as a data frame."""
    try:
        import pandas
    except ImportError:
        raise NearkinError("to_pandas needs pandas: pip install pandas; to_arrow works without it") from None
    return pandas.DataFrame({name: table.column(name) for name in table.header}, columns=table.header)
