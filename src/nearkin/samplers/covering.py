"""Balanced batches that show every image."""

import heapq
from typing import Any

import numpy as np

from nearkin.registry import SAMPLERS
from nearkin.samplers.base import BatchSampler
from nearkin.samplers.classes import Classes, check_classes, check_per_class


@SAMPLERS.register("covering")
class Covering(BatchSampler):
    """Balanced batches that cover the data: a pass shows every image, and large classes come first.

    A batch has P = B/K classes with K images each. Guarantees, of each pass:

    - every batch has P different classes and K images of each;
    - every image is seen at least once;
    - the K images of a class are different when the class has K or more; a shorter class repeats as few as it can;
      a class of one image is refused if K > 1, because it has no positive pair;
    - a class whose size is no multiple of K fills its last group with images of its own seen before.

    Each class is cut into groups of K. A batch takes one group from each of the P classes with most groups left (ties
    at random); when fewer than P classes have any left, classes that are done provide another random group. The pass
    therefore has max(⌈groups/P⌉, groups of the largest class) batches, and where classes differ much in size its first
    batches hold the largest classes only: `Balanced` draws the classes of each batch at random.

    Parameters:
        labels: the class of each training image, (N,); any integers.
        batch: B, images per batch; at most N.
        seed: the seed of the stream of batches.
        per_class: K, images per class in a batch; at least 1, and it must divide the batch.

    Shapes: labels (N,); `next()` gives one batch as positions in the training data, (B,).

    Example:
        sampler = nearkin.samplers.Covering(labels, batch=4, seed=0, per_class=2)
        rows = sampler.next()
    """

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
        """The batches of one pass: positions in the training data, each (B,), K of one class after another."""
        groups = [self._groups(c, rng) for c in range(len(self.classes))]
        left = sum(len(class_groups) for class_groups in groups)
        # most groups left first; a random number breaks ties and picks the lenders among the finished
        queue = [(-len(class_groups), rng.random(), c) for c, class_groups in enumerate(groups)]
        heapq.heapify(queue)
        batches = []
        while left:
            rows = []
            chosen = [heapq.heappop(queue)[2] for _ in range(self.batch // self.per_class)]
            for c in chosen:
                left -= bool(groups[c])
                rows.append(groups[c].pop() if groups[c] else self._groups(c, rng)[0])
                heapq.heappush(queue, (-len(groups[c]), rng.random(), c))
            batches.append(np.concatenate(rows))
        return batches

    def _groups(self, c: int, rng: np.random.Generator) -> list[np.ndarray]:
        """All images of a class, shuffled, in groups of K."""
        rows = rng.permutation(self.classes.members(c))
        cuts = [rows[i : i + self.per_class] for i in range(0, len(rows), self.per_class)]
        missing = self.per_class - len(cuts[-1])
        if missing:
            others = rng.permutation(np.setdiff1d(rows, cuts[-1]))
            again = np.concatenate([others, cuts[-1]])  # a class shorter than K repeats itself
            cuts[-1] = np.concatenate([cuts[-1], np.resize(again, missing)])
        return cuts
