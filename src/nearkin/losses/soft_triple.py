"""SoftTriple loss, with several centres per class."""

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nearkin.config.bounds import above, at_least
from nearkin.losses.base import ProxyLoss
from nearkin.numerics import log1p_exp, matmul, others_and_target, unit
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import TABLE_15, Space


@LOSSES.register("soft_triple")
class SoftTriple(ProxyLoss):
    """SoftTriple loss: a softmax loss with several centres v_ck per class.

        S_ic = Σ_k softmax_k(e_i·v_ck / γ)·(e_i·v_ck)
        L = mean cross-entropy of λ(S_ic - δ·[c = y_i]) + τ/(C·K(K-1)) Σ_c Σ_{k<l} √(2 + 1e-5 - 2 v_ck·v_cl)

    The centres are unit vectors in the formula. Centre k of class c is row k·C + c of `proxies`. It takes no miner.

    Source: Qian et al. 2019 (ICCV); λ = 8, γ = 0.1, δ = 0.01, τ = 0.2, K = 2, centres at the base rate as Roth et al.
    2020 state them (the official code has λ = 20, K = 10 and 100 times the base rate; their eq. 16 lacks the last
    factor of S).

    Parameters:
        num_classes: C, the number of classes; at least 2. Labels are 0 to C - 1.
        dim: D, the dimension of the embeddings.
        scale: λ, by which similarities are multiplied: the higher, the sharper the softmax over classes; above 0.
        gamma: γ, the temperature of the softmax over the centres of a class; above 0.
        delta: δ, the margin that is subtracted from the similarity of the true class; at least 0.
        tau: τ, weight of the term that draws superfluous centres of a class together; at least 0.
        centres: K, the number of centres per class; at least 1.

    Shapes: embeddings (B, D), labels (B,); the value is a scalar. The centres are (K·C, D).

    Example:
        loss = nearkin.losses.SoftTriple(num_classes=4, dim=8, centres=2)
        value = loss(embeddings, labels)
    """

    paper = "Qian et al. 2019"
    search: ClassVar = {
        "scale": Space(2, 100, 2, source=TABLE_15),
        "gamma": Space(
            options=[1 / factor for factor in range(10, 101, 10)],
            source=f"{TABLE_15}, whose gamma is a factor: 10 to 100 in steps of 10; here, a divisor, 1/10 to 1/100",
        ),
        "delta": Space(0, 1, 0.1, source=TABLE_15),
        "tau": Space(0, 1, 0.1, source=TABLE_15),
        "train.groups.loss.lr": Space(1e-5, 1e-4, 1e-5, source=TABLE_15),
    }

    def __init__(
        self,
        num_classes: int,
        dim: int,
        *,
        scale: float = 8.0,
        gamma: float = 0.1,
        delta: float = 0.01,
        tau: float = 0.2,
        centres: int = 2,
    ):
        at_least(1, centres=centres)
        super().__init__(num_classes, dim, per_class=centres)
        above(0, scale=scale, gamma=gamma)
        at_least(0, delta=delta, tau=tau)
        self.scale = scale
        self.gamma = gamma
        self.delta = delta
        self.tau = tau
        self.centres = centres
        bound = 1 / math.sqrt(centres * num_classes)  # kaiming-uniform (a = √5) of a (D, C·K) matrix
        nn.init.uniform_(self.proxies, -bound, bound)

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value; a miner's tuples are not used."""
        cosines, labels = self.cosines(pairs)  # (B, K·C)
        s = _SoftMaximum.apply(cosines.view(len(labels), self.centres, self.num_classes), self.gamma)  # (B, C)
        others, target = others_and_target(s, labels, self.scale)  # (B,)
        value = log1p_exp(others - self.scale * (target - self.delta)).mean()
        return value + self.tau * self.spread(value.dtype) if self.tau else value

    def spread(self, dtype: torch.dtype | None = None) -> Tensor:
        """The second term without τ, a scalar: the distances between the centres of each class, divided by C·K(K-1).

        Minimising it draws superfluous centres together. It is computed in `dtype` if that is given.
        """
        proxies = self.proxies.to(dtype or self.proxies.dtype)
        v = unit(proxies).view(self.centres, self.num_classes, -1).transpose(0, 1)  # (C, K, D)
        upper = torch.triu_indices(self.centres, self.centres, 1, device=v.device)
        gram = matmul(v, v.transpose(1, 2))[:, upper[0], upper[1]]  # (C, K(K-1)/2)
        return (2 + 1e-5 - 2 * gram).sqrt().sum() / max(1, self.num_classes * self.centres * (self.centres - 1))


class _SoftMaximum(torch.autograd.Function):
    """Σ_k softmax_k(x/γ)·x_k over dimension 1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gamma: float) -> Tensor:
        share = (x / gamma).softmax(1)  # (B, K, C)
        s = (share * x).sum(1)  # (B, C)
        ctx.save_for_backward(x, share, s)
        ctx.gamma = gamma
        return s

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        x, share, s = ctx.saved_tensors
        return (x - s[:, None]).div_(ctx.gamma).add_(1).mul_(share).mul_(g[:, None]), None
