"""Everything a page shows as files: charts as PNG and SVG, tables as CSV, Markdown and LaTeX."""

from dataclasses import replace
from pathlib import Path

from nearkin.pages._base import Figure
from nearkin.pages._page import Page
from nearkin.progress import track

ENDINGS = (".csv", ".md", ".tex")


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
        notes = list(part.chart.notes) if isinstance(part, Figure) else part.table.notes
        for ending in ENDINGS:
            table = replace(part.table, notes=[] if ending == ".csv" else notes)  # data have no sentences in them
            files.append(table.write(folder / f"{part.id}{ending}"))
        if isinstance(part, Figure):
            files += part.drawn().save(folder / part.id)
    return files
