"""Samples per class, with replacement: what the public code of Roth et al. 2020 draws."""

from typing import Any

import numpy as np

from nearkin.errors import NearkinError
from nearkin.registry import SAMPLERS
from nearkin.samplers.base import BatchSampler
from nearkin.samplers.classes import Classes, check_per_class


@SAMPLERS.register("spc")
class SPC(BatchSampler):
    """Samples per class: random classes, equally many random images of each, all with replacement.

        B/n times: a class uniform with replacement, then n of its images uniform with replacement

    A class may come twice into a batch and an image may be its own positive; `Balanced` is the form without repetition.

    Guarantees: ⌊N/B⌋ batches per pass; a batch is B/n groups of n images of one class. Not guaranteed: that the groups
    of a batch are of different classes, that the images of a group differ, that a pass shows every image. Classes are
    equally frequent, however many images they have; a class of one image is drawn n times over.

    Source: Roth et al. 2020, public code.

    Parameters:
        labels: the class of each training image, (N,); any integers.
        batch: B, images per batch; at most N.
        seed: the seed of the stream of batches.
        per_class: n, images per class in a group; at least 1, and it must divide the batch.

    Shapes: labels (N,); `next()` gives one batch as positions in the training data, (B,).

    Example:
        sampler = nearkin.samplers.SPC(labels, batch=4, seed=0, per_class=2)
        rows = sampler.next()
    """

    paper = "Roth et al. 2020"

    def __init__(self, labels: np.ndarray, batch: int, seed: int, *, per_class: int = 2):
        super().__init__(labels, batch, seed)
        self.check_settings(batch, per_class=per_class)
        self.per_class = per_class
        self.classes = Classes(self.labels)

    @classmethod
    def check_settings(cls, batch: int, **settings: Any) -> None:
        """The images per class must divide the batch."""
        check_per_class(batch, settings["per_class"])

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The ⌊N/B⌋ batches of a pass: positions in the training data, each (B,), group after group."""
        batches = len(self.labels) // self.batch
        rows = self.classes.draw_groups(rng, batches * (self.batch // self.per_class), self.per_class)
        return list(rows.reshape(batches, self.batch))


@SAMPLERS.register("spc_r")
class SPCR(BatchSampler):
    """Random classes, one image of each, and at the end one positive for one of them.

        B - 1 times: a class, then an image of it; the last image is of the class of a random earlier one

    Guarantees: ⌊N/B⌋ batches per pass; the last image of a batch is of the class of another one, and a different image
    than that unless the class has no other. All else is with replacement, as in spc: a class may come twice into a
    batch. `Balanced` is the form without repetition.

    Source: Roth et al. 2020, public code, which may draw the same image again as the positive.

    Parameters:
        labels: the class of each training image, (N,); any integers.
        batch: B, images per batch; at least 2, at most N.
        seed: the seed of the stream of batches.

    Shapes: labels (N,); `next()` gives one batch as positions in the training data, (B,).

    Example:
        sampler = nearkin.samplers.SPCR(labels, batch=4, seed=0)
        rows = sampler.next()
    """

    paper = "Roth et al. 2020"

    def __init__(self, labels: np.ndarray, batch: int, seed: int):
        super().__init__(labels, batch, seed)
        if batch < 2:
            raise NearkinError(f"train.batch={batch}: a positive pair needs at least 2 images")
        self.classes = Classes(self.labels)

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The ⌊N/B⌋ batches of a pass: positions in the training data, each (B,), the added positive last."""
        batches = len(self.labels) // self.batch
        rows = self.classes.draw_groups(rng, batches * (self.batch - 1), 1).reshape(batches, -1)
        return [np.append(row, self.classes.group(rng, rng.choice(row), 2)[1]) for row in rows]
