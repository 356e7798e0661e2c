"""ProxyAnchor loss."""

from typing import ClassVar

from torch import Tensor, nn

from nearkin.config.bounds import above, at_least
from nearkin.losses.base import ProxyLoss
from nearkin.numerics import log1p_exp, masked_lse, others_and_target
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import TABLE_15, Space


@LOSSES.register("proxy_anchor")
class ProxyAnchor(ProxyLoss):
    """ProxyAnchor loss: each class proxy is an anchor that attracts its samples and repels all others.

        L = 1/|C⁺| Σ_{c∈C⁺} log(1 + Σ_{y_i=c} exp(-α(s_ic - δ))) + 1/C Σ_c log(1 + Σ_{y_i≠c} exp(α(s_ic + δ)))

    C⁺ are the classes of the batch, s_ic is the cosine of sample i and proxy c. The proxies start kaiming-normal (fan
    out) and learn at 100 times the base rate. It takes no miner.

    Source: Kim et al. 2020 (CVPR); α = 32, δ = 0.1, start and learning rate of the proxies as in the official code.

    Parameters:
        num_classes: C, the number of classes; at least 2. Labels are 0 to C - 1.
        dim: D, the dimension of the embeddings.
        alpha: α, how strongly the hardest samples of a proxy dominate the others; above 0.
        delta: δ, the margin: s_ic should exceed δ for the sample's class and stay below -δ for the others; at least 0.

    Shapes: embeddings (B, D), labels (B,); the value is a scalar. The proxies are (C, D).

    Example:
        loss = nearkin.losses.ProxyAnchor(num_classes=4, dim=8)
        value = loss(embeddings, labels)
    """

    paper = "Kim et al. 2020"
    lr_factor = 100.0
    search: ClassVar = {
        **ProxyLoss.search,
        "alpha": Space(2, 100, 2, source=TABLE_15),
        "delta": Space(0, 1, 0.1, source=TABLE_15),
    }

    def __init__(self, num_classes: int, dim: int, *, alpha: float = 32.0, delta: float = 0.1):
        super().__init__(num_classes, dim)
        above(0, alpha=alpha)
        at_least(0, delta=delta)
        self.alpha = alpha
        self.delta = delta
        nn.init.kaiming_normal_(self.proxies, mode="fan_out")

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value; a miner's tuples are not used."""
        cosines, labels = self.cosines(pairs)  # (B, C)
        others, target = others_and_target(cosines, labels, self.alpha, over=0)  # (C,), (B,)
        return self.attract(target, labels) + log1p_exp(others + self.alpha * self.delta).mean()

    def attract(self, target: Tensor, labels: Tensor) -> Tensor:
        """The first term, a scalar, from the cosine of each sample with its own proxy (B,) and the labels (B,).

        It works on |C⁺| rows, one per class of the batch, instead of C.
        """
        present = labels.unique()  # (C⁺,)
        member = present[:, None] == labels  # (C⁺, B)
        pull = masked_lse(target.expand(member.shape), member, 1, -self.alpha) + self.alpha * self.delta
        return log1p_exp(pull).sum() / max(1, len(present))
