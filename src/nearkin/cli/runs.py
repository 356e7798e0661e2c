"""`nearkin runs`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli import tables
from nearkin.cli.options import Json, Runs
from nearkin.config.parse import parse_words
from nearkin.runs import listing
from nearkin.runs.store import Store

runs_app = typer.Typer(no_args_is_help=True, help="Look at stored runs.")


@runs_app.command("list")
def runs_list(
    runs: Runs = Path("runs"),
    where: Annotated[list[str] | None, typer.Option("--where", help="key=value, as in loss=margin.")] = None,
    sort: Annotated[str | None, typer.Option("--sort", help="A column, as in map_at_r.")] = None,
    as_json: Json = False,
) -> None:
    """All stored runs, or those that fit."""
    store = Store(runs)
    rows = listing.select([listing.row(run) for run in store.runs()], parse_words(where or []), sort)
    if as_json:
        stored = {run.hash: run for run in store.runs()}
        for each in rows:
            del each["words"]
            each |= {"hash": each["run"], "done": each["state"] in ("tested", "trial")}
            each["result"] = stored[each["run"]].result if each["state"] == "tested" else None
        print(json.dumps(rows))
    elif rows:
        tables.out.print(tables.runs_table(rows))
    else:
        tables.out.print(f"no runs in {runs}" if not where else f"no such runs in {runs}", highlight=False)


@runs_app.command("show")
def runs_show(run: str, runs: Runs = Path("runs"), as_json: Json = False) -> None:
    """One run: spec and result."""
    found = Store(runs).find(run)
    stored = found.stored
    if as_json:
        print(json.dumps({"spec": stored, "result": found.result if found.tested else None}))
        return
    tables.out.print((found.path / "spec.yaml").read_text(), highlight=False, markup=False)
    if not found.final:
        tables.out.print("not finished: start the same training again to finish it")
        return
    tables.result(found)


@runs_app.command("rm")
def runs_rm(
    run: Annotated[list[str], typer.Argument(help="Runs: path, hash or the beginning of a hash.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    runs: Runs = Path("runs"),
) -> None:
    """Remove runs, for good; asks first."""
    store = Store(runs)
    found = list({each.path: each for each in (store.find(name) for name in run)}.values())
    for each in found:
        tables.out.print(f"{each.hash}  {listing.title(each)}", highlight=False, markup=False, soft_wrap=True)
    which = "this run" if len(found) == 1 else f"these {len(found)} runs"
    if not yes and not typer.confirm(f"Remove {which} for good?"):
        raise typer.Exit(1)
    for each in found:
        store.remove(each)
        tables.out.print(f"removed {each.hash}", highlight=False)
