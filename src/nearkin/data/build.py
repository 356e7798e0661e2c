"""`load_table`: a data set by name."""

import inspect
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


def is_data_set(part: Any) -> bool:
    """Is it a class like our data sets, which have no base class: `__init__(self, root, *, ...)` and `load(self)`?"""
    load = getattr(part, "load", None)
    if not inspect.isclass(part) or not inspect.isfunction(load):
        return False
    handed = [p.name for p in inspect.signature(part).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    return handed[:1] == ["root"] and list(inspect.signature(load).parameters) == ["self"]


DATASETS.takes(
    words="a class with __init__(self, root, *, ...) and load(self), as in docs/extending.md", form=is_data_set
)
