"""Options that several commands share."""

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearkin.consent import trust_all

if TYPE_CHECKING:
    from nearkin.comparison.sheet import Sheet
    from nearkin.studies.scheduler import Executor

Runs = Annotated[Path, typer.Option("--runs", help="Folder of the stored runs.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Csv = Annotated[Path | None, typer.Option("--csv", help="Write the tables as CSV: FILE, FILE-NAME.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", help="Write the tables as Markdown.")]
Latex = Annotated[Path | None, typer.Option("--latex", help="Write the tables as LaTeX.")]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Runs at a time, one thread each; 1, or all that Ray has.")
]
Ray = Annotated[
    str | None, typer.Option("--ray", metavar="[ADDRESS]", help="On a Ray cluster: HOST:PORT; alone: the local one.")
]


def trust_stored(trusted: bool) -> None:
    """`--trust`: import what stored runs name by import paths."""
    if trusted:
        trust_all()


Trust = Annotated[
    bool, typer.Option("--trust", callback=trust_stored, help="Import the code that the run names, if it names any.")
]


def executor_of(workers: int | None, ray: str | None) -> "Executor":
    """Where the runs of a command are carried out: in processes of this machine, or by Ray."""
    if ray is None:
        from nearkin.studies.local import LocalProcesses

        return LocalProcesses(workers or 1)
    from nearkin.cli import tables
    from nearkin.studies.ray import RayExecutor

    return RayExecutor(workers, ray, say=lambda line: tables.err.print(line, highlight=False, soft_wrap=True))


def with_address(words: Sequence[str]) -> list[str]:
    """The words of a command, with `auto` after a `--ray` that no address follows: an option takes a value or none."""
    told = []
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        told.append(word)
        if word == "--ray" and not re.fullmatch(r"auto|[^=]+:.*", following):
            told.append("auto")
    return told


def write_tables(
    sheets: "Mapping[str, Sheet]", *, csv: Path | None = None, markdown: Path | None = None, latex: Path | None = None
) -> list[Path]:
    """Write tables under the names that were asked for: one table as FILE, several as FILE and FILE-NAME."""
    targets = [(path, end) for path, end in ((csv, ".csv"), (markdown, ".md"), (latex, ".tex")) if path is not None]
    if not targets:
        return []
    from nearkin.storage import check_writable  # here: most commands print only, and should begin at once
    from nearkin.studies.export import write_table

    files = []
    for path, ending in targets:
        for i, (name, sheet) in enumerate(sheets.items()):
            stem = path.stem if i == 0 else f"{path.stem}-{name}"
            file = path.with_name(f"{stem}{ending}")
            check_writable(file)
            write_table(file, sheet.header, sheet.rows, sheet.numbers, sheet.notes)
            files.append(file)
    return files
