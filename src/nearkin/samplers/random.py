"""Random batches."""

import numpy as np

from nearkin.registry import SAMPLERS
from nearkin.samplers.base import BatchSampler


@SAMPLERS.register("random")
class Random(BatchSampler):
    """Random batches: every image once per pass, in shuffled order; the incomplete last batch is dropped.

    Guarantees: ⌊N/B⌋ batches per pass, no image twice in a pass, at most B - 1 images left out of it.

    Parameters:
        labels: the class of each training image, (N,); any integers.
        batch: B, images per batch; at most N.
        seed: the seed of the stream of batches.

    Shapes: labels (N,); `next()` gives one batch as positions in the training data, (B,).

    Example:
        sampler = nearkin.samplers.Random(labels, batch=4, seed=0)
        rows = sampler.next()
    """

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The ⌊N/B⌋ batches of a pass: positions in the training data, each (B,)."""
        order = rng.permutation(len(self.labels))
        full = len(order) // self.batch
        return list(order[: full * self.batch].reshape(full, self.batch))
