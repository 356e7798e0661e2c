"""`nearkin explain`."""

import json
from typing import Annotated

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from nearkin.cli import tables
from nearkin.cli.options import Json
from nearkin.config.catalogue import Catalogue, Entry, read_catalogue, shown
from nearkin.registry import PARTS


def explain_command(
    key: Annotated[str, typer.Argument(help="As in train.lr, dim, loss, loss.alpha, multi_similarity, train.")],
    as_json: Json = False,
) -> None:
    """What a setting means: default, source, choices, bounds; of a loss or another class, its formula too."""
    catalogue = read_catalogue()
    found = catalogue.explain(key)
    if as_json:
        print(json.dumps([entry.to_dict() for entry in found]))
        return
    shared = [entry for entry in found if entry.kind == "hyper-parameter"]
    if len(shared) > 1:
        for line in _shared(shared):
            tables.out.print(line, highlight=False)
    for i, entry in enumerate(found if len(shared) < 2 else ()):
        if i:
            tables.out.print()
        if entry.doc:
            _class(entry, catalogue)
        else:
            _setting(entry, catalogue)


def _setting(entry: Entry, catalogue: Catalogue) -> None:
    """A setting, a part or a group, in rows of two columns; below them what a part or group has."""
    title, see = entry.key, ""
    if entry.of:
        title = f"{entry.key} of {catalogue.word_of(entry.key.partition('.')[0])}={entry.of}"
    elif entry.kind == "part":
        title = f"{entry.key}: {catalogue.word_of(entry.key)}=NAME"
        see = f"`nearkin list {PARTS[entry.key].plural}`; `nearkin explain NAME` for one of them"
    elif entry.aliases:
        title = f"{entry.key}, in short {' or '.join(entry.aliases)}"
    tables.out.print(Text(title, "bold"))
    rows = {
        "meaning": entry.about,
        "default": "" if entry.kind == "group" else entry.shown,
        "source": entry.source,
        "allowed": entry.allowed,
        "see": see,
    }
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for what, told in rows.items():
        if told:
            grid.add_row(what, Text(told))
    tables.out.print(grid)
    if entry.settings:
        lines = [[own.key, own.shown, own.about] for own in entry.settings]
        tables.out.print(tables.table(None, dict.fromkeys(("key", "default", "meaning"), "left"), _escaped(lines)))


def _class(entry: Entry, catalogue: Catalogue) -> None:
    """A class: its docstring as help() shows it, and how a spec sets it."""
    tables.out.print(Text(f"{entry.kind} {entry.key}", "bold"))
    tables.out.print(Text(entry.doc), soft_wrap=True)
    if entry.choices:
        tables.out.print(Text(f"\nStages, for model.cut: {', '.join(entry.choices)}"))
    if entry.settings:
        words = " ".join(f"{own.key}={shown(own.default)}" for own in entry.settings)
        tables.out.print(Text(f"\nDefaults: {catalogue.word_of(entry.kind)}={entry.key} {words}"), soft_wrap=True)


def _shared(entries: list[Entry]) -> list[Group]:
    """A hyper-parameter that several classes have: one table for each kind of class."""
    made = []
    for key in dict.fromkeys(entry.key for entry in entries):
        part = key.partition(".")[0]
        lines = [[entry.of, entry.shown, entry.about] for entry in entries if entry.key == key]
        made.append(tables.table(key, dict.fromkeys((part, "default", "meaning"), "left"), _escaped(lines)))
    return made


def _escaped(rows: list[list[str]]) -> list[list[str]]:
    """[0, 4] is no markup."""
    return [[cell.replace("[", r"\[") for cell in row] for row in rows]
