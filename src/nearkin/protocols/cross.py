"""Protocols behind `nearkin fit`: every class is tested once, then all of them train."""

import numpy as np

from nearkin.data.table import Table
from nearkin.errors import NearkinError
from nearkin.protocols.base import SplitProtocol
from nearkin.protocols.halves import Standard
from nearkin.protocols.split import Split, TestRows
from nearkin.registry import PROTOCOLS


@PROTOCOLS.register("cross")
class Cross(SplitProtocol):
    """Cross-validation over classes: of `folds` parts of all classes, drawn at random, part `fold` is tested; of the
    others a share validates and the rest trains. Over all folds every class is tested once, by a model that never saw
    it. A division that comes with the data is not read.

    Parameters:
        seed: draws the parts, and the validation classes.
        fold: which part is tested; 0 to folds - 1.
        folds: into how many parts the classes are divided; at least 2. Each part has at least 2 classes.
        share: share of the other classes that validate, at least two of them; 0: none, and nothing is selected.
    """

    rule = "best epoch on held-out training classes"

    def __init__(self, *, seed: int = 0, fold: int = 0, folds: int = 4, share: float = 0.2):
        super().__init__(seed=seed)
        if folds < 2:
            raise NearkinError(f"protocol.folds={folds}: must be at least 2")
        if not 0 <= fold < folds:
            raise NearkinError(f"protocol.fold={fold}: must be 0 to {folds - 1}, with protocol.folds={folds}")
        if not 0 <= share < 1:
            raise NearkinError(f"protocol.share={share}: the share of validation classes must be at least 0, below 1")
        self.fold, self.folds, self.share = fold, folds, share
        if not share:
            self.rule = Standard.rule

    def split(self, table: Table) -> Split:
        """The rows of this fold."""
        classes = np.unique(table.labels)
        if len(classes) < 2 * self.folds:
            raise NearkinError(
                f"{len(classes)} classes are too few for protocol.folds={self.folds}: each part needs 2, so at least "
                f"{2 * self.folds} are needed"
            )
        parts = np.array_split(np.random.default_rng([self.seed, 6]).permutation(classes), self.folds)
        others = np.concatenate([part for k, part in enumerate(parts) if k != self.fold])
        held_out = max(2, round(self.share * len(others))) if self.share else 0
        if len(others) - held_out < 2:
            raise NearkinError(
                f"protocol.share={self.share}: {len(others)} classes are too few to hold out {held_out}; set it to 0"
            )
        others = np.random.default_rng([self.seed, 7, self.fold]).permutation(others)
        validated, trained = others[:held_out], others[held_out:]
        train, val, test = (
            np.flatnonzero(np.isin(table.labels, side)) for side in (trained, validated, parts[self.fold])
        )
        return self.complete(table, train, val, test, None)


@PROTOCOLS.register("all")
class All(SplitProtocol):
    """All images train; nothing validates and nothing is tested. For a last model whose settings were chosen, and whose
    worth was estimated, by other runs.

    Parameters:
        seed: not read: nothing is drawn.
    """

    rule = "last epoch (all classes train; nothing is tested)"

    def split(self, table: Table) -> Split:
        """All rows train."""
        rows = np.arange(len(table))
        return Split(rows, rows[:0], TestRows(rows[:0]))
