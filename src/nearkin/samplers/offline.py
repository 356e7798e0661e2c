"""Hard and semi-hard triplets found over all training images, not within a batch."""

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from nearkin.config.bounds import at_least, one_of
from nearkin.errors import NearkinError
from nearkin.registry import SAMPLERS
from nearkin.samplers.bank import BankSampler
from nearkin.samplers.classes import Classes


@SAMPLERS.register("offline")
class Offline(BankSampler):
    """Batches of triplets (anchor, positive, negative) that a search over all training images has found.

    A search begins every pass, or every n steps (`every=n`). Before it all training images are embedded with the latest
    weights, in eval mode. Anchors are random; s are cosines in the bank:

        tuples="hard"        p = argmin s_ap of a's class,  n = argmax s_an of all other classes
        tuples="semihard"    p random in a's class,  n = argmax s_an of those with s_an < s_ap, else argmin s_an

    A batch is filled triplet after triplet until it has B images. A miner then chooses within the batch: where all the
    images of the batch are as the bank has them, miner=hard finds for each anchor what tuples="hard" has found.

    Guarantees: no image twice in a batch; what a triplet shares with earlier ones is not repeated, and the last triplet
    may be cut off. Anchors of a class of one image have no positive and come last. The order of anchors in a pass is
    that of its beginning; a search within the pass looks for their positives and negatives again. A pass need not show
    every image.

    Source: Schroff et al. 2015 (FaceNet), which mines hard triplets offline every n steps and prefers semi-hard ones;
    Harwood et al. 2017 (smart mining) search all images before each epoch. Here the search is exact, where Harwood's is
    approximate, and the share of hard triplets does not adapt.

    Parameters:
        labels: the class of each training image, (N,); any integers, at least two classes.
        batch: B, images per batch; at least 3, at most N.
        seed: the seed of the stream of batches.
        tuples: "semihard" or "hard", as above.
        every: n, steps between two searches; at least 1. None: one search at the beginning of a pass.
        latest: True embeds all training images before every search, which costs a pass over the images without
            gradients; False searches the bank as its rows are, filled once and refreshed by the batches.
        refresh: without latest: True overwrites the bank's rows of a batch by its fresh embeddings after every step;
            False keeps the first ones.

    Shapes: labels (N,), embeddings (N, D); `next()` gives one batch as positions in the training data, (B,).

    Example:
        sampler = nearkin.samplers.Offline(labels, batch=4, seed=0, tuples="hard")
        sampler.fill(embeddings)
        rows = sampler.next()
    """

    paper = "Schroff et al. 2015"

    def __init__(
        self,
        labels: np.ndarray,
        batch: int,
        seed: int,
        *,
        tuples: Literal["semihard", "hard"] = "semihard",
        every: int | None = None,
        latest: bool = True,
        refresh: bool = True,
    ):
        super().__init__(labels, batch, seed, refresh=refresh)
        self.check_settings(batch, every=every)
        one_of("semihard", "hard", tuples=tuples)
        self.tuples = tuples
        self.every = every
        self.latest = latest
        self.classes = Classes(self.labels)
        if len(self.classes) < 2 or self.classes.size.max() < 2:
            raise NearkinError(
                f"sampler={self.name} needs two classes, one of them with two images; training has "
                f"{len(self.classes)}, the largest with {self.classes.size.max()}"
            )
        self.place = np.empty(len(self.labels), dtype=np.int64)  # (N,) of each image in its class
        self.place[self.classes.rows] = np.arange(len(self.labels)) - np.repeat(self.classes.start, self.classes.size)
        self._filled_at: int | None = None  # the step before which the bank was filled last

    @classmethod
    def check_settings(cls, batch: int, **settings: Any) -> None:
        """A triplet needs three images, and two searches are at least one step apart."""
        if batch < 3:
            raise NearkinError(f"train.batch={batch}: a triplet needs at least 3 images")
        if settings["every"] is not None:
            at_least(1, every=settings["every"])

    @property
    def step(self) -> int:
        """The number of batches given so far."""
        return self._pass * len(self) + self._position

    @property
    def searches(self) -> bool:
        """Does a search come before the next batch?"""
        return self._position == 0 if self.every is None else self.step % self.every == 0

    @property
    def due(self) -> bool:
        """Does a search come next for which the training images have not been embedded?"""
        return super().due or (self.latest and self.searches and self._filled_at != self.step)

    def fill(self, z: Tensor) -> None:  # (N, D)
        """Fill the bank for the search that comes next: z (N, D) in the order of the labels."""
        super().fill(z)
        self._filled_at = self.step

    def next(self) -> np.ndarray:
        """The next batch, as positions in the training data (B,), from a new search where one is due."""
        if self.searches:
            self._plan = None
        return super().next()

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The ⌊N/B⌋ batches of a pass: positions in the training data, each (B,), triplet after triplet."""
        seeds = rng.integers(2**63, size=len(self))  # so that the anchors do not depend on what is found
        return [self.gather(np.random.default_rng(seed)) for seed in seeds]

    def gather(self, rng: np.random.Generator) -> np.ndarray:
        """One batch (B,): the triplets of random anchors, until it is full."""
        anchors = rng.permutation(len(self.labels))
        anchors = anchors[np.argsort(self.classes.size[self.classes.of[anchors]] < 2, kind="stable")]  # lone ones last
        step = -(-self.batch // 3)
        batch: dict[int, None] = {}  # keeps the order, and `in` is fast
        for start in range(0, len(anchors), step):
            batch |= dict.fromkeys(self.find(anchors[start : start + step], rng).ravel().tolist())
            if len(batch) >= self.batch:
                break
        return np.array(list(batch)[: self.batch])

    def find(self, anchors: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # (A,) -> (A, 3)
        """The triplets of A anchors, (A, 3): anchor, positive, negative. A lone image is its own positive."""
        s = self.bank[anchors] @ self.bank.T  # (A, N)
        same = torch.from_numpy(self.labels[anchors][:, None] == self.labels)  # (A, N)
        others = s.masked_fill(same, -torch.inf)  # (A, N)
        if self.tuples == "hard":
            members = s.masked_fill(~same, torch.inf)
            members[torch.arange(len(anchors)), anchors] = torch.inf
            lowest, positive = members.min(1)  # (A,)
            positives = np.where(lowest.isfinite().numpy(), positive.numpy(), anchors)
            return np.stack([anchors, positives, others.argmax(1).numpy()], axis=1)
        positives = self.random_positives(anchors, rng)  # (A,)
        reached = s.gather(1, torch.from_numpy(positives)[:, None])  # (A, 1)
        nearest, negative = others.masked_fill(s >= reached, -torch.inf).max(1)  # (A,)
        farthest = s.masked_fill(same, torch.inf).argmin(1)  # (A,)
        return np.stack([anchors, positives, torch.where(nearest.isfinite(), negative, farthest).numpy()], axis=1)

    def random_positives(self, anchors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Another image of the class of each anchor (A,), uniform; a lone image for itself."""
        c = self.classes.of[anchors]
        size = self.classes.size[c]
        steps = 1 + rng.integers(np.maximum(size - 1, 1))  # from the anchor, round its class
        return self.classes.rows[self.classes.start[c] + (self.place[anchors] + steps) % size]
