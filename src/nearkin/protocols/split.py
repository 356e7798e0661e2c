"""Protocols: who trains, who validates, who is tested, and the lock on the test labels.

A protocol turns a `Table` into a `Split` of index lists. Train, validation and test classes are disjoint (but
for `within`, which says so). Test labels open once a run is stored as final: nothing that chooses a model can
see them.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from nearkin.data.table import Table
from nearkin.errors import NearkinError
from nearkin.registry import PROTOCOLS


class Final(Protocol):
    @property
    def final(self) -> bool: ...


class LockedTest:
    """The test images, whose labels stay shut until a run is final."""

    def __init__(self, query: np.ndarray, gallery: np.ndarray | None, labels: np.ndarray):
        self.query = query                              # (Q,) rows of the table
        self.gallery = gallery                          # (G,) rows, or None: the queries search each other
        self._labels = labels

    @property
    def images(self) -> np.ndarray:
        return self.query if self.gallery is None else np.concatenate([self.query, self.gallery])

    def open(self, run: Final) -> np.ndarray:
        """Labels of `images`, for a run whose choice of epoch can no longer change."""
        if not run.final:
            raise NearkinError("the test labels are locked until the run is final: nothing may be chosen with them")
        return self._labels[self.images]


@dataclass(frozen=True)
class Split:
    train: np.ndarray                                   # rows of the table
    val: np.ndarray                                     # rows; may be empty: then nothing is selected
    test: LockedTest

    def hash(self) -> str:
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


class SplitProtocol:
    name: ClassVar[str]
    rule: ClassVar[str]                                 # how the epoch is chosen, printed with every result
    min_classes = 8                                     # below this, disjoint classes make no honest test

    def __init__(self, *, seed: int = 0):
        self.seed = seed

    def split(self, table: Table) -> Split:
        trainval, query, gallery = self.halves(table)
        train, val = self.validation(table, trainval)
        if len(train) == 0 or len(query) == 0:
            raise NearkinError(f"protocol {self.name} leaves {len(train)} training and {len(query)} test images")
        return Split(train, val, LockedTest(query, gallery, table.labels))

    def halves(self, table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Rows to learn from, test rows and gallery rows: the official division, else half of the classes."""
        split = table.split
        if split is not None:
            known = {"train", "val", "test", "query", "gallery"}
            if unknown := set(np.unique(split).tolist()) - known:
                raise NearkinError(f"split {sorted(unknown)[0]!r} is unknown: choices: {', '.join(sorted(known))}")
            gallery = np.flatnonzero(split == "gallery")
            query = np.flatnonzero((split == "query") | (split == "test"))
            trainval = np.flatnonzero((split == "train") | (split == "val"))
            shared = set(table.labels[trainval]) & set(table.labels[np.concatenate([query, gallery])])
            if shared:
                example = table.classes[min(shared)]
                raise NearkinError(
                    f"{len(shared)} classes ({example!r}, ...) stand in train and in test; test classes must be "
                    f"unseen: change the split column, or drop it and take protocol=within"
                )
            return trainval, query, gallery if len(gallery) else None
        self.enough_classes(table)
        classes = np.random.default_rng([self.seed, 0]).permutation(np.unique(table.labels))
        test = np.isin(table.labels, classes[: len(classes) // 2])
        return np.flatnonzero(~test), np.flatnonzero(test), None

    def enough_classes(self, table: Table) -> None:
        found = len(np.unique(table.labels))
        if found < self.min_classes:
            raise NearkinError(
                f"{found} classes are too few to test on unseen ones (at least {self.min_classes}); "
                f"protocol=within splits the images inside each class instead"
            )

    def validation(self, table: Table, trainval: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise NearkinError(f"protocol {type(self).__name__} does not define validation(table, trainval)")


@PROTOCOLS.register("standard")
class Standard(SplitProtocol):
    """The literature's halves: first half of the classes trains, second half tests; nothing is selected."""

    rule = "last epoch (no validation)"

    def validation(self, table: Table, trainval: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return trainval, np.empty(0, np.int64)


@PROTOCOLS.register("fixed_val")
class FixedVal(SplitProtocol):
    """A share of the training classes, at least two, drawn by the seed, validates (Psomas 2020: 10 %)."""

    rule = "best epoch on held-out training classes"

    def __init__(self, *, seed: int = 0, share: float = 0.1):
        super().__init__(seed=seed)
        if not 0 < share < 1:
            raise NearkinError(f"protocol.share={share}: the share of validation classes lies between 0 and 1")
        self.share = share

    def validation(self, table: Table, trainval: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        labels = table.labels[trainval]
        if table.split is not None and (table.split == "val").any():
            val = table.split[trainval] == "val"
            if shared := set(labels[val]) & set(labels[~val]):
                raise NearkinError(f"{len(shared)} classes stand in train and in val; those of val must be unseen")
        else:
            classes = np.random.default_rng([self.seed, 1]).permutation(np.unique(labels))
            count = max(2, round(self.share * len(classes)))
            if len(classes) - count < 2:
                raise NearkinError(f"{len(classes)} training classes: too few to hold out {count}; protocol=standard")
            val = np.isin(labels, classes[:count])
        return trainval[~val], trainval[val]


@PROTOCOLS.register("within")
class Within(SplitProtocol):
    """Images split inside each class: for folders with few classes. It tests new images of *known* classes,
    which is easier than new classes; the result says so. A class with fewer than 6 images only trains."""

    rule = "best epoch on held-out images of the training classes (known classes: not comparable with the others)"

    def __init__(self, *, seed: int = 0, val_share: float = 0.2, test_share: float = 0.3):
        super().__init__(seed=seed)
        if not (val_share > 0 and test_share > 0 and val_share + test_share < 1):
            raise NearkinError(f"protocol.val_share={val_share}, test_share={test_share}: positive, together below 1")
        self.val_share, self.test_share = val_share, test_share

    def split(self, table: Table) -> Split:
        rng = np.random.default_rng([self.seed, 2])
        sides: dict[str, list[Any]] = {"train": [], "val": [], "test": []}
        for label in np.unique(table.labels):
            rows = rng.permutation(np.flatnonzero(table.labels == label))
            val = test = 0
            if len(rows) >= 6:  # two images a side: one is the other's only kin
                val, test = (max(2, round(share * len(rows))) for share in (self.val_share, self.test_share))
            sides["val"].append(rows[:val])
            sides["test"].append(rows[val : val + test])
            sides["train"].append(rows[val + test :])
        train, val_rows, test_rows = (np.sort(np.concatenate(s)) for s in sides.values())
        if len(test_rows) == 0:
            raise NearkinError("protocol=within needs at least one class of 6 images or more")
        return Split(train, val_rows, LockedTest(test_rows, None, table.labels))
