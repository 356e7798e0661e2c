"""`nearkin report`: stored runs as one page."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli import tables
from nearkin.cli.compare import By, Names, keys_of
from nearkin.cli.options import Runs
from nearkin.errors import NearkinError
from nearkin.storage import atomic, check_folder, check_writable


def report_command(
    names: Names = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    metric: Annotated[str, typer.Option("--metric", help="What rows are compared by; it must be stored.")] = "map_at_r",
    by: By = None,
    published: Annotated[
        str | None, typer.Option("--published", help="A published table that stands beside, as thesis_t6c.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="Folder for charts (PNG, SVG) and tables (CSV, Markdown, LaTeX).")
    ] = None,
    no_map: Annotated[
        bool, typer.Option("--no-map", help="Without the map of the embeddings, which takes longest.")
    ] = False,
    runs: Runs = Path("runs"),
) -> None:
    """Turn a study, several runs or one run into one HTML page that opens offline; nothing is trained."""
    from nearkin.comparison.gather import gather
    from nearkin.pages.build import build
    from nearkin.pages.page import render

    if not names:
        raise NearkinError("nothing to report: name a study, a folder of runs, or runs")
    output = output.expanduser()
    if output.suffix.lower() not in (".html", ".htm"):
        raise NearkinError(f"-o {output}: the page is HTML, as in {output.with_suffix('.html')}")
    gathered = gather(names, runs)
    check_writable(output)
    if export is not None:
        check_folder(export.expanduser())
    shown = [name if not Path(name).is_absolute() else Path(name).name for name in names]
    asked = ["--metric", metric] if metric != "map_at_r" else []
    command = shlex.join(
        [
            "nearkin",
            "report",
            *shown,
            "-o",
            output.name,
            *asked,
            *(["--by", by] if by else []),
            *(["--published", published] if published else []),
            *(["--no-map"] if no_map else []),
        ]
    )
    page = build(gathered, metric=metric, by=keys_of(by), published=published, map=not no_map, command=command)
    with atomic(output) as scratch:
        (scratch / output.name).write_text(render(page), encoding="utf-8")
    tables.err.print(
        f"written: {output} ({output.stat().st_size / 1e6:.1f} MB); open it in a browser",
        highlight=False,
        soft_wrap=True,
    )
    if export is not None:
        from nearkin.pages.export import export as write

        files = write(page, export.expanduser())
        tables.err.print(f"written: {len(files)} files in {export}", highlight=False, soft_wrap=True)
