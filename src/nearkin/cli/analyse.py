"""`nearkin analyse`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli import tables
from nearkin.cli.options import Json, Runs
from nearkin.registry import ANALYSES
from nearkin.runs.store import Store


def analyse_command(
    what: Annotated[str, typer.Argument(help="An analysis, as in `nearkin list analyses`.")],
    run: Annotated[str, typer.Argument(help="A finished run: path, hash or the beginning of its hash.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A folder; default: that of the run.")] = None,
    runs: Runs = Path("runs"),
    as_json: Json = False,
) -> None:
    """Look into what a run has learned: a table, and numbers and figures as files."""
    analysis = ANALYSES[what]
    stored = Store(runs).find(run)
    found = analysis.of(stored)
    folder = output or stored.path
    files = ", ".join(path.name for path in found.save(folder))
    if as_json:
        print(json.dumps(found.summary))
        return
    tables.out.print(tables.table(None, {"what": "left", "value": "right"}, found.rows()))
    tables.out.print(f"stored: {files} in {folder}", highlight=False, markup=False, soft_wrap=True)
