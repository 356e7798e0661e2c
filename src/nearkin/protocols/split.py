"""`Split`: index lists of who trains, who validates and who is tested, and the lock on the test labels."""

import hashlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nearkin.data.table import Table
from nearkin.errors import NearkinError


class Final(Protocol):
    """What can say whether its choice of epoch is final: a run."""

    @property
    def final(self) -> bool:
        """Can the choice of epoch no longer change?"""


class LockedTest:
    """The test images, whose labels stay shut until a run is final."""

    def __init__(self, query: np.ndarray, gallery: np.ndarray | None, labels: np.ndarray):
        self.query = query                              # (Q,) rows of the table
        self.gallery = gallery                          # (G,) rows, or None: the queries search each other
        self._labels = labels

    @property
    def images(self) -> np.ndarray:
        """All test rows: the queries, then the gallery where there is one."""
        return self.query if self.gallery is None else np.concatenate([self.query, self.gallery])

    def open(self, run: Final) -> np.ndarray:
        """Labels of `images`, for a run whose choice of epoch can no longer change."""
        if not run.final:
            raise NearkinError("the test labels are locked until the run is final: nothing may be chosen with them")
        return self._labels[self.images]


@dataclass(frozen=True)
class Split:
    """Index lists into a table: training, validation and test rows."""

    train: np.ndarray                                   # rows of the table
    val: np.ndarray                                     # rows; may be empty: then nothing is selected
    test: LockedTest

    def hash(self) -> str:
        """The name of this division: 12 hex digits."""
        digest = hashlib.sha256()
        gallery = self.test.gallery if self.test.gallery is not None else np.empty(0, np.int64)
        for rows in (self.train, self.val, self.test.query, gallery):
            digest.update(f"{len(rows)}:".encode() + rows.astype("<i8").tobytes())
        return digest.hexdigest()[:12]

    def describe(self, table: Table) -> str:
        """One line: images and classes of each side, and the hash. Test classes are counted, never shown."""
        def side(name: str, rows: np.ndarray) -> str:
            return f"{name} {len(rows)} images of {len(np.unique(table.labels[rows]))} classes"

        sides = [side("train", self.train), side("validation", self.val), side("test", self.test.images)]
        return f"{', '.join(sides)}; split {self.hash()}"
