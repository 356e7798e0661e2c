"""Softmax losses, with one vector per class: plain, normalised, CosFace and ArcFace."""

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from nearkin.config.bounds import above, between
from nearkin.errors import NearkinError
from nearkin.losses.base import ProxyLoss
from nearkin.numerics import cross_entropy, log1p_exp, matmul, others_and_target
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import Space


class _Softmax(ProxyLoss):
    def __init__(self, num_classes: int, dim: int):
        super().__init__(num_classes, dim)
        nn.init.uniform_(self.proxies, -1 / math.sqrt(dim), 1 / math.sqrt(dim))


@LOSSES.register("softmax")
class Softmax(_Softmax):
    """Plain softmax loss on raw embeddings; retrieval still normalises them.

        L = mean cross-entropy over all classes of the logits w_c·z_i (+ b_c)

    The class vectors w_c act as proxies and start uniform within ±1/√D. It takes no miner.

    Source: Psomas 2020 (eq. 2.25).

    Parameters:
        num_classes: C, the number of classes; at least 2. Labels are 0 to C - 1.
        dim: D, the dimension of the embeddings.
        bias: True adds a learned bias b_c per class, which starts at 0.

    Shapes: embeddings (B, D), labels (B,); the value is a scalar. The class vectors are (C, D).

    Example:
        loss = nearkin.losses.Softmax(num_classes=4, dim=8)
        value = loss(embeddings, labels)
    """

    paper = "Psomas 2020, eq. 2.25"

    def __init__(self, num_classes: int, dim: int, *, bias: bool = False):
        super().__init__(num_classes, dim)
        self.bias = nn.Parameter(torch.zeros(num_classes)) if bias else None

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value; a miner's tuples are not used."""
        labels = self.check(pairs)
        logits = matmul(pairs.z, self.proxies.to(pairs.z.dtype).T)  # (B, C)
        return cross_entropy(logits if self.bias is None else logits + self.bias, labels)


@LOSSES.register("norm_softmax")
class NormSoftmax(_Softmax):
    """Normalised softmax loss: cross-entropy of the cosines with the class vectors.

        L = mean cross-entropy over all classes of the logits c_ic / T,      c_ic the cosine of sample i and class c

    The class vectors w_c act as proxies and start uniform within ±1/√D. It takes no miner.

    Source: Zhai, Wu 2019 (BMVC); T = 0.05 as in Roth et al. 2020 (whose eq. 19 leaves the true class out of the sum;
    the code does not).

    Parameters:
        num_classes: C, the number of classes; at least 2. Labels are 0 to C - 1.
        dim: D, the dimension of the embeddings.
        temperature: T, by which cosines are divided: the lower, the sharper the softmax; above 0.

    Shapes: embeddings (B, D), labels (B,); the value is a scalar. The class vectors are (C, D).

    Example:
        loss = nearkin.losses.NormSoftmax(num_classes=4, dim=8)
        value = loss(embeddings, labels)
    """

    paper = "Zhai, Wu 2019"
    search: ClassVar = {**ProxyLoss.search, "temperature": Space(0.01, 0.3, log=True)}

    def __init__(self, num_classes: int, dim: int, *, temperature: float = 0.05):
        super().__init__(num_classes, dim)
        above(0, temperature=temperature)
        self.temperature = temperature

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value; a miner's tuples are not used."""
        cosines, labels = self.cosines(pairs)  # (B, C)
        return cross_entropy(cosines, labels, scale=1 / self.temperature)


class _MarginSoftmax(_Softmax):
    lr_factor = 50.0

    def __init__(self, num_classes: int, dim: int, margin: float, scale: float):
        super().__init__(num_classes, dim)
        above(0, scale=scale)
        self.margin = margin
        self.scale = scale

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value; a miner's tuples are not used."""
        cosines, labels = self.cosines(pairs)  # (B, C)
        others, target = others_and_target(cosines, labels, self.scale)  # (B,)
        return log1p_exp(others - self.scale * self.shift(target)).mean()

    def shift(self, target: Tensor) -> Tensor:
        """The cosine of each sample with its true class, (B,), reduced by the margin."""
        raise NearkinError(f"{type(self).__name__} does not define shift(target)")


