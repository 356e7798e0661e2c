"""`nearkin runs`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli import tables
from nearkin.cli.options import Json, Runs
from nearkin.config.parse import parse_words
from nearkin.errors import NearkinError
from nearkin.runs import listing
from nearkin.runs.store import Run, Store
from nearkin.runs.verify import unverified, verify

runs_app = typer.Typer(no_args_is_help=True, help="Look at stored runs.")


@runs_app.command("list")
def runs_list(
    runs: Runs = Path("runs"),
    where: Annotated[list[str] | None, typer.Option("--where", help="key=value, as in loss=margin.")] = None,
    sort: Annotated[str | None, typer.Option("--sort", help="A column, as in map_at_r.")] = None,
    as_json: Json = False,
) -> None:
    """All stored runs, or those that fit."""
    stored = {run.hash: run for run in Store(runs).runs()}
    rows = listing.select([listing.row(run) for run in stored.values()], parse_words(where or []), sort)
    if as_json:
        for row in rows:
            run = stored[row["run"]]
            del row["words"]
            row |= {"hash": run.hash, "done": row["state"] in ("tested", "trial"), "verified": _is_listed(run)}
            row["result"] = run.result if row["state"] == "tested" else None
        print(json.dumps(rows))
    elif rows:
        tables.out.print(tables.runs_table(rows))
        if bare := sum(not _is_listed(stored[row["run"]]) for row in rows):
            say(f"{bare} of {len(rows)} runs are unverified: they were stored without checksums")
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
    tables.out.print((found.path / "spec.yaml").read_text(), highlight=False)
    if not found.final:
        tables.out.print("not finished: start the same training again to finish it")
        return
    final = found.read_json("final.json")
    if outside := [*final.get("modules", ()), *final.get("packages", ())]:
        say(f"in its name, from outside nearkin: {', '.join(outside)}")
    if not _is_listed(found):
        say(unverified(found))
    tables.result(found)


@runs_app.command("verify")
def runs_verify(
    run: Annotated[list[str] | None, typer.Argument(help="Runs: path, hash or its beginning. None: all.")] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Read the large files too, not their size alone.")] = False,
    runs: Runs = Path("runs"),
    as_json: Json = False,
) -> None:
    """Compare the files of runs with their checksums; exit code 1 if a file is missing, truncated or altered."""
    store = Store(runs)
    looked_at = [verify(each, deep=deep) for each in ([store.find(name) for name in run] if run else store.runs())]
    damaged = [one for one in looked_at if one.problems]
    if as_json:
        print(
            json.dumps(
                [
                    {"run": one.run.hash, "listed": one.listed, "problems": one.problems, "notes": one.notes}
                    for one in looked_at
                ]
            )
        )
    else:
        for one in looked_at:
            for line in (*(f"damaged: {problem}" for problem in one.problems), *one.notes):
                say(f"{one.run.hash}  {line}")
        good = [one for one in looked_at if not one.problems]
        bare = sum(not one.listed for one in good)
        how = "every byte" if deep else "small files by content, large ones by size; --deep reads them too"
        counts = f"{len(good) - bare} as stored ({how}), {bare} without checksums, {len(damaged)} damaged"
        say(f"{len(looked_at)} runs: {counts}")
    if damaged:
        raise typer.Exit(1)


@runs_app.command("rm")
def runs_rm(
    run: Annotated[list[str] | None, typer.Argument(help="Runs: path, hash or the beginning of a hash.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    purge: Annotated[bool, typer.Option("--purge", help="Delete for good what was removed.")] = False,
    runs: Runs = Path("runs"),
) -> None:
    """Move runs to the trash of their store; asks first. --purge empties it."""
    store = Store(runs)
    if not run and not purge:
        raise NearkinError("which run? Name it by path, hash or the beginning of a hash; --purge empties the trash")
    named = list({each.path: each for each in (store.find(name) for name in run or ())}.values())
    for each in named:
        store.check_removable(each)
    for each in named:
        say(f"{each.hash}  {listing.title(each)}")
    which = "this run" if len(named) == 1 else f"these {len(named)} runs"
    if named and not yes and not typer.confirm(f"Remove {which}?"):
        raise typer.Exit(1)
    for each in named:
        store.remove(each)
        say(f"removed {each.hash}" + ("" if purge else f"; it lies in {store.trash} until nearkin runs rm --purge"))
    if purge:
        number = len(store.removed())
        if number and not yes and not typer.confirm(f"Delete {number} removed run{'s' * (number > 1)} for good?"):
            raise typer.Exit(1)
        say(f"deleted {store.purge()} removed runs for good")


def say(line: str) -> None:
    """A line as it is, however long."""
    tables.out.print(line, highlight=False, soft_wrap=True)


def _is_listed(run: Run) -> bool:
    """Has it checksums? Of one whose list is damaged its state tells that."""
    try:
        return run.sums() is not None
    except NearkinError:
        return True
