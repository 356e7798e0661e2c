"""Protocols of several folds: the training classes are divided into parts, and each part validates once.

One run is one fold. A study trains all of them (`folds: all`) and averages over them, or joins their embeddings.
"""

import numpy as np

from nearkin.data.table import Table
from nearkin.errors import NearkinError
from nearkin.protocols.base import SplitProtocol
from nearkin.registry import PROTOCOLS


class Folds(SplitProtocol):
    """Base of protocols of several folds: `fold` of `folds` parts of the training classes validates, the others train.

    The test classes are the same in every fold. Where the data bring validation classes, these are training classes
    here.

    Parameters:
        seed: of the classes that are drawn.
        fold: which part validates; 0 to folds - 1.
        folds: into how many parts the training classes are divided; at least 2.
    """

    def __init__(self, *, seed: int = 0, fold: int = 0, folds: int = 4):
        super().__init__(seed=seed)
        if folds < 2:
            raise NearkinError(f"protocol.folds={folds}: must be at least 2")
        if not 0 <= fold < folds:
            raise NearkinError(f"protocol.fold={fold}: must be 0 to {folds - 1}, with protocol.folds={folds}")
        self.fold, self.folds = fold, folds

    def validation(self, table: Table, trainval: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the classes that train, and of those that validate in this fold."""
        labels = table.labels[trainval]
        classes = np.unique(labels)
        if len(classes) < 2 * self.folds:
            raise NearkinError(
                f"{len(classes)} training classes are too few for protocol.folds={self.folds}: each part needs 2, "
                f"so at least {2 * self.folds} are needed"
            )
        train, val = self.parts(classes)
        return trainval[np.isin(labels, train)], trainval[np.isin(labels, val)]

    def parts(self, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the sorted training classes (C,), those that train and those that validate."""
        raise NearkinError(f"protocol {type(self).__name__} does not define parts(classes)")


@PROTOCOLS.register("kfold")
class KFold(Folds):
    """k random disjoint parts of the training classes, of equal size (give or take one class); each validates once.

    Source: Psomas 2020, chapter 5: 10 folds.

    Parameters:
        seed: draws the parts, and the test half where the data set has no official division.
        fold: which part validates; 0 to folds - 1.
        folds: into how many parts the training classes are divided; at least 2.
    """

    rule = "best epoch on one fold of the training classes"

    def __init__(self, *, seed: int = 0, fold: int = 0, folds: int = 10):
        super().__init__(seed=seed, fold=fold, folds=folds)

    def parts(self, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        drawn = np.array_split(np.random.default_rng([self.seed, 3]).permutation(classes), self.folds)
        return np.concatenate([part for k, part in enumerate(drawn) if k != self.fold]), drawn[self.fold]


@PROTOCOLS.register("mlrc")
class MLRC(Folds):
    """The reality check's folds: of C sorted training classes, C - ⌊C/4⌋ train, from class ⌊C·fold/4⌋ on, cyclically;
    the ⌊C/4⌋ after them validate. There is no randomness.

    CUB has 75 and 25 classes, Cars196 74 and 24.

    Source: Musgrave et al. 2020, public code: four folds.

    Parameters:
        seed: draws the test half where the data set has no official division.
        fold: which fold; 0 to folds - 1.
        folds: into how many parts the training classes are divided; at least 2.
    """

    rule = "best epoch on one of four folds of the training classes, in order"

    def parts(self, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        held_out = len(classes) // self.folds
        around = np.roll(classes, -(len(classes) * self.fold // self.folds))
        return around[: len(classes) - held_out], around[len(classes) - held_out :]
