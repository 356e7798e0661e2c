"""What a protocol is."""

from typing import ClassVar

import numpy as np

from nearkin.data.layout import LEARNT, SPLITS, TESTED
from nearkin.data.table import Table
from nearkin.errors import NearkinError
from nearkin.protocols.split import Split, TestRows
from nearkin.registry import PROTOCOLS


class SplitProtocol:
    """Turns a `Table` into a `Split` of index lists: which rows train, which validate, which are tested.

    Train, validation and test classes are disjoint (except in `within`, which says so). A split holds rows, no
    labels: those of the test rows are read once a run is stored as final. Your own protocol defines `rule` and
    `validation(table, trainval)`.

    Parameters:
        seed: of the classes or images that are drawn.
    """

    name: ClassVar[str]
    rule: str  # how the epoch is chosen, printed with every result
    min_classes = 8  # below this, disjoint classes make no honest test

    def __init__(self, *, seed: int = 0):
        self.seed = seed

    def split(self, table: Table) -> Split:
        """Divide the rows of a table."""
        trainval, query, gallery = self.halves(table)
        train, val = self.validation(table, trainval)
        return self.complete(table, train, val, query, gallery)

    def complete(
        self, table: Table, train: np.ndarray, val: np.ndarray, query: np.ndarray, gallery: np.ndarray | None
    ) -> Split:
        """The split of these rows; a NearkinError if there are no training or no test rows."""
        if len(train) == 0 or len(query) == 0:
            hint = ""
            if table.split is not None:
                hint = f": the data have the splits {', '.join(np.unique(table.split).tolist())}"
                hint += "; train and test (or query and gallery) are needed, or no splits at all"
            name = getattr(self, "name", type(self).__name__)  # a class that is not registered has none
            raise NearkinError(f"protocol {name} leaves {len(train)} training and {len(query)} test images{hint}")
        return Split(train, val, TestRows(query, gallery))

    def halves(self, table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Rows to learn from, test rows and gallery rows: the official division, else half of the classes."""
        if table.split is not None:
            shared = table.shared(LEARNT, TESTED)
            if len(shared):
                example = table.classes[shared[0]]
                who = f"{len(shared)} classes ({example!r}, ...) are"
                raise NearkinError(
                    f"{who if len(shared) > 1 else f'class {example!r} is'} in train and in test, but test classes "
                    "must be unseen; protocol=within keeps the given split and tests new images of known classes"
                )
            return self.given(table)
        self.enough_classes(table)
        classes = np.random.default_rng([self.seed, 0]).permutation(np.unique(table.labels))
        test = np.isin(table.labels, classes[: len(classes) // 2])
        return np.flatnonzero(~test), np.flatnonzero(test), None

    def given(self, table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Rows to learn from, test rows and gallery rows as the column `split` has them."""
        assert table.split is not None
        if unknown := set(table.split.tolist()) - set(SPLITS):  # no sorting of a million words
            raise NearkinError(f"split {sorted(unknown)[0]!r} is unknown: choices: {', '.join(sorted(SPLITS))}")
        gallery = np.flatnonzero(table.split == "gallery")
        query = np.flatnonzero(np.isin(table.split, ["query", "test"]))
        return np.flatnonzero(np.isin(table.split, LEARNT)), query, gallery if len(gallery) else None

    def enough_classes(self, table: Table) -> None:
        """Refuse data with too few classes for a test on unseen ones."""
        count = len(np.unique(table.labels))
        if count < self.min_classes:
            few = "class is" if count == 1 else "classes are"
            raise NearkinError(
                f"{count} {few} too few to test on unseen ones (at least {self.min_classes}); "
                f"protocol=within splits the images inside each class instead"
            )

    def validation(self, table: Table, trainval: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Divide the rows to learn from into training and validation rows."""
        raise NearkinError(f"protocol {type(self).__name__} does not define validation(table, trainval)")


PROTOCOLS.takes(SplitProtocol, words="a nearkin.protocols.SplitProtocol")
