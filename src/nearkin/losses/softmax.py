"""Softmax losses: mean cross-entropy over all classes, with a class vector w_c as proxy.

    softmax         logits w_c·z (+ b_c)                                                                raw vectors
    norm_softmax    logits c_ic / T,                c_ic the cosine of sample i and class c
    cosface         logits s·(c_ic - m·[c = y_i])
    arcface         logits s·cos(θ_ic + m·[c = y_i]),   θ = arccos c

Zhai, Wu 2019 (BMVC): T = 0.05 as in Roth et al. 2020 (whose eq. 19 leaves the true class out of the sum; the code does
not). Wang et al. 2018 (CVPR): m = 0.35, s = 64 as in pytorch-metric-learning. Deng et al. 2019 (CVPR): m = 0.5 radians,
s = 16, class vectors at 50 times the base rate as in Roth et al. (CosFace takes ArcFace's rate). All class vectors
start uniform within ±1/√D. monotone=True replaces cos(θ + m) beyond θ = π - m by cos θ - m·sin m, which keeps falling.
"""

import math

import torch
from torch import Tensor, nn

from nearkin.config.bounds import above, between
from nearkin.errors import NearkinError
from nearkin.losses.base import ProxyLoss
from nearkin.numerics import cross_entropy, log1p_exp, matmul, others_and_own
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES


class _Softmax(ProxyLoss):
    def __init__(self, num_classes: int, dim: int):
        super().__init__(num_classes, dim)
        nn.init.uniform_(self.proxies, -1 / math.sqrt(dim), 1 / math.sqrt(dim))


@LOSSES.register("softmax")
class Softmax(_Softmax):
    """Plain softmax on raw embeddings; retrieval still normalises them."""

    source = "Psomas 2020, eq. 2.25"

    def __init__(self, num_classes: int, dim: int, *, bias: bool = False):
        super().__init__(num_classes, dim)
        self.bias = nn.Parameter(torch.zeros(num_classes)) if bias else None

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        labels = self.check(pairs)
        logits = matmul(pairs.z, self.proxies.to(pairs.z.dtype).T)                              # (B, C)
        return cross_entropy(logits if self.bias is None else logits + self.bias, labels)


@LOSSES.register("norm_softmax")
class NormSoftmax(_Softmax):
    """Normalised softmax."""

    source = "Zhai, Wu 2019"

    def __init__(self, num_classes: int, dim: int, *, temperature: float = 0.05):
        super().__init__(num_classes, dim)
        above(0, temperature=temperature)
        self.temperature = temperature

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        cosines, labels = self.cosines(pairs)                                                   # (B, C)
        return cross_entropy(cosines, labels, scale=1 / self.temperature)


class _MarginSoftmax(_Softmax):
    lr_factor = 50.0

    def __init__(self, num_classes: int, dim: int, margin: float, scale: float):
        super().__init__(num_classes, dim)
        above(0, scale=scale)
        self.margin = margin
        self.scale = scale

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        cosines, labels = self.cosines(pairs)                                                   # (B, C)
        others, own = others_and_own(cosines, labels, self.scale)                               # (B,)
        return log1p_exp(others - self.scale * self.shift(own)).mean()

    def shift(self, own: Tensor) -> Tensor:
        """The cosine of the true class, with the margin."""
        raise NearkinError(f"{type(self).__name__} does not define shift(own)")


@LOSSES.register("cosface")
class CosFace(_MarginSoftmax):
    """CosFace: a margin on the cosine of the true class."""

    source = "Wang et al. 2018"

    def __init__(self, num_classes: int, dim: int, *, margin: float = 0.35, scale: float = 64.0):
        between(0, 2, margin=margin)
        super().__init__(num_classes, dim, margin, scale)

    def shift(self, own: Tensor) -> Tensor:
        return own - self.margin


@LOSSES.register("arcface")
class ArcFace(_MarginSoftmax):
    """ArcFace: a margin (radians) on the angle to the true class."""

    source = "Deng et al. 2019"

    def __init__(
        self, num_classes: int, dim: int, *, margin: float = 0.5, scale: float = 16.0, monotone: bool = False
    ):
        between(0, math.pi, margin=margin)
        super().__init__(num_classes, dim, margin, scale)
        self.monotone = monotone

    def shift(self, own: Tensor) -> Tensor:
        cos = own.clamp(-1 + 1e-7, 1 - 1e-7)
        shifted = cos * math.cos(self.margin) - (1 - cos.square()).sqrt() * math.sin(self.margin)   # cos(θ + m)
        if not self.monotone:
            return shifted
        return torch.where(cos >= -math.cos(self.margin), shifted, cos - self.margin * math.sin(self.margin))
