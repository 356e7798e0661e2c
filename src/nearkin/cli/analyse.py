"""`nearkin analyse`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from nearkin.cli import tables
from nearkin.cli.options import Json, Runs, Trust
from nearkin.errors import NearkinError


def analyse_command(
    what: Annotated[str, typer.Argument(help="Analyses, as in `nearkin list analyses`; several as A,B.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="A study (its name or file), a folder of runs, runs (hashes, paths), or "
            "files of embeddings (.npz, .parquet)."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A further folder for results; they are kept with the runs.")
    ] = None,
    images: Annotated[
        int | None, typer.Option("--images", help="How many test images are looked at, of all classes alike.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Look at all test images.")] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Random seed for the choice of images and the noise.")
    ] = None,
    pair: Annotated[
        str | None, typer.Option("--pair", help="Two test images, by their rows in the data: 4000,4001 (activation).")
    ] = None,
    runs: Runs = Path("runs"),
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Look into what runs have learned: tables, and numbers and figures as files."""
    from nearkin.analysis import analyse

    result = analyse(names or [], what, runs=runs, output=output, **options(images, every, seed, pair))
    if as_json:
        print(json.dumps(result.numbers))
        return
    tables.out.print(*result.rich(), sep="\n")
    for line in result.places:
        tables.out.print(line, highlight=False, markup=False, soft_wrap=True)


def options(images: int | None, every: bool, seed: int | None, pair: str | None) -> dict[str, Any]:
    """What was asked for, as keyword arguments of an analysis; what was not is left to its defaults."""
    given: dict[str, Any] = {}
    if images is not None and every:
        raise NearkinError(f"--images {images} and --all: one of the two")
    if images is not None and images < 1:
        raise NearkinError(f"--images {images}: at least 1")
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
