"""`nearkin choose`: which loss for my images?"""

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli.options import Ray, Runs, runs_option
from nearkin.cli.screen import say
from nearkin.cli.train import resumable
from nearkin.config.parse import parse_words
from nearkin.runs.store import Store


def choose_command(
    words: Annotated[list[str], typer.Argument(help="key=value words, such as dataset=folder root=my_images.")],
    minutes: Annotated[float, typer.Option("--minutes", help="How long it may take.")] = 30.0,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Runs at a time; default: one per core, 8 at most.")
    ] = None,
    ray: Ray = None,
    runs: Runs = Path("runs"),
) -> None:
    """Screen losses on your images, train the best for real, test the winner once. Interrupted, it goes on."""
    from nearkin.studies.executors import executor_of
    from nearkin.tuning import verdict
    from nearkin.tuning.choose import Choice

    began = time.monotonic()  # a cluster takes its time to begin, too
    count = workers or min(os.cpu_count() or 1, 8)

    def note(text: str) -> None:
        say(text, error=True)

    with resumable(), executor_of(count if ray is None else workers, ray) as executor:
        choice = Choice(parse_words(words), minutes, Store(runs), executor.workers, note, began=began)
        say(*choice.said, error=True)
        choice.run(executor)
    say(verdict.table(choice), *verdict.sentences(choice), f"the run: {choice.winning_run.path}")
    say(f"next: nearkin report {choice.winning_run.hash}{runs_option(runs)} -o report.html")
