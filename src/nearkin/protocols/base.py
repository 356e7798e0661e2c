"""What a protocol is."""

from typing import ClassVar

import numpy as np

from nearkin.data.table import Table
from nearkin.errors import NearkinError
from nearkin.protocols.split import Split, TestRows


class SplitProtocol:
    """Turns a `Table` into a `Split` of index lists: who trains, who validates, who is tested.

    Train, validation and test classes are disjoint (but for `within`, which says so). A split holds rows, no
    labels: those of the test rows are read once a run is stored as final. A protocol of your own defines `rule` and
    `validation(table, trainval)`.

    Parameters:
        seed: of the classes or images that are drawn.
    """

    name: ClassVar[str]
    rule: ClassVar[str]                                 # how the epoch is chosen, printed with every result
    min_classes = 8                                     # below this, disjoint classes make no honest test

    def __init__(self, *, seed: int = 0):
        self.seed = seed

    def split(self, table: Table) -> Split:
        """Divide the rows of a table."""
        trainval, query, gallery = self.halves(table)
        train, val = self.validation(table, trainval)
        if len(train) == 0 or len(query) == 0:
            raise NearkinError(f"protocol {self.name} leaves {len(train)} training and {len(query)} test images")
        return Split(train, val, TestRows(query, gallery))

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
        """Refuse data with too few classes for a test on unseen ones."""
        found = len(np.unique(table.labels))
        if found < self.min_classes:
            raise NearkinError(
                f"{found} classes are too few to test on unseen ones (at least {self.min_classes}); "
                f"protocol=within splits the images inside each class instead"
            )

    def validation(self, table: Table, trainval: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Divide the rows to learn from into training and validation rows."""
        raise NearkinError(f"protocol {type(self).__name__} does not define validation(table, trainval)")
