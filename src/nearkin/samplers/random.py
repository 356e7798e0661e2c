"""Random batches: every image once a pass, in shuffled order; the incomplete last batch is dropped."""

import numpy as np

from nearkin.registry import SAMPLERS
from nearkin.samplers.base import BatchSampler


@SAMPLERS.register("random")
class Random(BatchSampler):
    """Guarantee: ⌊N/B⌋ batches a pass, no image twice in a pass, at most B - 1 images left out of it."""

    def plan(self, rng: np.random.Generator) -> list[np.ndarray]:
        order = rng.permutation(len(self.labels))
        full = len(order) // self.batch
        return list(order[: full * self.batch].reshape(full, self.batch))
