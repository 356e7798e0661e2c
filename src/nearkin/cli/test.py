"""`nearkin test`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli import tables
from nearkin.cli.evaluate import numbers
from nearkin.cli.options import Json, Runs, Trust
from nearkin.runs.store import Store
from nearkin.runs.test import test


def test_command(
    run: Annotated[list[str], typer.Argument(help="Final runs: path, hash or the beginning of a hash.")],
    metrics: Annotated[str | None, typer.Option(help="As in nmi,f1,map@1000,recall@100: nearkin list metrics.")] = None,
    k: Annotated[str | None, typer.Option("--k", help="k of Recall@k; default: the data set's customary ones.")] = None,
    distance: Annotated[str, typer.Option(help="cosine, euclid (raw vectors) or snr.")] = "cosine",
    root: Annotated[Path | None, typer.Option("--root", help="Where the data lie now, if they were moved.")] = None,
    runs: Runs = Path("runs"),
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Test final runs, or test them again with other metrics: from stored embeddings, nothing is trained."""
    names = [name.strip() for name in metrics.split(",")] if metrics else None
    store = Store(runs)
    found = {each: store.find(each) for each in run}
    results = {r.hash: test(r, metrics=names, k=numbers(k), distance=distance, root=root) for r in found.values()}
    if as_json:
        print(json.dumps(results))
        return
    keys = list(dict.fromkeys(key for result in results.values() for key in result))
    rows = [[key, *(tables.number(key, result.get(key)) for result in results.values())] for key in keys]
    tables.out.print(tables.table(f"test, {distance}", {"metric": "left", **dict.fromkeys(results, "right")}, rows))
    for opened in {r.head()["split_hash"]: store.openings() for r in found.values()}.items():
        split, counts = opened
        tables.out.print(f"test split {split} was opened {counts.get(split, 0)} times in {runs}/", highlight=False)
