"""`nearkin report`: stored runs as one page."""

from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli.compare import By, Names
from nearkin.cli.options import Runs, Where, words_of
from nearkin.cli.screen import say


def report_command(
    names: Names = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    metric: Annotated[
        str, typer.Option("--metric", help="The metric to compare rows by; it must be stored.")
    ] = "map_at_r",
    by: By = None,
    where: Where = None,
    published: Annotated[
        str | None, typer.Option("--published", help="A published table to show beside the rows, such as thesis_t6c.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export", help="Folder for charts, sheets of images and maps (PNG, SVG), tables (CSV, Markdown, LaTeX)."
        ),
    ] = None,
    no_map: Annotated[
        bool, typer.Option("--no-map", help="Leave out the map of the embeddings, which takes longest.")
    ] = False,
    runs: Runs = Path("runs"),
) -> None:
    """Turn a study, a fit, several runs or one run into one HTML page that opens offline; nothing is trained."""
    from nearkin.pages.report import report

    written = report(
        *(names or []),
        runs=runs,
        output=output,
        metric=metric,
        by=words_of(by),
        where=where or (),
        published=published,
        export=export,
        map=not no_map,
    )
    say(*written.words, error=True)
