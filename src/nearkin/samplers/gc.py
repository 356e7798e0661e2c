"""Greedy coreset: batches that reach every corner of the space.

In a big batch of b* different images, the first point at random, then again and again the image farthest from all
points chosen so far, until there are B/n; then n - 1 random images of each point's class.

Roth et al. 2020. Their code looks the chosen positions up in another big batch than the one they were found in, so
their published figures are those of nearly random batches; here it is the same one.
"""

import numpy as np
import torch

from nearkin.registry import SAMPLERS
from nearkin.samplers.bank import BankSampler
from nearkin.samplers.candidates import check_big_batch
from nearkin.samplers.classes import Classes, check_per_class


@SAMPLERS.register("gc")
class GC(BankSampler):
    """B/n images that cover a random big batch, each with n - 1 others of its class.

    Guarantees: a batch is B/n groups of n images of one class; the first image of each group is its point, and all
    points of a batch differ. The images of a group differ when the class has n; a shorter class repeats as little as
    it can. Two points may be of one class and share fillers. No pass need show every image. A big batch larger than
    the data is all of them.
    """

    source = "Roth et al. 2020"

    def __init__(
        self, labels: np.ndarray, batch: int, seed: int, *,
        per_class: int = 2, big_batch: int = 512, refresh: bool = True,
    ):  # fmt: skip
        super().__init__(labels, batch, seed, refresh=refresh)
        check_per_class(batch, per_class)
        check_big_batch(batch, big_batch)
        self.per_class = per_class
        self.big_batch = big_batch
        self.classes = Classes(self.labels)

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        batches = []
        for _ in range(len(self)):
            points = self.farthest_first(rng.permutation(len(self.labels))[: self.big_batch])
            batches.append(np.concatenate([self.classes.group(rng, row, self.per_class) for row in points]))
        return batches

    def farthest_first(self, big: np.ndarray) -> np.ndarray:        # (b*,) -> (B/n,)
        """Points of the big batch; its first image, which is random, is the first of them."""
        z = self.bank[big]                                                                      # (b*, D)
        nearest = torch.full((len(big),), torch.inf)                # distance to the points so far; -1 for a point
        chosen = [0]
        while len(chosen) < self.batch // self.per_class:
            z_new = z[chosen[-1]]
            nearest = torch.minimum(nearest, (z - z_new).square().sum(1))
            nearest[chosen[-1]] = -1
            chosen.append(int(nearest.argmax()))
        return big[chosen]
