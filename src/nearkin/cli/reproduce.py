"""`nearkin reproduce`."""

from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli import tables
from nearkin.cli.options import Runs, Trust
from nearkin.cli.train import resumable
from nearkin.runs.watching import training_bar


def reproduce_command(
    run: Annotated[str, typer.Argument(help="A run: its hash, the beginning of it, or its folder.")],
    runs: Runs = Path("runs"),
    trust: Trust = False,
) -> None:
    """Train a stored run again and compare: bits on the same machine, metrics elsewhere; exit code 1 if it differs."""
    from nearkin.runs.reproduce import TOLERANCE, reproduce

    with resumable(), training_bar(tables.err, quiet=False) as watch:
        found = reproduce(run, runs=runs, watch=watch)
    rows = [
        [key, tables.number(key, then), tables.number(key, now), f"{now - then:+.2g}" if now != then else "0"]
        for key, (then, now) in found.metrics.items()
    ]
    columns = {"metric": "left", "stored": "right", "again": "right", "difference": "right"}
    tables.out.print(tables.table(f"run {found.run.hash} and the same trained again", columns, rows))
    if found.same_bits and not found.same_metrics:
        verdict = (
            "not reproduced: the same weights and embeddings, but a metric differs by "
            f"{100 * found.largest:.2f} points: the stored result is not that of its embeddings"
        )
    elif found.same_bits:
        verdict = "reproduced: every weight and every test embedding is the same, bit for bit"
    elif found.ok:
        verdict = f"reproduced: no metric differs by more than {100 * TOLERANCE:.0f} point"
    elif found.differs:
        apart = f"{100 * found.largest:.2f} points, more than {100 * TOLERANCE:.0f}"
        verdict = f"not reproduced: a metric differs by {apart}"
    else:
        verdict = "not reproduced: same machine and versions, other bits"
    lines = [verdict, *(f"{key} was {then}, is {now}" for key, (then, now) in found.differs.items())]
    if found.lacking:
        lines.append(f"not compared, because it could not be measured again: {', '.join(found.lacking)}")
    for line in (*lines, f"stored: {found.again.path}"):
        tables.out.print(line, highlight=False, soft_wrap=True)
    if not found.ok:
        raise typer.Exit(1)
