"""Random positive pairs and their hardest negatives."""

import numpy as np
import torch

from nearkin.errors import NearkinError
from nearkin.registry import SAMPLERS
from nearkin.samplers.bank import BankSampler
from nearkin.samplers.classes import Classes


@SAMPLERS.register("hard_neighbours")
class HardNeighbours(BankSampler):
    """Random positive pairs, then the images of other classes that lie nearest to them.

    P random positive pairs are drawn, then the batch is filled with their difficult neighbours, so that it has the
    negatives that matter for a subgradient.

    Guarantees: no image twice in a batch; it begins with P pairs of different images, of P different classes; the rest
    is found by the 2P images in turn, each taking the nearest image of another class that is not in the batch yet.
    Classes of one image give no pair, but may be negatives. A pass need not show every image.

    Source: Song et al. 2016, "Deep metric learning via lifted structured feature embedding".

    Parameters:
        labels: the class of each training image, (N,); any integers.
        batch: B, images per batch; at least 3, at most N.
        seed: the seed of the stream of batches.
        pairs: P, positive pairs per batch; between 1 and (B - 1)/2. None: an eighth of the batch, as far as there are
            classes, so that each image brings three negatives.
        refresh: True overwrites the bank's rows of a batch by its fresh embeddings after every step; False keeps the
            first ones.

    Shapes: labels (N,), embeddings (N, D); `next()` gives one batch as positions in the training data, (B,).

    Example:
        sampler = nearkin.samplers.HardNeighbours(labels, batch=4, seed=0)
        sampler.fill(embeddings)
        rows = sampler.next()
    """

    paper = "Song et al. 2016"

    def __init__(self, labels: np.ndarray, batch: int, seed: int, *, pairs: int | None = None, refresh: bool = True):
        super().__init__(labels, batch, seed, refresh=refresh)
        self.classes = Classes(self.labels)
        self.paired = np.flatnonzero(self.classes.size > 1)  # classes that have a positive pair
        self.pairs = max(1, min(batch // 8, len(self.paired))) if pairs is None else pairs
        if batch < 3:
            raise NearkinError(f"train.batch={batch}: a pair and a negative need at least 3 images")
        if not 1 <= self.pairs <= (batch - 1) // 2:
            raise NearkinError(
                f"sampler.pairs={self.pairs} with train.batch={batch}: must lie between 1 and {(batch - 1) // 2}, "
                f"so that there is room for negatives"
            )
        if self.pairs > len(self.paired):
            raise NearkinError(
                f"sampler.pairs={self.pairs} needs as many classes of two images or more, training has "
                f"{len(self.paired)}"
            )
        others = len(self.labels) - self.classes.size.max()
        if self.pairs == 1 and others < batch - 2:  # with two pairs, any image can be a negative
            raise NearkinError(
                f"train.batch={batch} with one pair needs {batch - 2} negatives; the largest class leaves {others}: "
                f"raise sampler.pairs, or use a smaller batch"
            )

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The ⌊N/B⌋ batches of a pass: positions in the training data, each (B,), the pairs first."""
        return [self.add_neighbours(self.draw_pairs(rng)) for _ in range(len(self))]

    def draw_pairs(self, rng: np.random.Generator) -> np.ndarray:
        """P random positive pairs of P different classes: positions in the training data, (2P,), pair after pair."""
        classes = rng.choice(self.paired, self.pairs, replace=False)
        return np.concatenate([rng.choice(self.classes.members(c), 2, replace=False) for c in classes])

    def add_neighbours(self, anchors: np.ndarray) -> np.ndarray:  # (2P,) -> (B,)
        """Fill a batch that begins with the pairs `anchors` (2P,) with their nearest negatives: (B,)."""
        s = self.bank[anchors] @ self.bank.T  # (2P, N)
        s[torch.from_numpy(self.labels[anchors][:, None] == self.labels)] = -torch.inf
        near = s.topk(self.batch, dim=1)  # B: the batch may hold B - 1 of them already
        lists = [iter(row[value > -torch.inf].tolist()) for row, value in zip(near.indices, near.values, strict=True)]
        batch = dict.fromkeys(anchors.tolist())  # keeps the order, and `in` is fast
        while len(batch) < self.batch:
            for neighbours in lists:
                row = next((row for row in neighbours if row not in batch), None)
                if row is not None and len(batch) < self.batch:
                    batch[row] = None
        return np.array(list(batch))
