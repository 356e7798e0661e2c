"""The data of a spec: read once, and divided once by each protocol, however many runs share them."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nearkin.config.parts import DataSpec, ProtocolSpec
from nearkin.config.spec import RunSpec
from nearkin.data import Images, Table, exclude, load_table, open_images
from nearkin.data.cache import check_kept, data_hash
from nearkin.data.forms import Decoded
from nearkin.data.hashing import content_hashes
from nearkin.errors import NearkinError
from nearkin.progress import note_once
from nearkin.protocols import Split
from nearkin.registry import hyperparameters
from nearkin.runs.seen import contents, training_record

CROPS = (
    "size",
    "crop",
    "augment",
    "crop_scale",
    "crop_ratio",
    "flip",
)  # settings that are used when images are cropped


@dataclass(frozen=True)
class Data:
    """A data set as it was read: everything, test labels included."""

    table: Table  # without unreadable images
    images: Table | Images  # its pixels
    hash: str
    skipped: list[tuple[str, str]]  # path, reason
    hashes: list[str] = field(default_factory=list, repr=False)  # of the content of each file; empty for arrays
    divisions: dict[str, "Division"] = field(
        default_factory=dict, repr=False
    )  # protocol -> the data as it divides them

    @cached_property
    def pixels(self) -> Images:
        """Its pixels by row, and nothing else."""
        if isinstance(self.images, Images):
            return self.images.alone()
        assert self.images.images is not None
        return Decoded.of(self.images.images)

    @cached_property
    def contents(self) -> np.ndarray:
        """(N,) a hash of the content of each image."""
        return contents(self.table, self.hashes)

    def divided(self, protocol: ProtocolSpec) -> "Division":
        """The rows as a protocol divides them."""
        key = repr(protocol)
        if key not in self.divisions:
            self.divisions[key] = Division(self.table, divide(protocol, self.table))
        return self.divisions[key]


@dataclass(frozen=True)
class Division:
    """A table and its split, and what all runs on them share: two thousand runs of a study hold these arrays once."""

    table: Table = field(repr=False)
    split: Split
    passed: set[Any] = field(default_factory=set, repr=False)  # checks that need not be repeated

    @cached_property
    def labels(self) -> np.ndarray:
        """(N,) of the training rows, 0..C-1."""
        return np.unique(self.table.labels[self.split.train], return_inverse=True)[1]

    @cached_property
    def val_labels(self) -> np.ndarray:
        """(V,) of the validation rows."""
        return self.table.labels[self.split.val].copy()

    @cached_property
    def about(self) -> str:
        """One line for the user."""
        return self.split.describe(self.table)

    @cached_property
    def _records(self) -> dict[str, dict[str, Any]]:
        return {}

    def record(self, name: str, data: Data) -> dict[str, Any]:
        """What a run on these data will learn from; `name` is that of the data set."""
        if name not in self._records:
            self._records[name] = training_record(name, data.hash, self.table, self.split, data.contents)
        return self._records[name]

    def once(self, key: Any, check: Callable[[], Any]) -> None:
        """Call a check that depends only on this division and its key, unless it was passed before."""
        if key not in self.passed:
            check()
            self.passed.add(key)


def divide(protocol: ProtocolSpec, table: Table) -> Split:
    """The rows of a table, divided by a protocol."""
    return protocol.cls(**protocol.params).split(table)


def make_split(spec: RunSpec, table: Table) -> Split:
    """The rows of a table, divided by the protocol of a spec."""
    return divide(spec.protocol, table)


def key_of(data: DataSpec) -> str:
    """The key under which data are remembered: all settings that table and pixels depend on, so that runs with
    different crops share them."""
    return repr(data.model_copy(update=dict.fromkeys(CROPS)))


def read_table(data: DataSpec) -> Table:
    """The rows of a data set; no image is decoded."""
    size = (
        {"size": data.resize} if "size" in hyperparameters(data.cls) else {}
    )  # such images are drawn at the right size
    table = load_table(data.name, root_of(data), **{k: v for k, v in data.params.items() if k != "size"}, **size)
    check_kept(table, resize=data.resize or 0, keep=data.keep, cache=data.cache)
    if table.tree is not None:
        for line in (table.tree.doubt, table.tree.sentence):
            if line:
                note_once(f"root={table.root}: {line}")
    return table if data.exclude is None else exclude(table, data.exclude)


def root_of(data: DataSpec) -> Path | None:
    """Where the data are: where the spec says; on a node of a cluster (NEARKIN_NODE is set), where
    NEARKIN_ROOT_<DATASET> says, if it is set there. The spec keeps the root of the caller."""
    node = os.environ.get("NEARKIN_NODE")
    if node is None or data.root is None:
        return data.root
    variable = f"NEARKIN_ROOT_{re.sub(r'[^A-Z0-9]', '_', data.name.upper())}"
    root = Path(os.environ.get(variable, data.root)).expanduser()
    if not root.exists():
        raise NearkinError(
            f"node {node} has no {root}: put the data of {data.name} there, or start Ray on that node with "
            f"{variable}=DIR"
        )
    return root


def read_data(data: DataSpec, known: dict[str, Data] | None = None, table: Table | None = None) -> Data:
    """The data of a spec, with images at its size; `table`: its rows, if they were read before."""
    key = key_of(data)
    if known is not None and key in known:
        return known[key]
    table = read_table(data) if table is None else table
    hashes = content_hashes(table) if table.images is None else []
    name = data_hash(table, hashes)
    images: Table | Images = table
    skipped: list[tuple[str, str]] = []
    if table.images is None:
        images = open_images(
            table, resize=data.resize or 0, keep=data.keep, cache=data.cache, on_error=data.on_error, known_hash=name
        )
        if skipped := images.skipped:
            table, hashes = table.take(images.rows), [hashes[row] for row in images.rows]
            name = data_hash(table, hashes)
    loaded = Data(table, images, name, skipped, hashes)
    if known is not None:
        known[key] = loaded
    return loaded
