"""States (weights, optimiser, ...) in files. torch is imported where one is read or written: a list of runs does
neither."""

import pickle
import zipfile
from pathlib import Path
from typing import Any

from nearkin.storage import UNREADABLE

BROKEN = (*UNREADABLE, pickle.UnpicklingError)  # what reading a damaged state raises


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Write a state; problems with the disk raise an OSError."""
    import torch

    with open(path, "wb") as file:
        try:
            torch.save(state, file)
        except RuntimeError as error:  # on a full disk torch hides the cause behind an error of its own
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None


def read_state(path: Path, *, verified: bool) -> dict[str, Any]:
    """Read a state; never unpickles code. Raises one of BROKEN.

    Parameters:
        path: the file.
        verified: is its content known to be what was written? Otherwise the CRC-32 of each part is checked: torch
            checks none.
    """
    if not verified:
        _check_parts(path)
    import torch

    return torch.load(path, map_location="cpu", weights_only=True)


def _check_parts(path: Path) -> None:
    """Raise BadZipFile if the CRC-32 of a part of a file that torch wrote does not match."""
    if zipfile.is_zipfile(path):  # for other files torch raises an error
        with zipfile.ZipFile(path) as parts:
            if (name := parts.testzip()) is not None:
                raise zipfile.BadZipFile(f"bad CRC-32 of {name}")
