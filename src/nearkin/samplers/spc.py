"""Samples per class, with replacement: what the public code of Roth et al. 2020 draws.

    spc      B/n times: a class uniform with replacement, then n of its images uniform with replacement
    spc_r    B - 1 times: a class, then an image of it; the last image is of the class of a random earlier one

A class may come twice into a batch and an image may be its own positive; `balanced` is the form without repetition.
"""

import numpy as np

from nearkin.errors import NearkinError
from nearkin.registry import SAMPLERS
from nearkin.samplers.base import BatchSampler
from nearkin.samplers.classes import Classes, check_per_class


@SAMPLERS.register("spc")
class SPC(BatchSampler):
    """n images of each of B/n classes, classes and images with replacement.

    Guarantees: ⌊N/B⌋ batches a pass; a batch is B/n groups of n images of one class. Not guaranteed: that the
    groups of a batch are of different classes, that the images of a group differ, that a pass shows every image.
    Classes are equally frequent, however many images they have; a class of one image is drawn n times over.
    """

    source = "Roth et al. 2020"

    def __init__(self, labels: np.ndarray, batch: int, seed: int, *, per_class: int = 2):
        super().__init__(labels, batch, seed)
        check_per_class(batch, per_class)
        self.per_class = per_class
        self.classes = Classes(self.labels)

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        batches = len(self.labels) // self.batch
        rows = self.classes.draw_groups(rng, batches * (self.batch // self.per_class), self.per_class)
        return list(rows.reshape(batches, self.batch))


@SAMPLERS.register("spc_r")
class SPCR(BatchSampler):
    """Random classes, one image of each, and at the end one positive for one of them.

    Guarantees: ⌊N/B⌋ batches a pass; the last image of a batch is of the class of another one, and a different
    image than that unless the class has no other. All else is with replacement, as in spc. (Roth et al.'s code may
    draw the same image again as the positive.)
    """

    source = "Roth et al. 2020"

    def __init__(self, labels: np.ndarray, batch: int, seed: int):
        super().__init__(labels, batch, seed)
        if batch < 2:
            raise NearkinError(f"train.batch={batch}: a positive pair needs at least 2 images")
        self.classes = Classes(self.labels)

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        batches = len(self.labels) // self.batch
        rows = self.classes.draw_groups(rng, batches * (self.batch - 1), 1).reshape(batches, -1)
        return [np.append(row, self.classes.group(rng, rng.choice(row), 2)[1]) for row in rows]
