"""`nearkin runs`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli import tables
from nearkin.cli.options import Json, Runs
from nearkin.runs.store import Store

runs_app = typer.Typer(no_args_is_help=True, help="Look at stored runs.")


@runs_app.command("list")
def runs_list(runs: Runs = Path("runs"), as_json: Json = False) -> None:
    """All stored runs."""
    found = Store(runs).runs()
    if as_json:
        print(json.dumps([{"hash": r.hash, "done": r.done, "result": r.result if r.done else None} for r in found]))
    elif found:
        tables.out.print(tables.runs_table(found))
    else:
        tables.out.print(f"no runs in {runs}", highlight=False)


@runs_app.command("show")
def runs_show(run: str, runs: Runs = Path("runs"), as_json: Json = False) -> None:
    """One run: spec and result."""
    found = Store(runs).find(run)
    if as_json:
        print(json.dumps({"spec": found.spec.tree(), "result": found.result if found.done else None}))
        return
    tables.out.print((found.path / "spec.yaml").read_text(), highlight=False)
    if not found.done:
        tables.out.print("not finished: start the same training again to finish it")
        return
    tables.result(found)


@runs_app.command("rm")
def runs_rm(run: Annotated[list[str], typer.Argument()], runs: Runs = Path("runs")) -> None:
    """Remove runs."""
    store = Store(runs)
    for found in [store.find(name) for name in run]:
        store.remove(found)
        tables.out.print(f"removed {found.hash}", highlight=False)
