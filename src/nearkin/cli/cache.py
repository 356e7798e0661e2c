"""`nearkin cache`."""

import time
from typing import Annotated

import typer

from nearkin.cache import cache_dir, cached, discard, to_evict
from nearkin.cli.options import Json
from nearkin.cli.screen import say, say_json
from nearkin.units import AGE, BYTES, counted

cache_app = typer.Typer(
    no_args_is_help=True,
    help="Look at images and features that are kept, and clear them.",
    epilog="NEARKIN_CACHE=DIR puts them elsewhere, NEARKIN_CACHE_LIMIT=50 keeps 50 GB.",
)


@cache_app.command("list")
def cache_list(as_json: Json = False) -> None:
    """What is kept, how large it is, and when it was last used."""
    from nearkin.present import Column, Table

    entries = cached()
    if as_json:
        say_json([{**vars(entry), "path": str(entry.path)} for entry in entries])
        return
    rows = [
        [f"{e.kind}, unfinished" if e.unfinished else e.kind, e.name, e.size, time.time() - e.used] for e in entries
    ]
    title = f"{cache_dir()}: {BYTES.text(sum(entry.size for entry in entries))}; all of it can be made again"
    columns = ["kind", "what", Column("size", unit=BYTES), Column("last used", unit=AGE)]
    say(Table("cache", columns, rows, title))


@cache_app.command("clear")
def cache_clear(
    older: Annotated[
        float, typer.Option("--older", help="Remove only what was not used for this many days.", min=0)
    ] = 0.0,
    limit: Annotated[
        float | None, typer.Option("--limit", help="Keep this many GB, the most recently used.", min=0)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove what is kept; it is made again when it is needed."""
    entries = cached()
    gone = [entry for entry in entries if time.time() - entry.used >= older * 86400]
    if limit is not None:
        gone = to_evict(gone, limit * 1e9)
    if not gone:
        say("nothing to clear")
        return
    size = BYTES.text(sum(entry.size for entry in gone))
    if not yes and not typer.confirm(f"Remove {len(gone)} of {len(entries)} entries, {size}, from {cache_dir()}?"):
        raise typer.Exit(1)
    removed = [entry for entry in gone if discard(entry)]
    stay = sum(entry.path.exists() for entry in gone)
    words = f"removed {counted(len(removed), 'entry', 'entries')}, {BYTES.text(sum(entry.size for entry in removed))}"
    say(f"{words}; kept {counted(stay, 'entry', 'entries')} that a process is making" if stay else words)
