"""ProxyAnchor loss.

    L = 1/|C⁺| Σ_{c∈C⁺} log(1 + Σ_{y_i=c} exp(-α(s_ic - δ))) + 1/C Σ_c log(1 + Σ_{y_i≠c} exp(α(s_ic + δ)))

with C⁺ the classes of the batch. Kim et al. 2020 (CVPR): α = 32, δ = 0.1, proxies kaiming-normal (fan out) and
100 times the base learning rate, as in the official code.
"""

from torch import Tensor, nn

from nearkin.config.bounds import above, at_least
from nearkin.losses.base import ProxyLoss
from nearkin.numerics import log1p_exp, masked_lse, others_and_own
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES


@LOSSES.register("proxy_anchor")
class ProxyAnchor(ProxyLoss):
    """ProxyAnchor loss."""

    source = "Kim et al. 2020"
    lr_factor = 100.0

    def __init__(self, num_classes: int, dim: int, *, alpha: float = 32.0, delta: float = 0.1):
        super().__init__(num_classes, dim)
        above(0, alpha=alpha)
        at_least(0, delta=delta)
        self.alpha = alpha
        self.delta = delta
        nn.init.kaiming_normal_(self.proxies, mode="fan_out")

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        cosines, labels = self.cosines(pairs)                                                   # (B, C)
        others, own = others_and_own(cosines, labels, self.alpha, over=0)                       # (C,), (B,)
        return self.attract(own, labels) + log1p_exp(others + self.alpha * self.delta).mean()

    def attract(self, own: Tensor, labels: Tensor) -> Tensor:
        """The first term, over the samples' own cosines alone: |C⁺| rows, not C."""
        present = labels.unique()                                                               # (C⁺,)
        member = present[:, None] == labels                                                     # (C⁺, B)
        pull = masked_lse(own.expand(member.shape), member, 1, -self.alpha) + self.alpha * self.delta
        return log1p_exp(pull).sum() / max(1, len(present))
