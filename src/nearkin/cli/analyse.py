"""`nearkin analyse`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from nearkin.cli import tables
from nearkin.cli.options import Json, Runs, Trust
from nearkin.errors import NearkinError
from nearkin.registry import ANALYSES


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
    from nearkin.analysis.perform import perform, perform_on_files, subjects

    chosen = [ANALYSES[word.strip()] for word in what.split(",") if word.strip()]
    if not chosen:
        raise NearkinError(f"analyse {what!r}: which analysis? choices: {', '.join(ANALYSES.names())}")
    given = options(images, every, seed, pair)
    if unknown := sorted(set(given) - set().union(*(analysis.takes() for analysis in chosen))):
        raise NearkinError(f"analysis {what} takes no --{unknown[0]}")
    for analysis in chosen:
        if not names and analysis.needs_runs:
            raise NearkinError(f"analyse {analysis.name}: name a run, a study, or a folder of runs")
    files = [Path(name) for name in names or [] if name.endswith((".npz", ".parquet"))]
    if files and len(files) < len(names or []):
        raise NearkinError(f"{files[0]} is a file of embeddings, {names[0] if names else ''} is none: one or the other")
    gathered = subjects(names, runs) if names and not files else None
    told, written = {}, []
    for analysis in chosen:
        own = {name: value for name, value in given.items() if name in analysis.takes()}
        if files:
            done = perform_on_files(analysis, files, output)
        else:
            done = perform(analysis, gathered, own, runs=runs, output=output)
        told[analysis.name] = done.told
        written += done.files
        if not as_json:
            for sheet in done.sheets().values():
                tables.sheet(sheet)
    if as_json:
        print(json.dumps(told if len(chosen) > 1 else told[chosen[0].name]))
        return
    for folder in dict.fromkeys(path.parent for path in written):
        inside = ", ".join(path.name for path in written if path.parent == folder)
        tables.out.print(f"stored: {inside} in {folder}", highlight=False, soft_wrap=True)


def options(images: int | None, every: bool, seed: int | None, pair: str | None) -> dict[str, Any]:
    """What was asked for, as keyword arguments of an analysis; what was not is left to its defaults."""
    found: dict[str, Any] = {}
    if images is not None and every:
        raise NearkinError(f"--images {images} and --all: one of the two")
    if images is not None and images < 1:
        raise NearkinError(f"--images {images}: at least 1")
    if images is not None or every:
        found["images"] = images
    if seed is not None:
        found["seed"] = seed
    if pair is not None:
        words = pair.split(",")
        if len(words) != 2 or not all(word.strip().isdigit() for word in words):
            raise NearkinError(f"--pair {pair}: two rows, such as 4000,4001")
        found["pair"] = (int(words[0]), int(words[1]))
    return found
