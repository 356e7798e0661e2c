"""`Split`: index lists of the rows that train, validate and are tested."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nearkin.data.layout import LEARNT, TESTED
from nearkin.data.table import Table


@dataclass(frozen=True)
class TestRows:
    """The test rows: queries and gallery. Their labels are not here; the test of a final run reads them again."""

    query: np.ndarray  # (Q,) rows of the table
    gallery: np.ndarray | None = None  # (G,) rows, or None: the queries search each other

    __test__ = False  # pytest: this is no test

    @property
    def images(self) -> np.ndarray:
        """All test rows: the queries, then the gallery where there is one."""
        return self.query if self.gallery is None else np.concatenate([self.query, self.gallery])

    @property
    def roles(self) -> np.ndarray:
        """The role of each of `images`: query, gallery, or both."""
        if self.gallery is None:
            return np.full(len(self.query), "both", "<U7")
        return np.repeat(np.array(["query", "gallery"]), [len(self.query), len(self.gallery)])


@dataclass(frozen=True)
class Split:
    """Index lists into a table: training, validation and test rows. Plain values, with no labels in them."""

    train: np.ndarray  # rows of the table
    val: np.ndarray  # rows; may be empty: then nothing is selected
    test: TestRows

    def hash(self) -> str:
        """The name of this division: 12 hex digits."""
        return self._hash

    @cached_property
    def _hash(self) -> str:
        digest = hashlib.sha256()
        gallery = self.test.gallery if self.test.gallery is not None else np.empty(0, np.int64)
        for rows in (self.train, self.val, self.test.query, gallery):
            digest.update(f"{len(rows)}:".encode() + rows.astype("<i8").tobytes())
        return digest.hexdigest()[:12]

    def describe(self, table: Table) -> str:
        """One line: images and classes of each side, and the hash; and whether it is the division given with the data,
        with known classes. Test classes are counted, never shown."""

        def side(name: str, rows: np.ndarray) -> str:
            return f"{name} {len(rows)} images of {len(np.unique(table.labels[rows]))} classes"

        sides = [side("train", self.train), side("validation", self.val), side("test", self.test.images)]
        given = "; the given split, its test classes known from training" if self._keeps_known_classes(table) else ""
        return f"{', '.join(sides)}{given}; split {self.hash()}"

    def _keeps_known_classes(self, table: Table) -> bool:
        if table.split is None or not len(table.shared(LEARNT, TESTED)):
            return False
        learnt, tested = np.concatenate([self.train, self.val]), self.test.images
        return bool(np.isin(table.split[learnt], LEARNT).all() and np.isin(table.split[tested], TESTED).all())

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON, with its hash."""
        gallery = None if self.test.gallery is None else self.test.gallery.tolist()
        return {
            "hash": self.hash(),
            "train": self.train.tolist(),
            "val": self.val.tolist(),
            "query": self.test.query.tolist(),
            "gallery": gallery,
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Split":
        """The split that `to_dict` described."""
        train, val, query = (np.array(fields[side], np.int64) for side in ("train", "val", "query"))
        gallery = None if fields["gallery"] is None else np.array(fields["gallery"], np.int64)
        return cls(train, val, TestRows(query, gallery))
