"""Manifold mixup for metric learning.

    h ← λ·h + (1 - λ)·h_π        L = λ·L(y) + (1 - λ)·L(y_π)

with λ ~ Beta(α, α), a permutation π of the batch, and h the input (depth 0) or the output of a random stage k of the
network. Miner and loss see the mixed embeddings twice, under the labels y and y_π. Verma et al. 2019 (ICML); Roth et
al. 2020 (eq. 31), α = 2. Proxy and softmax losses take the same two terms.

    mix = objective.mix(len(images), stages=len(stages), generator=generator)     # None without mixup
    for depth, stage in enumerate(stages):
        h = stage(mix(depth, h) if mix else h)
    loss = objective(Embedded(h, mix=mix), labels, generator)
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from nearkin.config.bounds import above, between
from nearkin.registry import REGULARISERS
from nearkin.regularisers.base import Regulariser


@dataclass(frozen=True)
class Mix:
    """What is mixed in one batch: h at `depth`, with the rows in `order`."""

    weight: float                                                   # λ
    order: Tensor                                                   # (B,) π
    depth: int                                                      # 0 the input, k the output of stage k

    def __call__(self, depth: int, h: Tensor) -> Tensor:
        if depth != self.depth:
            return h
        return self.weight * h + (1 - self.weight) * h[self.order]


@REGULARISERS.register("mixup")
class Mixup(Regulariser):
    """`depth`: where to mix; None draws one of all depths for each batch."""

    def __init__(self, *, alpha: float = 2.0, depth: int | None = None):
        above(0, alpha=alpha)
        self.alpha = alpha
        self.depth = depth

    def mix(self, batch: int, stages: int, generator: Generator | None = None) -> Mix:
        if self.depth is not None:
            between(0, stages - 1, depth=self.depth)
        device = generator.device if generator is not None else torch.device("cpu")
        seed = int(torch.randint(2**62, (), generator=generator, device=device))
        weight = float(np.random.default_rng(seed).beta(self.alpha, self.alpha))    # torch's Beta takes no generator
        depth = int(torch.randint(stages, (), generator=generator, device=device)) if self.depth is None else self.depth
        return Mix(weight, torch.randperm(batch, generator=generator, device=device), depth)
