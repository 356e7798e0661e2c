"""Greedy coreset batches."""

from typing import Any

import numpy as np
import torch

from nearkin.registry import SAMPLERS
from nearkin.samplers.bank import BankSampler
from nearkin.samplers.candidates import check_big_batch
from nearkin.samplers.classes import Classes, check_per_class


@SAMPLERS.register("gc", version=2)
class GC(BankSampler):
    """Greedy coreset: images that cover a random big batch, each with others of its class.

    In a big batch of b* different images, the first point is random; then, again and again, the image farthest from all
    points chosen so far becomes a point, until there are B/n; then come n - 1 random images of each point's class. So
    batches reach every corner of the space.

    Guarantees: a batch is B/n groups of n images of one class; the first image of each group is its point, and all
    points of a batch differ. The images of a group differ when the class has n; a shorter class repeats as little as it
    can. Two points may be of one class and share fillers. A pass need not show every image. A big batch larger than the
    data is all the data.

    Source: Roth et al. 2020. Their code looks the chosen positions up in another big batch than the one they were found
    in, so their published figures are those of nearly random batches; here it is the same one.

    Parameters:
        labels: the class of each training image, (N,); any integers.
        batch: B, images per batch; at most N.
        seed: the seed of the stream of batches.
        per_class: n, images per class in a group; at least 1, and it must divide the batch.
        big_batch: b*, images in the big batch; at least the batch.
        refresh: True overwrites the bank's rows of a batch by its fresh embeddings after every step; False keeps the
            first ones.

    Shapes: labels (N,), embeddings (N, D); `next()` gives one batch as positions in the training data, (B,).

    Example:
        sampler = nearkin.samplers.GC(labels, batch=4, seed=0)
        sampler.fill(embeddings)
        rows = sampler.next()
    """

    paper = "Roth et al. 2020"

    def __init__(
        self,
        labels: np.ndarray,
        batch: int,
        seed: int,
        *,
        per_class: int = 2,
        big_batch: int = 512,
        refresh: bool = True,
    ):
        super().__init__(labels, batch, seed, refresh=refresh)
        self.check_settings(batch, per_class=per_class, big_batch=big_batch)
        self.per_class = per_class
        self.big_batch = big_batch
        self.classes = Classes(self.labels)

    @classmethod
    def check_settings(cls, batch: int, **settings: Any) -> None:
        """The images per class must divide the batch, and the big batch must be no smaller."""
        check_per_class(batch, settings["per_class"])
        check_big_batch(batch, settings["big_batch"])

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The ⌊N/B⌋ batches of a pass: positions in the training data, each (B,), group after group."""
        batches = []
        images, big_batch = len(self.labels), min(self.big_batch, len(self.labels))
        for _ in range(len(self)):
            points = self.farthest_first(rng.choice(images, big_batch, replace=False))  # not a permutation of all
            batches.append(np.concatenate([self.classes.group(rng, row, self.per_class) for row in points]))
        return batches

    def farthest_first(self, big: np.ndarray) -> np.ndarray:  # (b*,) -> (B/n,)
        """B/n points of a big batch (b*,), as positions in the training data; its first image is the first of them."""
        z = self.bank[big]  # (b*, D)
        nearest = torch.full((len(big),), torch.inf)  # distance to the points so far; -1 for a point
        chosen = [0]
        while len(chosen) < self.batch // self.per_class:
            z_new = z[chosen[-1]]
            nearest = torch.minimum(nearest, (z - z_new).square().sum(1))
            nearest[chosen[-1]] = -1
            chosen.append(int(nearest.argmax()))
        return big[chosen]
