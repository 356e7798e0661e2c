"""`nearkin fit`: the best model for one's own images."""

from pathlib import Path
from typing import Annotated

import typer

import nearkin
from nearkin.cli.options import Ray, Runs, runs_option
from nearkin.cli.screen import say
from nearkin.cli.train import resumable


def fit_command(
    images: Annotated[
        list[str],
        typer.Argument(help="A folder with one folder per class, or dataset=NAME root=DIR; then key=value words."),
    ],
    minutes: Annotated[float, typer.Option("--minutes", help="How long it may take.")] = 30.0,
    losses: Annotated[
        str, typer.Option("--losses", help="Losses to compare, as triplet,margin; default: the recipe's, then others.")
    ] = "",
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Runs at a time; default: one per core, 8 at most.")
    ] = None,
    ray: Ray = None,
    runs: Runs = Path("runs"),
) -> None:
    """The best model for your images, and what it is worth on classes it has never seen. Interrupted, it goes on."""
    from nearkin.config.parse import parse_words

    folder = images[0] if "=" not in images[0] or Path(images[0]).exists() else None
    words = parse_words(images if folder is None else images[1:])
    with resumable():
        fitted = nearkin.fit(
            words if folder is None else {"dataset": "folder", "root": folder, **words},
            minutes=minutes,
            losses=[name for name in losses.split(",") if name],
            runs=runs,
            workers=workers,
            ray=ray,
            say=lambda line: say(line, error=True),
        )
    model = f"{fitted.run.hash}{runs_option(runs)}"
    say(fitted, f"its page: nearkin report {model}", f"next: nearkin embed {model} IMAGES -o emb.npz")
