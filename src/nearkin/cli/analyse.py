"""`nearkin analyse`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from nearkin.cli.options import Json, Runs, Trust, Where
from nearkin.cli.screen import say, say_json
from nearkin.errors import NearkinError


def analyse_command(
    what: Annotated[str, typer.Argument(help="Analyses (nearkin list analyses), separated by commas.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="A study (its name or file), a folder of runs, runs (hashes, paths), or "
            "files of embeddings (.npz, .parquet)."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Another folder for the results, which are also stored with the runs."),
    ] = None,
    images: Annotated[
        int | None, typer.Option("--images", help="How many test images to look at, spread evenly over the classes.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Look at all test images.")] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Random seed for the choice of images and the noise.")
    ] = None,
    pair: Annotated[
        str | None,
        typer.Option("--pair", help="Two test images by their rows in the data, such as 4000,4001 (activation)."),
    ] = None,
    where: Where = None,
    runs: Runs = Path("runs"),
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Look into what runs have learned: tables, and numbers and figures as files."""
    from nearkin.analysis import analyse

    settings = options(images, every, seed, pair)
    result = analyse(what, *(names or []), runs=runs, where=where or (), output=output, **settings)
    if as_json:
        say_json(result.numbers)
    else:
        say(result)


def options(images: int | None, every: bool, seed: int | None, pair: str | None) -> dict[str, Any]:
    """What was asked for, as keyword arguments of an analysis; what was not is left to its defaults."""
    given: dict[str, Any] = {}
    if images is not None and every:
        raise NearkinError(f"--images {images} and --all: give one of the two")
    if images is not None or every:
        given["images"] = images
    if seed is not None:
        given["seed"] = seed
    if pair is not None:
        words = pair.split(",")
        if len(words) != 2 or not all(word.strip().isdigit() for word in words):
            raise NearkinError(f"--pair {pair}: two rows, such as 4000,4001")
        given["pair"] = (int(words[0]), int(words[1]))
    return given
