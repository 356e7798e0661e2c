"""`nearkin runs`."""

from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli.flags import in_flags
from nearkin.cli.options import Json, Runs, Trust
from nearkin.cli.screen import err, say, say_json
from nearkin.errors import NearkinError
from nearkin.runs import listing
from nearkin.runs.store import Store
from nearkin.units import counted

runs_app = typer.Typer(no_args_is_help=True, help="Look at stored runs.")
Run = Annotated[str, typer.Argument(help="A run: its hash, the beginning of its hash, or its folder.")]


@runs_app.command("list")
def runs_list(
    runs: Runs = Path("runs"),
    where: Annotated[list[str] | None, typer.Option("--where", help="key=value, such as loss=margin.")] = None,
    sort: Annotated[str | None, typer.Option("--sort", help="A column, such as map_at_r.")] = None,
    as_json: Json = False,
) -> None:
    """All stored runs, or those that fit."""
    listed = listing.find_runs(runs, where=where or (), sort=sort)
    say_json(listed.to_dicts()) if as_json else say(listed)


@runs_app.command("show")
def runs_show(run: Run, runs: Runs = Path("runs"), as_json: Json = False) -> None:
    """One run: spec and result."""
    from nearkin.runs.result import Result
    from nearkin.runs.verify import unverified

    stored = Store(runs).find(run)
    spec = stored.stored  # a damaged one is refused here
    if as_json:
        say_json({"spec": spec, "result": stored.result if stored.tested else None})
        return
    say((stored.path / "spec.yaml").read_text())
    if not stored.final:
        say("not finished: start the same training again to finish it")
        return
    final = stored.read_json("final.json")
    if outside := [*final.get("modules", ()), *final.get("packages", ())]:
        say(f"part of its hash, from outside nearkin: {', '.join(outside)}")
    if not listing.has_checksums(stored):
        say(unverified(stored))
    say(Result(stored))


@runs_app.command("verify")
def runs_verify(
    run: Annotated[
        list[str] | None, typer.Argument(help="Runs: path, hash or the beginning of a hash; default: all.")
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read the large files too, instead of checking only their size.")
    ] = False,
    runs: Runs = Path("runs"),
    as_json: Json = False,
) -> None:
    """Compare the files of runs with their checksums; exit code 1 if a file is missing, truncated or altered."""
    from nearkin.runs.verify import summary, verify

    store = Store(runs)
    looked_at = [verify(stored, deep=deep) for stored in ([store.find(name) for name in run] if run else store.runs())]
    if as_json:
        say_json([{**vars(one), "run": one.run.hash} for one in looked_at])
    else:
        say(*map(in_flags, summary(looked_at, deep=deep)))
    if any(one.problems for one in looked_at):
        raise typer.Exit(1)


@runs_app.command("reproduce")
def runs_reproduce(run: Run, runs: Runs = Path("runs"), trust: Trust = False) -> None:
    """Train a stored run again and compare: bits on the same machine, metrics elsewhere; exit code 1 if it differs."""
    from nearkin.cli.train import resumable
    from nearkin.runs.reproduce import reproduce
    from nearkin.runs.training_bar import training_bar

    with resumable(), training_bar(err) as watch:
        reproduced = reproduce(run, runs=runs, watch=watch)
    say(reproduced)
    if not reproduced.ok:
        raise typer.Exit(1)


@runs_app.command("rm")
def runs_rm(
    run: Annotated[list[str] | None, typer.Argument(help="Runs: path, hash or the beginning of a hash.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    purge: Annotated[bool, typer.Option("--purge", help="Permanently delete what was removed.")] = False,
    runs: Runs = Path("runs"),
) -> None:
    """Move runs to the trash of their store; asks first. --purge empties it."""
    store = Store(runs)
    if not run and not purge:
        raise NearkinError("which run? Name it by path, hash or the beginning of a hash; --purge empties the trash")
    named = list({stored.path: stored for stored in (store.find(name) for name in run or ())}.values())
    for stored in named:
        store.check_removable(stored)
    say(*(f"{stored.hash}  {listing.title(stored)}" for stored in named))
    which = "this run" if len(named) == 1 else f"these {len(named)} runs"
    if named and not yes and not typer.confirm(f"Remove {which}?"):
        raise typer.Exit(1)
    for stored in named:
        store.remove(stored)
        say(f"removed {stored.hash}" + ("" if purge else f"; it lies in {store.trash} until nearkin runs rm --purge"))
    if purge:
        number = len(store.removed())
        if number and not yes and not typer.confirm(f"Delete {counted(number, 'removed run')} for good?"):
            raise typer.Exit(1)
        say(f"deleted {counted(store.purge(), 'removed run')} permanently")
