"""`nearkin data`."""

import json
from pathlib import Path
from typing import Annotated

import typer

import nearkin
from nearkin.cli import tables
from nearkin.cli.options import Json
from nearkin.registry import DATASETS

data_app = typer.Typer(no_args_is_help=True, help="Look at data sets.")


@data_app.command("verify")
def verify_command(
    name: Annotated[str, typer.Argument(help="Name of the data set, or of its adapter.")],
    root: Annotated[Path | None, typer.Option("--root", help="Its folder or file.")] = None,
    as_json: Json = False,
) -> None:
    """Count, compare with the official counts, open every image; exit code 1 when something is wrong."""
    table = nearkin.data.load_table(name, root)
    report = nearkin.data.verify(table, getattr(DATASETS[name], "official", None))
    print(json.dumps(report.to_dict())) if as_json else tables.verified(report)
    if not report.ok:
        raise typer.Exit(1)
