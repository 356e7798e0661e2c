"""Angular loss, beside the N-pair loss."""

import math
from typing import ClassVar

from torch import Generator, Tensor

from nearkin.config.bounds import above, at_least
from nearkin.errors import NearkinError
from nearkin.losses.base import Loss
from nearkin.losses.npair import draw_couples, npair
from nearkin.numerics import log1p_exp, masked_lse, matmul, mean_norm
from nearkin.pairs import Couples, Pairs
from nearkin.registry import LOSSES
from nearkin.spaces import Space


@LOSSES.register("angular")
class Angular(Loss):
    """Angular loss beside the N-pair loss: it bounds the angle at the negative of each triplet.

        ℓ_a = log(1 + Σ_n exp(4 tan²α (e_a + e_p)·e_n - 2(1 + tan²α) e_a·e_p))
        L   = N-pair + λ·mean_a ℓ_a + ν·mean_i ‖z_i‖

    Every anchor a that has a positive and a negative gets one positive p, drawn at random; both terms use the same one.
    n runs over all negatives of a. e are unit vectors, z raw vectors. The N-pair term is `NPair` with pairing="anchor",
    without its penalty.

    Source: Wang et al. 2017 (ICCV); α = 45°, λ = 2, ν = 0.005 as in Roth et al. 2020, whose eq. 5 is misprinted: tan²
    belongs to α alone, and the last product is a·p.

    Parameters:
        alpha: α in degrees, the largest angle at the negative in the triangle of a, p and n; above 0 and below 90.
        lam: λ, weight of the angular term; at least 0.
        npair: weight of the N-pair term; at least 0, and 0 leaves it out.
        nu: ν, weight of the mean norm of the raw embeddings; at least 0.

    Shapes: embeddings (B, D), labels (B,); the value is a scalar. Positives drawn by the caller are `Couples` of (T,).

    Example:
        loss = nearkin.losses.Angular(alpha=45.0, lam=2.0)
        value = loss(embeddings, labels)
    """

    paper = "Wang et al. 2017"
    accepts: ClassVar[tuple[type, ...]] = (Couples,)
    search: ClassVar = {"alpha": Space(30, 60), "lam": Space(0.2, 20, log=True), "nu": Space(1e-4, 0.1, log=True)}

    def __init__(self, *, alpha: float = 45.0, lam: float = 2.0, npair: float = 1.0, nu: float = 0.005):
        super().__init__()
        above(0, alpha=alpha)
        if not alpha < 90:
            raise NearkinError(f"alpha={alpha}: an angle in degrees below 90")
        at_least(0, lam=lam, npair=npair, nu=nu)
        self.alpha = alpha
        self.lam = lam
        self.npair = npair
        self.nu = nu

    def draw(self, pairs: Pairs, tuples: Couples | None, generator: Generator | None) -> Couples:
        """One random positive for each anchor that has a positive and a negative: `Couples` of (T,)."""
        return draw_couples(pairs, generator) if tuples is None else tuples

    def compute(self, pairs: Pairs, couples: Couples | None = None) -> Tensor:
        """The scalar value, given the couples (T,) that `draw` made."""
        if couples is None:
            raise NearkinError("Angular.compute needs couples: call the loss, not compute")
        tan2 = math.tan(math.radians(self.alpha)) ** 2
        e_a, e_p = pairs.e[couples.anchor], pairs.reference_e[couples.positive]  # (T, D)
        between = matmul(e_a + e_p, pairs.reference_e.T)  # (T, M)
        repel = masked_lse(between, pairs.negative[couples.anchor], 1, scale=4 * tan2)  # (T,)
        terms = log1p_exp(repel - 2 * (1 + tan2) * (e_a * e_p).sum(1))  # (T,)
        value = self.lam * terms.sum() / max(1, len(terms))
        if self.npair:
            value = value + self.npair * npair(pairs.z, pairs.reference_z, pairs.negative, couples)
        return value + self.nu * mean_norm(pairs.z) if self.nu else value
