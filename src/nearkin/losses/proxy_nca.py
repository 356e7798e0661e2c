"""ProxyNCA, and the objective of ProxyNCA++."""

from typing import ClassVar

from torch import Tensor, nn

from nearkin.config.bounds import above
from nearkin.losses.base import ProxyLoss
from nearkin.numerics import cross_entropy, others_and_target
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import Space


class _ProxyNCA(ProxyLoss):
    lr_factor = 50.0

    def __init__(self, num_classes: int, dim: int):
        super().__init__(num_classes, dim)
        nn.init.normal_(self.proxies, std=1 / 8)


@LOSSES.register("proxy_nca")
class ProxyNCA(_ProxyNCA):
    """ProxyNCA: each sample is drawn to its class proxy and away from the others; the value may be negative.

        D_ic = ‖3e_i - 3ŵ_c‖² = 18 - 18 c_ic,       L = mean_i D_iy + log Σ_{c≠y} e^{-D_ic}

    The formula is written for scale = 3; e_i and ŵ_c are unit vectors, c_ic is the cosine of sample i and proxy c, y
    the class of i. The true class is not in the sum. The proxies start as N(0, 1)/8 and learn at 50 times the base
    rate. It takes no miner.

    Source: Movshovitz-Attias et al. 2017 (ICCV); scale 3, start and learning rate of the proxies as in the code of Roth
    et al. 2020 (eq. 13 prints plain, unscaled distances). The exponents of Psomas 2020 are plain inner products (eq.
    2.27): scale = √½.

    Parameters:
        num_classes: C, the number of classes; at least 2. Labels are 0 to C - 1.
        dim: D, the dimension of the embeddings.
        scale: the length to which embeddings and proxies are scaled before distances are taken; above 0.

    Shapes: embeddings (B, D), labels (B,); the value is a scalar. The proxies are (C, D).

    Example:
        loss = nearkin.losses.ProxyNCA(num_classes=4, dim=8, scale=3.0)
        value = loss(embeddings, labels)
    """

    paper = "Movshovitz-Attias et al. 2017"
    search: ClassVar = {**ProxyLoss.search, "scale": Space(0.5, 10, log=True)}

    def __init__(self, num_classes: int, dim: int, *, scale: float = 3.0):
        super().__init__(num_classes, dim)
        above(0, scale=scale)
        self.scale = scale

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value; a miner's tuples are not used."""
        cosines, labels = self.cosines(pairs)  # (B, C)
        factor = 2 * self.scale**2  # -D = factor·c - factor
        others, target = others_and_target(cosines, labels, factor)  # (B,)
        return (others - factor * target).mean()


@LOSSES.register("proxy_nca_pp")
class ProxyNCApp(_ProxyNCA):
    """The softmax objective of ProxyNCA++: cross-entropy of the distances to all proxies.

        L = mean cross-entropy of the logits -‖e_i - ŵ_c‖²/T

    e_i and ŵ_c are unit vectors. Unlike in ProxyNCA, the true class is in the sum. T = 1/9 makes the logits -D_ic of
    ProxyNCA with scale 3. The proxies start as N(0, 1)/8. It takes no miner.

    Source: Teh et al. 2020 (ECCV); T = 1/9. Its proxies move at 10⁵ times the base rate under Adam with ε = 1; under an
    ordinary optimiser we take ProxyNCA's 50 times.

    Parameters:
        num_classes: C, the number of classes; at least 2. Labels are 0 to C - 1.
        dim: D, the dimension of the embeddings.
        temperature: T, by which squared distances are divided: the lower, the sharper the softmax; above 0.

    Shapes: embeddings (B, D), labels (B,); the value is a scalar. The proxies are (C, D).

    Example:
        loss = nearkin.losses.ProxyNCApp(num_classes=4, dim=8)
        value = loss(embeddings, labels)
    """

    paper = "Teh et al. 2020"
    search: ClassVar = {**ProxyLoss.search, "temperature": Space(0.02, 1, log=True)}

    def __init__(self, num_classes: int, dim: int, *, temperature: float = 1 / 9):
        super().__init__(num_classes, dim)
        above(0, temperature=temperature)
        self.temperature = temperature

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value; a miner's tuples are not used."""
        cosines, labels = self.cosines(pairs)  # (B, C)
        return cross_entropy(cosines, labels, scale=2 / self.temperature)
