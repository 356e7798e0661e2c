"""From a name, a root and hyper-parameters to a `Table`."""

from pathlib import Path
from typing import Any

from nearkin.data.table import Table
from nearkin.errors import NearkinError, choices
from nearkin.registry import DATASETS, hyperparameters


def load_table(name: str, root: Path | str | None = None, **parameters: Any) -> Table:
    cls = DATASETS[name]
    known = hyperparameters(cls)
    for key in parameters:
        if key not in known:
            raise NearkinError(f"data set {name!r} has no parameter {key!r}: {choices(key, known)}")
    return cls(None if root is None else Path(root).expanduser(), **parameters).load()
