"""ProxyNCA and the objective of ProxyNCA++.

    D_ic = ‖3e_i - 3ŵ_c‖² = 18 - 18 c_ic
    proxy_nca       L = mean_i D_iy + log Σ_{c≠y} e^{-D_ic}                 the true class is not in the sum
    proxy_nca_pp    L = mean cross-entropy of the logits -‖e - ŵ‖²/T        it is; T = 1/9 makes them -D

Movshovitz-Attias et al. 2017 (ICCV), scale 3, proxies N(0, 1)/8 at 50 times the base rate as in the code of Roth et al.
2020 (eq. 13 prints plain, unscaled distances). Teh et al. 2020 (ECCV), T = 1/9; its proxies move at 10⁵ times the base
rate under Adam with ε = 1: under an ordinary optimiser we take ProxyNCA's 50.
"""

from torch import Tensor, nn

from nearkin.config.bounds import above
from nearkin.losses.base import ProxyLoss
from nearkin.numerics import cross_entropy, others_and_own
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES


class _ProxyNCA(ProxyLoss):
    lr_factor = 50.0

    def __init__(self, num_classes: int, dim: int):
        super().__init__(num_classes, dim)
        nn.init.normal_(self.proxies, std=1 / 8)


@LOSSES.register("proxy_nca")
class ProxyNCA(_ProxyNCA):
    """ProxyNCA; its value may be negative."""

    source = "Movshovitz-Attias et al. 2017"

    def __init__(self, num_classes: int, dim: int, *, scale: float = 3.0):
        super().__init__(num_classes, dim)
        above(0, scale=scale)
        self.scale = scale

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        cosines, labels = self.cosines(pairs)                                                   # (B, C)
        factor = 2 * self.scale**2                                                              # -D = factor·c - factor
        others, own = others_and_own(cosines, labels, factor)                                   # (B,)
        return (others - factor * own).mean()


@LOSSES.register("proxy_nca_pp")
class ProxyNCApp(_ProxyNCA):
    """The softmax objective of ProxyNCA++."""

    source = "Teh et al. 2020"

    def __init__(self, num_classes: int, dim: int, *, temperature: float = 1 / 9):
        super().__init__(num_classes, dim)
        above(0, temperature=temperature)
        self.temperature = temperature

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        cosines, labels = self.cosines(pairs)                                                   # (B, C)
        return cross_entropy(cosines, labels, scale=2 / self.temperature)
