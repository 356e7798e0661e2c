"""Options that several commands share."""

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearkin.consent import trust_all

if TYPE_CHECKING:
    from nearkin.present import Table

Runs = Annotated[Path, typer.Option("--runs", help="Folder of the stored runs.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Csv = Annotated[Path | None, typer.Option("--csv", help="Write the tables as CSV: FILE, FILE-NAME.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", help="Write the tables as Markdown.")]
Latex = Annotated[Path | None, typer.Option("--latex", help="Write the tables as LaTeX.")]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="KEY=VALUE", help="Only these runs, such as backbone=resnet50; may be repeated."),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Runs at a time, one thread each; default: 1, or all that Ray has."),
]
Ray = Annotated[
    str | None,
    typer.Option("--ray", metavar="[ADDRESS]", help="Run on a Ray cluster: HOST:PORT; without a value: the local one."),
]


def trust_stored(trusted: bool) -> None:
    """`--trust`: import what stored runs name by import paths."""
    if trusted:
        trust_all()


Trust = Annotated[
    bool, typer.Option("--trust", callback=trust_stored, help="Import the code that the run names, if it names any.")
]


def runs_option(runs: Path) -> str:
    """`--runs` for a command that is suggested, where it is needed."""
    return "" if runs == Path("runs") else f" --runs {runs}"


def words_of(text: str | None) -> list[str] | None:
    """Words between commas, as of --by or --metrics; None for none."""
    return [word.strip() for word in (text or "").split(",") if word.strip()] or None


def with_address(words: Sequence[str]) -> list[str]:
    """The words of a command, with `auto` after a `--ray` that no address follows: an option takes a value or none."""
    completed = []
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        completed.append(word)
        if word == "--ray" and not re.fullmatch(r"auto|[^=]+:.*", following):
            completed.append("auto")
    return completed


def write_tables(
    tables: "Mapping[str, Table]", *, csv: Path | None = None, markdown: Path | None = None, latex: Path | None = None
) -> list[Path]:
    """Write tables under the names that were asked for: one table as FILE, several as FILE and FILE-NAME."""
    targets = [(path, end) for path, end in ((csv, ".csv"), (markdown, ".md"), (latex, ".tex")) if path is not None]
    if not targets:
        return []
    from nearkin.storage import check_writable  # here: most commands print only, and should begin at once

    files = []
    for path, ending in targets:
        for i, (name, table) in enumerate(tables.items()):
            file = path.with_name(f"{path.stem if i == 0 else f'{path.stem}-{name}'}{ending}")
            check_writable(file)
            files.append(table.write(file))
    return files
