"""The base of samplers that choose a batch among candidates."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nearkin.config.bounds import at_least
from nearkin.errors import NearkinError
from nearkin.samplers.bank import BankSampler
from nearkin.samplers.classes import Classes, check_per_class


class CandidateSampler(BankSampler):
    """Base of samplers that choose a batch among candidates, so that a small batch looks like a large one.

    For every batch of a pass:

        big batch    b* images by spc (classes uniform with replacement, n images each with replacement)
        candidate    B/n times: a class of the big batch, uniform with replacement, and n of its images there
        batch        the candidate of m with the lowest cost against the big batch

    The subclass defines the cost. All m candidates are drawn and compared at once.

    Guarantees: a batch is B/n groups of n images of one class. The images of a group differ when the big batch has n
    different ones of the class; else all of these come, and as few twice as possible. Two groups may be of one class
    and share images. A pass need not show every image. A big batch larger than the data is cut to the size of the data,
    and to a multiple of n.

    Source: Roth et al. 2020.

    Parameters:
        labels: the class of each training image, (N,); any integers.
        batch: B, images per batch; at most N.
        seed: the seed of the stream of batches.
        per_class: n, images per class in a group; at least 1, and it must divide the batch.
        big_batch: b*, images in the big batch; at least the batch.
        candidates: m, candidates per batch; at least 1.
        refresh: True overwrites the bank's rows of a batch by its fresh embeddings after every step; False keeps the
            first ones.
    """

    def __init__(
        self,
        labels: np.ndarray,
        batch: int,
        seed: int,
        *,
        per_class: int = 2,
        big_batch: int = 512,
        candidates: int = 10,
        refresh: bool = True,
    ):
        super().__init__(labels, batch, seed, refresh=refresh)
        self.check_settings(batch, per_class=per_class, big_batch=big_batch)
        at_least(1, candidates=candidates)
        if batch < 2:
            raise NearkinError(f"train.batch={batch}: a spread needs at least 2 images per batch")
        self.per_class = per_class
        self.big_batch = big_batch
        self.candidates = candidates
        self.classes = Classes(self.labels)

    @classmethod
    def check_settings(cls, batch: int, **settings: Any) -> None:
        """The images per class must divide the batch, and the big batch must be no smaller."""
        check_per_class(batch, settings["per_class"])
        check_big_batch(batch, settings["big_batch"])

    def costs(self, big: np.ndarray, picks: Tensor) -> Tensor:  # (b*,), (m, B) -> (m,)
        """The cost of each of m candidates against a big batch, (m,); lower is better.

        big (b*,) holds positions in the training data; picks (m, B) holds the candidates, as positions in the big
        batch.
        """
        raise NearkinError(f"{type(self).__name__} does not define costs(big, picks)")

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The cheapest candidate for each of the ⌊N/B⌋ batches of a pass: positions in the training data, each (B,)."""
        groups = min(self.big_batch, len(self.labels)) // self.per_class
        batches = []
        for _ in range(len(self)):
            big = self.classes.draw_groups(rng, groups, self.per_class)  # (b*,)
            picks = self.draw_candidates(big, rng)  # (m, B)
            best = int(self.costs(big, torch.from_numpy(picks)).argmin())
            batches.append(big[picks[best]])
        return batches

    def draw_candidates(self, big: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The m candidates for a big batch (b*,): positions in that big batch, (m, B)."""
        _, of, size = np.unique(self.classes.of[big], return_inverse=True, return_counts=True)  # (b*,), (K,)
        order = np.argsort(of, kind="stable")
        place = np.arange(len(big)) - np.repeat(np.cumsum(size) - size, size)
        members = np.full((len(size), size.max()), -1)  # (K, W) positions
        members[of[order], place] = order
        again = np.ones(len(big))  # 1 where the big batch has the same image earlier
        again[np.unique(big, return_index=True)[1]] = 0
        drawn = rng.integers(len(size), size=self.candidates * self.batch // self.per_class)  # (m·B/n,)
        # a random order in which repeated images come last, and empty places never: each class has n places or more
        key = rng.random((len(drawn), members.shape[1])) + again[members[drawn]]
        key[members[drawn] < 0] = np.inf
        first = np.argsort(key, axis=1)[:, : self.per_class]  # (m·B/n, n)
        return np.take_along_axis(members[drawn], first, 1).reshape(self.candidates, self.batch)


def check_big_batch(batch: int, big_batch: int) -> None:
    """Raise an error if the big batch is smaller than the batch."""
    if big_batch < batch:
        raise NearkinError(f"sampler.big_batch={big_batch} must be at least train.batch={batch}: a batch represents it")
