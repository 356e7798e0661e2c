"""Balanced (P×K) batches."""

import numpy as np

from nearkin.errors import NearkinError
from nearkin.registry import SAMPLERS
from nearkin.samplers.base import BatchSampler
from nearkin.samplers.classes import check_per_class


@SAMPLERS.register("balanced")
class Balanced(BatchSampler):
    """Balanced batches: different classes, equally many different images of each; a pass shows every image.

    A batch has P = B/K classes with K images each. Guarantees, of each pass:

    - every batch has P different classes and K images of each;
    - every image is seen at least once;
    - the K images of a class are different when the class has K or more; a shorter class repeats as few as it can;
      a class of one image is refused if K > 1, because it has no positive pair;
    - a class whose size is no multiple of K fills its last group with images of its own seen before.

    Each class is cut into groups of K. A batch takes one group from each of the P classes with most groups left (ties
    at random); when fewer than P classes have any left, classes that are done lend a fresh group. The pass therefore
    has max(⌈groups/P⌉, groups of the largest class) batches.

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

    def __init__(self, labels: np.ndarray, batch: int, seed: int, *, per_class: int = 4):
        super().__init__(labels, batch, seed)
        self.per_class = per_class
        self.members = {c: np.flatnonzero(self.labels == c) for c in np.unique(self.labels)}
        check_per_class(batch, per_class)
        if batch // per_class > len(self.members):
            raise NearkinError(
                f"train.batch={batch} with sampler.per_class={per_class} needs {batch // per_class} classes, "
                f"training has {len(self.members)}; the largest batch is {per_class * len(self.members)}"
            )
        lone = [c for c, rows in self.members.items() if len(rows) < 2]
        if lone and per_class > 1:
            raise NearkinError(
                f"{len(lone)} training classes (label {lone[0]}, ...) have one image, balanced batches need two: "
                f"remove them, or take sampler=random"
            )

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The batches of one pass: positions in the training data, each (B,), K of one class after another."""
        classes = list(self.members)
        groups = {c: self._groups(c, rng) for c in classes}
        left = np.array([len(groups[c]) for c in classes])
        batches = []
        while left.any():
            # most groups left first; a random fraction breaks ties and picks the lenders among the finished
            chosen = np.argsort(-(left + rng.random(len(left))))[: self.batch // self.per_class]
            rows = [groups[classes[i]].pop() if left[i] else self._lend(classes[i], rng) for i in chosen]
            left[chosen] = np.maximum(left[chosen] - 1, 0)
            batches.append(np.concatenate(rows))
        return batches

    def _groups(self, c: int, rng: np.random.Generator) -> list[np.ndarray]:
        """All images of a class, shuffled, in groups of K."""
        rows = rng.permutation(self.members[c])
        cuts = [rows[i : i + self.per_class] for i in range(0, len(rows), self.per_class)]
        missing = self.per_class - len(cuts[-1])
        if missing:
            others = np.setdiff1d(self.members[c], cuts[-1])
            pool = rng.permutation(others)
            while len(pool) < missing:  # a class shorter than K repeats itself
                pool = np.concatenate([pool, rng.permutation(self.members[c])])
            cuts[-1] = np.concatenate([cuts[-1], pool[:missing]])
        return cuts

    def _lend(self, c: int, rng: np.random.Generator) -> np.ndarray:
        return self._groups(c, rng)[0]
