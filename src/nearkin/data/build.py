"""`load_table`: a data set by name."""

from pathlib import Path
from typing import Any

from nearkin.data.table import Table
from nearkin.errors import NearkinError, choices
from nearkin.registry import DATASETS, hyperparameters


def load_table(name: str, root: Path | str | None = None, **parameters: Any) -> Table:
    """The table of a data set.

    `name` is a registered name (`nearkin list datasets`) or the import path of a class; `root` the folder or file it
    reads; `parameters` the keyword-only arguments of its class. No image is opened. A NearkinError when the name or a
    parameter is unknown, or what lies at `root` is not the layout that the data set needs.

        table = nearkin.data.load_table("glyphs", classes=20, per_class=10)
    """
    cls = DATASETS[name]
    known = hyperparameters(cls)
    for key in parameters:
        if key not in known:
            raise NearkinError(f"data set {name!r} has no parameter {key!r}: {choices(key, known)}")
    return cls(None if root is None else Path(root).expanduser(), **parameters).load()
