"""Manifold mixup for metric learning."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Generator, Tensor

from nearkin.config.bounds import above, between
from nearkin.registry import REGULARISERS
from nearkin.regularisers.base import Regulariser
from nearkin.spaces import Space


@dataclass(frozen=True)
class Mix:
    """What is mixed in one batch: h at `depth`, with the rows in `order`.

        h ← weight·h + (1 - weight)·h[order]

    Parameters:
        weight: λ, between 0 and 1.
        order: π, a permutation of the batch, (B,).
        depth: 0 mixes the input, k the output of stage k.
    """

    weight: float  # λ
    order: Tensor  # (B,) π
    depth: int  # 0 the input, k the output of stage k

    def __call__(self, depth: int, h: Tensor) -> Tensor:
        """Mix h (B, ...), the input of stage `depth + 1`, if this is the depth to mix at; else return it as it is."""
        if depth != self.depth:
            return h
        return self.weight * h + (1 - self.weight) * h[self.order]


@REGULARISERS.register("mixup")
class Mixup(Regulariser):
    """Manifold mixup: samples of a batch are mixed inside the network, and the loss is taken under the labels of both.

        h ← λ·h + (1 - λ)·h_π        L = λ·L(y) + (1 - λ)·L(y_π)

    with λ ~ Beta(α, α), a permutation π of the batch, and h the input (depth 0) or the output of a random stage k of
    the network. Miner and loss see the mixed embeddings twice, under the labels y and y_π. Proxy and softmax losses
    take the same two terms.

    Source: Verma et al. 2019 (ICML); Roth et al. 2020 (eq. 31), α = 2.

    Parameters:
        alpha: α of the Beta distribution; above 0. The larger, the more often both samples have about equal weight.
        depth: where to mix, 0 to the number of stages - 1; None draws one of all depths for each batch.

    Shapes: h (B, ...) at any depth, labels (B,); π is (B,).

    Example:
        objective = nearkin.engine.objective.Objective(nearkin.losses.Triplet(), None, [nearkin.regularisers.Mixup()])
        mix = objective.mix(len(images), stages=len(stages))            # None without mixup
        h = images
        for depth, stage in enumerate(stages):
            h = stage(mix(depth, h) if mix else h)
        value = objective(nearkin.pairs.Embedded(h, mix=mix), labels)
    """

    search: ClassVar = {"alpha": Space(0.2, 8, log=True)}

    def __init__(self, *, alpha: float = 2.0, depth: int | None = None):
        above(0, alpha=alpha)
        self.alpha = alpha
        self.depth = depth

    def mix(self, batch: int, stages: int, generator: Generator | None = None) -> Mix:
        """Draw λ, the permutation and the depth for one batch of `batch` samples and a network of `stages` stages.

        All of it comes from the generator, or from the global random state if there is none.
        """
        if self.depth is not None:
            between(0, stages - 1, depth=self.depth)
        device = generator.device if generator is not None else torch.device("cpu")
        seed = int(torch.randint(2**62, (), generator=generator, device=device))
        weight = float(np.random.default_rng(seed).beta(self.alpha, self.alpha))  # torch's Beta takes no generator
        depth = int(torch.randint(stages, (), generator=generator, device=device)) if self.depth is None else self.depth
        return Mix(weight, torch.randperm(batch, generator=generator, device=device), depth)
