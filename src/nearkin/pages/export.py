"""Everything a page shows as files: charts as PNG and SVG, tables as CSV, Markdown and LaTeX."""

from pathlib import Path
from typing import Any

from nearkin.comparison.figures import save
from nearkin.pages.base import Chart, Table, shown
from nearkin.pages.page import Page
from nearkin.pages.static import draw
from nearkin.progress import track
from nearkin.studies.export import ENDINGS, write_table


def export(page: Page, folder: Path) -> list[Path]:
    """Write the charts and tables of a page into a folder, each under the name of its part.

    Parameters:
        page: the page.
        folder: where the files go; it is made.
    """
    files = []
    parts = [part for part in page.parts if part.table is not None]
    for part in track(parts, "Writing figures and tables", len(parts)):
        assert part.table is not None
        files += table_files(part.table, folder / part.id, getattr(part, "notes", ()))
        if isinstance(part, Chart):
            files += save(draw(part), folder / part.id)
    return files


def table_files(table: Table, path: Path, notes: Any = ()) -> list[Path]:
    """One table as NAME.csv with full numbers, NAME.md and NAME.tex as people read them."""
    numbers = 0
    for name in reversed(table.header):
        if not all(v is None or (isinstance(v, int | float) and not isinstance(v, bool)) for v in table.column(name)):
            break
        numbers += 1
    files = []
    for ending in ENDINGS:
        cell = _exact if ending == ".csv" else shown
        rows = [[" ".join(cell(value).split()) for value in row] for row in table.rows]
        told = () if ending == ".csv" else [note.rstrip(".") for note in notes]
        file = path.with_suffix(ending)
        write_table(file, table.header, rows, numbers, told)
        files.append(file)
    return files


def _exact(value: Any) -> str:
    """Numbers to the last digit."""
    if value is None:
        return ""
    if isinstance(value, int | float):
        return repr(value)
    return str(value)