@LOSSES.register("cosface")
class CosFace(_MarginSoftmax):
    """CosFace: normalised softmax with a margin on the cosine of the true class.

        L = mean cross-entropy over all classes of the logits s·(c_ic - m·[c = y_i])

    c_ic is the cosine of sample i and class c. The class vectors w_c act as proxies, start uniform within ±1/√D and
    learn at 50 times the base rate, which is ArcFace's. It takes no miner.

    Source: Wang et al. 2018 (CVPR); m = 0.35, s = 64 as in pytorch-metric-learning.

    Parameters:
        num_classes: C, the number of classes; at least 2. Labels are 0 to C - 1.
        dim: D, the dimension of the embeddings.
        margin: m, subtracted from the cosine of the true class; between 0 and 2.
        scale: s, by which cosines are multiplied: the higher, the sharper the softmax; above 0.

    Shapes: embeddings (B, D), labels (B,); the value is a scalar. The class vectors are (C, D).

    Example:
        loss = nearkin.losses.CosFace(num_classes=4, dim=8)
        value = loss(embeddings, labels)
    """

    paper = "Wang et al. 2018"
    search: ClassVar = {**ProxyLoss.search, "margin": Space(0.05, 0.8), "scale": Space(8, 256, log=True)}

    def __init__(self, num_classes: int, dim: int, *, margin: float = 0.35, scale: float = 64.0):
        between(0, 2, margin=margin)
        super().__init__(num_classes, dim, margin, scale)

    def shift(self, target: Tensor) -> Tensor:
        """The cosine with the true class, (B,), minus the margin."""
        return target - self.margin


@LOSSES.register("arcface")
class ArcFace(_MarginSoftmax):
    """ArcFace: normalised softmax with a margin, in radians, on the angle to the true class.

        L = mean cross-entropy over all classes of the logits s·cos(θ_ic + m·[c = y_i]),      θ = arccos c

    c_ic is the cosine of sample i and class c. The class vectors w_c act as proxies, start uniform within ±1/√D and
    learn at 50 times the base rate. It takes no miner.

    Source: Deng et al. 2019 (CVPR); m = 0.5 radians, s = 16, class vectors at 50 times the base rate as in Roth et al.
    2020.

    Parameters:
        num_classes: C, the number of classes; at least 2. Labels are 0 to C - 1.
        dim: D, the dimension of the embeddings.
        margin: m in radians, added to the angle to the true class; between 0 and π.
        scale: s, by which cosines are multiplied: the higher, the sharper the softmax; above 0.
        monotone: True replaces cos(θ + m) beyond θ = π - m by cos θ - m·sin m, which keeps falling.

    Shapes: embeddings (B, D), labels (B,); the value is a scalar. The class vectors are (C, D).

    Example:
        loss = nearkin.losses.ArcFace(num_classes=4, dim=8)
        value = loss(embeddings, labels)
    """

    paper = "Deng et al. 2019"
    search: ClassVar = {**ProxyLoss.search, "margin": Space(0.1, 1), "scale": Space(8, 256, log=True)}

    def __init__(self, num_classes: int, dim: int, *, margin: float = 0.5, scale: float = 16.0, monotone: bool = False):
        between(0, math.pi, margin=margin)
        super().__init__(num_classes, dim, margin, scale)
        self.monotone = monotone

    def shift(self, target: Tensor) -> Tensor:
        """cos(θ + m) for the cosines (B,) with the true class; clamped at ±(1 - 1e-7), where its gradient is finite."""
        cos = target.clamp(-1 + 1e-7, 1 - 1e-7)
        shifted = cos * math.cos(self.margin) - (1 - cos.square()).sqrt() * math.sin(self.margin)  # cos(θ + m)
        if not self.monotone:
            return shifted
        return torch.where(cos >= -math.cos(self.margin), shifted, cos - self.margin * math.sin(self.margin))
