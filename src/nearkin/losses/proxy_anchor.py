"""ProxyAnchor loss.

    L = 1/|C⁺| Σ_{c∈C⁺} log(1 + Σ_{y_i=c} exp(-α(s_ic - δ))) + 1/C Σ_c log(1 + Σ_{y_i≠c} exp(α(s_ic + δ)))

with C⁺ the classes of the batch. Kim et al. 2020 (CVPR): α = 32, δ = 0.1, proxies kaiming-normal (fan out) and
100 times the base learning rate, as in the official code.
"""

from torch import Tensor, nn

from nearkin.bounds import above, at_least
from nearkin.losses.base import ProxyLoss
from nearkin.pairs import Pairs, Triplets, masked_lse
from nearkin.registry import LOSSES


@LOSSES.register("proxy_anchor")
class ProxyAnchor(ProxyLoss):
    lr_factor = 100.0

    def __init__(self, num_classes: int, dim: int, *, alpha: float = 32.0, delta: float = 0.1):
        super().__init__(num_classes, dim)
        above(0, alpha=alpha)
        at_least(0, delta=delta)
        self.alpha = alpha
        self.delta = delta
        nn.init.kaiming_normal_(self.proxies, mode="fan_out")

    def compute(self, pairs: Pairs, triplets: Triplets | None = None) -> Tensor:
        proxies = self.against_proxies(pairs)
        s, own = proxies.s, proxies.positive                                                    # (B, C)
        attract = masked_lse(-self.alpha * (s - self.delta), own, 0, with_zero=True)            # (C,)
        repel = masked_lse(self.alpha * (s + self.delta), ~own, 0, with_zero=True)              # (C,)
        present = own.any(0)                                                                    # (C,)
        return attract.sum() / present.sum().clamp_min(1) + repel.sum() / self.num_classes
