"""Tables as files: CSV, Markdown or LaTeX, by the ending of the name."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from nearkin.errors import NearkinError
from nearkin.storage import atomic

ENDINGS = (".csv", ".md", ".tex")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for one
NUMBER = re.compile(r"[+-]?[\d.,]+(e[+-]?\d+)?( ?%| ± .*)?", re.I)
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
        "±": r"$\pm$",
        "–": "--",
    }
)


def check_ending(path: Path) -> None:
    """Refuse a name whose ending is no format."""
    if path.suffix.lower() not in ENDINGS:
        raise NearkinError(f"{path}: a table is written as {', '.join(ENDINGS)}, by the ending of its name")


def write_table(
    path: Path, header: Sequence[str], rows: Sequence[Sequence[str]], numbers: int, notes: Sequence[str] = ()
) -> None:
    """Write a table, whole or not at all.

    Parameters:
        path: its name; .csv, .md or .tex.
        header: names of the columns.
        rows: one text per column.
        numbers: how many columns at the end hold numbers; they are set flush right.
        notes: what a reader must know, one sentence each: below the table; in .csv a last column, in every row.
    """
    check_ending(path)
    with atomic(path) as scratch, open(scratch / path.name, "w", newline="", encoding="utf-8") as file:
        if path.suffix.lower() == ".csv":
            more = [["; ".join(notes)]] * len(rows) if notes else [[]] * len(rows)
            heading = [*header, "notes"] if notes else header
            lines = [heading, *([*row, *note] for row, note in zip(rows, more, strict=True))]
            csv.writer(file).writerows([[as_text(cell) for cell in line] for line in lines])
        elif path.suffix.lower() == ".md":
            below = "".join(f"\n{note[0].upper()}{note[1:]}.\n" for note in notes)
            file.write(_markdown(header, rows, numbers) + below)
        else:
            below = "".join(f"\n\\par {note.translate(LATEX)}.\n" for note in notes)
            file.write(_latex(header, rows, numbers) + below)


def as_text(cell: str) -> str:
    """A cell for a spreadsheet: a text that begins like a formula is told to be text, numbers stay as they are."""
    return f"'{cell}" if cell.startswith(FORMULA) and not NUMBER.fullmatch(cell) else cell


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: int) -> str:
    rule = ["---"] * (len(header) - numbers) + ["---:"] * numbers
    return "".join("| " + " | ".join(x.replace("|", r"\|") for x in line) + " |\n" for line in (header, rule, *rows))


def _latex(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: int) -> str:
    """A bare tabular with the rules of booktabs."""

    def line(cells: Sequence[str]) -> str:
        return " & ".join(cell.translate(LATEX) for cell in cells) + r" \\"

    columns = "l" * (len(header) - numbers) + "r" * numbers
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", line(header), r"\midrule", *map(line, rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"
