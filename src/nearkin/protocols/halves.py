"""Protocols that test on unseen classes: half of all classes, or the official test classes."""

import numpy as np

from nearkin.data.table import Table
from nearkin.errors import NearkinError
from nearkin.protocols.base import SplitProtocol
from nearkin.registry import PROTOCOLS


@PROTOCOLS.register("standard")
class Standard(SplitProtocol):
    """The literature's halves: first half of the classes trains, second half tests; nothing is selected.

    Parameters:
        seed: draws the test half where the data set has no official division.
    """

    rule = "last epoch (no validation)"

    def validation(self, table: Table, trainval: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return trainval, np.empty(0, np.int64)


@PROTOCOLS.register("fixed_val")
class FixedVal(SplitProtocol):
    """A share of the training classes, at least two, drawn by the seed, validates.

    Source: Psomas 2020: 10 % of the classes.

    Parameters:
        seed: draws the validation classes, and the test half where the data set has no official division.
        share: share of the training classes that validate; between 0 and 1.
    """

    rule = "best epoch on held-out training classes"

    def __init__(self, *, seed: int = 0, share: float = 0.1):
        super().__init__(seed=seed)
        if not 0 < share < 1:
            raise NearkinError(f"protocol.share={share}: the share of validation classes must lie between 0 and 1")
        self.share = share

    def validation(self, table: Table, trainval: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        labels = table.labels[trainval]
        if table.split is not None and (table.split == "val").any():
            val = table.split[trainval] == "val"
            if shared := set(labels[val]) & set(labels[~val]):
                raise NearkinError(
                    f"{len(shared)} classes are in train and in val; those of val must be unseen: protocol=standard "
                    "trains on both and does not validate"
                )
        else:
            classes = np.random.default_rng([self.seed, 1]).permutation(np.unique(labels))
            count = max(2, round(self.share * len(classes)))
            if len(classes) - count < 2:
                raise NearkinError(
                    f"{len(classes)} training classes: too few to hold out {count}; use protocol=standard"
                )
            val = np.isin(labels, classes[:count])
        return trainval[~val], trainval[val]


@PROTOCOLS.register("few")
class Few(Standard):
    """The test of `standard` with fewer training classes: what does a method give where there is little to learn from?

    A draw of more classes contains that of fewer. Nothing is selected.

    Parameters:
        seed: draws the training classes, and the test half where the data set has no official division.
        classes: how many training classes there are; at least 2.
    """

    def __init__(self, *, seed: int = 0, classes: int = 8):
        super().__init__(seed=seed)
        if classes < 2:
            raise NearkinError(f"protocol.classes={classes}: must be at least 2")
        self.classes = classes

    def validation(self, table: Table, trainval: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        labels = table.labels[trainval]
        known = np.unique(labels)
        if self.classes > len(known):
            raise NearkinError(f"protocol.classes={self.classes}: at most {len(known)}, the training classes")
        drawn = np.random.default_rng([self.seed, 8]).permutation(known)[: self.classes]
        return super().validation(table, trainval[np.isin(labels, drawn)])
