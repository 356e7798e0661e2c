"""`nearkin data`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import nearkin
from nearkin.cli.options import Json, Runs
from nearkin.cli.screen import say, say_exactly, say_json, say_written
from nearkin.config.parse import parse_words
from nearkin.data import Table
from nearkin.data.exclude import listed
from nearkin.errors import NearkinError
from nearkin.registry import DATASETS
from nearkin.storage import atomic
from nearkin.units import counted

data_app = typer.Typer(no_args_is_help=True, help="Look at data sets.")

Name = Annotated[str, typer.Argument(help="Name of the data set, or of its adapter.")]
Root = Annotated[Path | None, typer.Option("--root", help="Its folder or file.")]
Words = Annotated[
    list[str] | None, typer.Argument(help="Settings of the data set as key=value, as in data.classes_from=top.")
]
Exclude = Annotated[Path | None, typer.Option("--exclude", help="A list of images to leave out, as in data.exclude.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="The file to write the list to; by default it is printed.")
]


@data_app.command("verify")
def verify_command(
    name: Name, words: Words = None, root: Root = None, exclude: Exclude = None, as_json: Json = False
) -> None:
    """Count, compare with the official counts, open every image; exit code 1 when something is wrong."""
    table = _table(name, root, words)
    if exclude is not None:
        table = nearkin.data.exclude(table, exclude)
    report = nearkin.data.verify(table, getattr(DATASETS[name], "official", None))
    say_json(report.to_dict()) if as_json else say(report)
    if not report.ok:
        raise typer.Exit(1)


@data_app.command("show")
def show_command(
    data: Annotated[
        list[str],
        typer.Argument(metavar="DATA...", help="Data sets by name, folders, root.NAME=DIR; then key=value words."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder that sheets of samples are written to (PNG, SVG).")
    ] = Path("samples"),
    as_json: Json = False,
    runs: Runs = Path("runs"),
) -> None:
    """Draw sample images; tell counts, sizes and how hard the data are for the untrained network.

    nearkin data show my_images

    nearkin data show root.cub=CUB_200_2011 root.cars196=cars

    The untrained network is a stored run. The first look at many images takes as long as embedding them does.
    """
    names = [word for word in data if "=" not in word or Path(word).exists()]
    shown = nearkin.show_data(*names, runs=runs, **parse_words([word for word in data if word not in names]))
    say_json({table.name: table.records() for table in shown.tables}) if as_json else say(shown)
    say_written(shown.save(output))


@data_app.command("dedupe")
def dedupe_command(
    name: Name, words: Words = None, root: Root = None, output: Output = None, as_json: Json = False
) -> None:
    """List the images to leave out so that no two are copies, for data.exclude=FILE. Nothing is deleted.

    Copies are equal files, and images that were saved again in another quality, format or size. Of copies in one class
    the largest stays. Of copies in several classes none stays: nobody knows which class is right.
    """
    groups = nearkin.data.dedupe(_table(name, root, words))
    paths = [path for group in groups for path in group.left_out]
    if output is not None:
        _write(output, listed(groups))
    if as_json:
        say_json({"exclude": paths, "groups": [asdict(group) for group in groups]})
    elif output is None:
        say_exactly(listed(groups))
    else:
        say(f"{counted(len(paths), 'image')} to leave out, with data.exclude={output}")


@data_app.command("split")
def split_command(
    words: Annotated[list[str], typer.Argument(help="key=value words, such as dataset=cub root=DIR protocol=mlrc.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The JSON file to write the rows to.")] = None,
    as_json: Json = False,
) -> None:
    """Who trains, validates and is tested, and the hash of that; -o writes the rows, for protocol=file."""
    from nearkin.runs.defaults import resolve
    from nearkin.runs.prepare import make_split, read_table

    spec = resolve(nearkin.make_spec(parse_words(words)))
    table = read_table(spec.data)
    split = make_split(spec, table)
    text = nearkin.protocols.write_split(split, table, spec.protocol.name)
    if output is not None:
        _write(output, text)
    if as_json:
        say_exactly(text)
    else:
        say(split.describe(table))
        if output is not None:
            say(f"rows: {output}, for protocol=file protocol.path={output}")


def _table(name: str, root: Path | None, words: list[str] | None) -> Table:
    """The table of a data set, with its settings as words."""
    settings = {key.removeprefix("data."): value for key, value in parse_words(words or []).items()}
    return nearkin.data.load_table(name, root, **settings)


def _write(file: Path, text: str) -> None:
    """Write a list; a file that holds anything else is never overwritten."""
    content = text.encode("utf-8", errors="surrogateescape")
    if file.is_dir():
        raise NearkinError(f"-o {file} is a folder; name a file")
    if file.exists():
        if file.read_bytes() != content:
            raise NearkinError(f"-o {file} exists and holds something else; remove it, or name another file")
        return
    with atomic(file) as scratch:
        (scratch / file.name).write_bytes(content)
