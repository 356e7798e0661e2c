"""Everything a page shows as files: charts, sheets of images and maps as PNG and SVG, tables as CSV, Markdown and
LaTeX."""

from dataclasses import replace
from pathlib import Path

from nearkin.pages._base import Figure
from nearkin.pages._page import Page
from nearkin.present import save
from nearkin.progress import track

ENDINGS = (".csv", ".md", ".tex")


def export(page: Page, folder: Path) -> list[Path]:
    """Write the pictures and tables of a page into a folder, each under the name of its part.

    Parameters:
        page: the page.
        folder: where the files go; it is made.
    """
    files: list[Path] = []
    for part in track(page.parts, "Writing figures and tables", len(page.parts)):
        if part.table is not None:
            notes = list(part.chart.notes) if isinstance(part, Figure) else part.table.notes
            for ending in ENDINGS:
                table = replace(part.table, notes=[] if ending == ".csv" else notes)  # data have no sentences in them
                files.append(table.write(folder / f"{part.id}{ending}"))
        if (figure := part.drawn()) is not None:
            files += save(figure, folder / part.id)
    return files
