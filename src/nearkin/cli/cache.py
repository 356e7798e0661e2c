"""`nearkin cache`."""

import json
import time
from typing import Annotated

import typer

from nearkin.cache import CacheEntry, cache_dir, cached, discard, to_evict
from nearkin.cli import tables
from nearkin.cli.options import Json
from nearkin.units import AGE, BYTES

cache_app = typer.Typer(
    no_args_is_help=True,
    help="Look at images and features that are kept, and clear them.",
    epilog="NEARKIN_CACHE=DIR puts them elsewhere, NEARKIN_CACHE_LIMIT=50 keeps 50 GB.",
)


@cache_app.command("list")
def cache_list(as_json: Json = False) -> None:
    """What is kept, how large it is, and when it was last used."""
    found = cached()
    if as_json:
        print(json.dumps([{**vars(each), "path": str(each.path)} for each in found]))
        return
    rows = [[*_told(each), BYTES.text(each.size), AGE.text(time.time() - each.used)] for each in found]
    title = f"{cache_dir()}: {BYTES.text(sum(each.size for each in found))}; all of it can be made again"
    tables.out.print(tables.table(title, {"kind": "left", "what": "left", "size": "right", "last used": "right"}, rows))


def _told(entry: CacheEntry) -> tuple[str, str]:
    return f"{entry.kind}, unfinished" if entry.unfinished else entry.kind, entry.name


def _counted(entries: list[CacheEntry]) -> str:
    return f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"


@cache_app.command("clear")
def cache_clear(
    older: Annotated[float, typer.Option("--older", help="Only what was not used for so many days.", min=0)] = 0.0,
    limit: Annotated[float | None, typer.Option("--limit", help="Keep so many GB, the last used.", min=0)] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove what is kept; it is made again when it is needed."""
    gone = [each for each in cached() if time.time() - each.used >= older * 86400]
    if limit is not None:
        gone = to_evict(gone, limit * 1e9)
    if not gone:
        tables.out.print("nothing to clear", highlight=False)
        return
    size = BYTES.text(sum(each.size for each in gone))
    if not yes and not typer.confirm(f"Remove {len(gone)} of {len(cached())} entries, {size}, from {cache_dir()}?"):
        raise typer.Exit(1)
    removed = [each for each in gone if discard(each)]
    stay = [each for each in gone if each.path.exists()]
    words = f"removed {_counted(removed)}, {BYTES.text(sum(each.size for each in removed))}"
    if stay:
        words += f"; kept {_counted(stay)} that a process is making"
    tables.out.print(words, highlight=False)
