"""Options that several commands share."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearkin.storage import check_writable

if TYPE_CHECKING:
    from nearkin.comparison.pages import Sheet

Runs = Annotated[Path, typer.Option("--runs", help="Folder of the stored runs.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Csv = Annotated[Path | None, typer.Option("--csv", help="Write the tables as CSV: FILE, FILE-NAME.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", help="Write the tables as Markdown.")]
Latex = Annotated[Path | None, typer.Option("--latex", help="Write the tables as LaTeX.")]


def write_tables(
    sheets: "Mapping[str, Sheet]", *, csv: Path | None = None, markdown: Path | None = None, latex: Path | None = None
) -> list[Path]:
    """Write tables under the names that were asked for: one table as FILE, several as FILE and FILE-NAME."""
    from nearkin.studies.export import write_table

    files = []
    for path, ending in ((csv, ".csv"), (markdown, ".md"), (latex, ".tex")):
        if path is None:
            continue
        for i, (name, sheet) in enumerate(sheets.items()):
            stem = path.stem if i == 0 else f"{path.stem}-{name}"
            file = path.with_name(f"{stem}{ending}")
            check_writable(file)
            write_table(file, sheet.header, sheet.rows, sheet.numbers, sheet.notes)
            files.append(file)
    return files
