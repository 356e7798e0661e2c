"""`nearkin choose`: which loss for my images?"""

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli import tables
from nearkin.cli.options import Ray, Runs, executor_of
from nearkin.cli.train import resumable
from nearkin.config.parse import parse_words
from nearkin.runs.store import Store


def choose_command(
    words: Annotated[list[str], typer.Argument(help="key=value words, as dataset=folder root=my_images.")],
    minutes: Annotated[float, typer.Option("--minutes", help="How long it may take.")] = 30.0,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Runs at a time; default: one per core, 8 at most.")
    ] = None,
    ray: Ray = None,
    runs: Runs = Path("runs"),
) -> None:
    """Screen losses on your images, train the best for real, test the winner once. Interrupted, it goes on."""
    from nearkin.tuning import verdict
    from nearkin.tuning.choose import Choice

    began = time.monotonic()  # a cluster takes its time to begin, too
    count = workers or min(os.cpu_count() or 1, 8)

    def say(text: str) -> None:
        tables.err.print(text, highlight=False, soft_wrap=True)

    with resumable(), executor_of(count if ray is None else workers, ray) as executor:
        choice = Choice(parse_words(words), minutes, Store(runs), executor.workers, say, began=began)
        for line in choice.said:
            say(line)
        choice.run(executor)
    tables.sheet(verdict.table(choice))
    for sentence in verdict.sentences(choice):
        tables.out.print(sentence, highlight=False, soft_wrap=True)
    where = "" if runs == Path("runs") else f" --runs {runs}"
    run = choice.winning_run.hash
    tables.out.print(f"the run: {choice.winning_run.path}", highlight=False, soft_wrap=True)
    tables.out.print(f"next: nearkin report {run}{where} -o report.html", highlight=False, soft_wrap=True)
