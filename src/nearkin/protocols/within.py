"""The protocol for folders with few classes: new images of known classes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from nearkin.data.layout import LEARNT, TESTED
from nearkin.data.table import Table
from nearkin.errors import NearkinError
from nearkin.protocols.base import SplitProtocol
from nearkin.protocols.split import Split, TestRows
from nearkin.registry import PROTOCOLS


def by_class(labels: np.ndarray, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each label of these rows, in order, and its rows, in the order of `rows`. They are sorted once: searching all N
    rows for each of N/5 classes would take hours if N is a million."""
    rows = rows[np.argsort(labels[rows], kind="stable")]
    classes, starts = np.unique(labels[rows], return_index=True)
    for label, start, end in zip(classes, starts, [*starts[1:], len(rows)], strict=True):
        yield label, rows[start:end]


@PROTOCOLS.register("within")
class Within(SplitProtocol):
    """Images split inside each class: for folders with few classes. It tests new images of *known* classes,
    which is easier than new classes; the result says so. A class with fewer than 6 images only trains.

    A split that comes with the data is kept when its train and test share classes, as those of ImageNet and the folders
    train, valid and test of a classification data set do: its test images are all of the test. Where it has no val,
    validation images are drawn from the training images of each class that has at least 4.

    Parameters:
        seed: draws the images of each side.
        val_share: share of the images of a class (of its training images, if the split is given) that validate;
            above 0.
        test_share: share of the images of a class that are tested; above 0, together with val_share below 1.
    """

    rule = "best epoch on held-out images of the training classes (known classes: not comparable with the others)"

    def __init__(self, *, seed: int = 0, val_share: float = 0.2, test_share: float = 0.3):
        super().__init__(seed=seed)
        if not (val_share > 0 and test_share > 0 and val_share + test_share < 1):
            raise NearkinError(
                f"protocol.val_share={val_share}, test_share={test_share}: must be positive, and below 1 together"
            )
        self.val_share, self.test_share = val_share, test_share

    def split(self, table: Table) -> Split:
        """Divide the images of every class, or keep the given split of known classes."""
        if len(table.shared(LEARNT, TESTED)):
            return self._given(table)
        rng = np.random.default_rng([self.seed, 2])
        sides: dict[str, list[Any]] = {"train": [], "val": [], "test": []}
        for label, class_rows in by_class(table.labels, np.arange(len(table))):
            rows = rng.permutation(class_rows)
            val = test = 0
            if len(rows) >= 6:  # two images on each side: each is the only other one of its class
                val, test = (max(2, round(share * len(rows))) for share in (self.val_share, self.test_share))
            if val + test >= len(rows):
                raise NearkinError(
                    f"protocol.val_share={self.val_share}, test_share={self.test_share} leave no image of class "
                    f"{table.classes[label]!r} to train on: {val} and {test} of its {len(rows)}; lower them"
                )
            sides["val"].append(rows[:val])
            sides["test"].append(rows[val : val + test])
            sides["train"].append(rows[val + test :])
        train, val_rows, test_rows = (np.sort(np.concatenate(s)) for s in sides.values())
        if len(test_rows) == 0:
            raise NearkinError("protocol=within needs at least one class of 6 images or more")
        return Split(train, val_rows, TestRows(test_rows))

    def _given(self, table: Table) -> Split:
        trainval, query, gallery = self.given(table)
        val = trainval[table.split[trainval] == "val"]  # type: ignore[index]
        train = trainval[table.split[trainval] == "train"]  # type: ignore[index]
        if len(val) == 0:
            train, val = self.validation(table, train)
        return self.complete(table, train, val, query, gallery)

    def validation(self, table: Table, trainval: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draw validation images inside each class of a given split that has none."""
        rng = np.random.default_rng([self.seed, 2])
        drawn = []
        for label, class_rows in by_class(table.labels, trainval):
            rows = rng.permutation(class_rows)
            count = max(2, round(self.val_share * len(rows))) if len(rows) >= 4 else 0
            if count >= len(rows):
                raise NearkinError(
                    f"protocol.val_share={self.val_share} leaves no image of class {table.classes[label]!r} to train "
                    f"on: {count} of its {len(rows)} training images validate; lower it"
                )
            drawn.append(rows[:count])
        val = np.sort(np.concatenate(drawn)) if drawn else trainval
        if len(trainval) and len(val) == 0:
            raise NearkinError(
                "protocol=within keeps the given split, which has no val, and no class has 4 training images or more "
                "to draw it from; add validation images as the split val"
            )
        return np.setdiff1d(trainval, val), val
