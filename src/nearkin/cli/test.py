"""`nearkin test`."""

from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli.evaluate import numbers
from nearkin.cli.options import Json, Runs, Trust, words_of
from nearkin.cli.screen import say, say_json
from nearkin.units import counted


def test_command(
    run: Annotated[list[str], typer.Argument(help="Final runs: path, hash or the beginning of a hash.")],
    metrics: Annotated[
        str | None, typer.Option(help="Such as nmi,f1,map@1000,recall@100 (nearkin list metrics).")
    ] = None,
    k: Annotated[str | None, typer.Option("--k", help="k of Recall@k; default: the data set's customary ones.")] = None,
    distance: Annotated[str, typer.Option(help="cosine, euclid (raw vectors) or snr.")] = "cosine",
    root: Annotated[Path | None, typer.Option("--root", help="Where the data are now, if they were moved.")] = None,
    runs: Runs = Path("runs"),
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Test final runs, or test them again with other metrics: from stored embeddings, nothing is trained."""
    from nearkin.runs.result import tests_table
    from nearkin.runs.store import Store
    from nearkin.runs.test import test

    store = Store(runs)
    chosen = list({name: store.find(name) for name in run}.values())
    results = {r.hash: test(r, metrics=words_of(metrics), k=numbers(k), distance=distance, root=root) for r in chosen}
    if as_json:
        say_json(results)
        return
    say(tests_table(results, distance))
    for split in dict.fromkeys(stored.head()["split_hash"] for stored in chosen):
        say(f"test split {split} was opened {counted(store.openings().get(split, 0), 'time')} in {runs}/")
