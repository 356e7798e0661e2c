"""Balanced (P×K) batches."""

from typing import Any

import numpy as np

from nearkin.registry import SAMPLERS
from nearkin.samplers.base import BatchSampler
from nearkin.samplers.classes import Classes, check_classes, check_per_class, draw_different


@SAMPLERS.register("balanced", version=2)
class Balanced(BatchSampler):
    """Balanced batches: random different classes, equally many different images of each.

        P = B/K classes, every set of P equally likely; then K images of each, every set of K equally likely

    Guarantees: ⌊N/B⌋ batches per pass; each has P different classes and K images of each; the K images are different
    when the class has K or more; a shorter class repeats as few as it can; a class of one image is refused if K > 1,
    because it has no positive pair. Batches are drawn independently of each other, so a pass need not show every
    image: `Covering` does. Classes are equally frequent, however many images they have.

    Source: the batches of Psomas 2020 (K = 5) and of Lim et al. 2022 (8 x 4). Their codes draw the images of a class
    with replacement, pytorch-metric-learning's M-per-class does as here. Version 1 is now `covering`.

    Parameters:
        labels: the class of each training image, (N,); any integers.
        batch: B, images per batch; at most N.
        seed: the seed of the stream of batches.
        per_class: K, images per class in a batch; at least 1, and it must divide the batch.

    Shapes: labels (N,); `next()` gives one batch as positions in the training data, (B,).

    Example:
        sampler = nearkin.samplers.Balanced(labels, batch=4, seed=0, per_class=2)
        rows = sampler.next()
    """

    paper = "Psomas 2020"

    def __init__(self, labels: np.ndarray, batch: int, seed: int, *, per_class: int = 4):
        super().__init__(labels, batch, seed)
        self.per_class = per_class
        self.classes = Classes(self.labels)
        check_classes(self.classes, batch, per_class)

    @classmethod
    def check_settings(cls, batch: int, **settings: Any) -> None:
        """The images per class must divide the batch."""
        check_per_class(batch, settings["per_class"])

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The ⌊N/B⌋ batches of a pass: positions in the training data, each (B,), K of one class after another."""
        batches = len(self.labels) // self.batch
        classes = draw_different(rng, np.full(batches, len(self.classes)), self.batch // self.per_class)
        rows = self.classes.draw_different(rng, classes.ravel(), self.per_class)  # (batches·P, K)
        return list(rows.reshape(batches, self.batch))
