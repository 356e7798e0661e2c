"""Distance-weighted sampling of negatives."""

from typing import ClassVar

import torch
from torch import Generator, Tensor

from nearkin.config.bounds import above, between
from nearkin.miners.base import Miner
from nearkin.numerics import double, drawn
from nearkin.pairs import Pairs, Triplets, draw_one
from nearkin.registry import MINERS
from nearkin.spaces import Space


@MINERS.register("distance_weighted")
class DistanceWeighted(Miner):
    """Distance-weighted sampling: negatives drawn so that their distances come out spread evenly.

        P(n | a) ∝ 1/q(d̃_an),   q(d) = d^{D-2} (1 - d²/4)^{(D-3)/2},   d̃ = max(d, 0.5)

    d are distances of unit vectors, q is the density of distances between random points of the sphere in D dimensions.
    The positive is uniform. There is one triplet per anchor that has a positive and a negative. Each anchor's row is
    normalised by itself, in logarithms: a maximum over the batch would make the other rows underflow at large D.

    Source: Wu et al. 2017 (ICCV); the clamp from below is 0.5 (the "λ" of Roth et al. 2020, eq. 24).

    Parameters:
        cutoff: the lower clamp of distances, 0.5 in the formula; between 0 and 2.
        upper: negatives at this distance or beyond are left out; an anchor with no negative below it takes any. None
            (no limit) as in the code of Roth et al., 1.4 in their text; above cutoff.

    Shapes: embeddings (B, D), labels (B,); it gives `Triplets`: anchor, positive, negative, indices of (T,), T ≤ B.

    Example:
        tuples = nearkin.miners.DistanceWeighted(cutoff=0.5)(embeddings, labels)
        value = nearkin.losses.Triplet()(embeddings, labels, tuples)
    """

    gives = Triplets
    paper = "Wu et al. 2017"
    search: ClassVar = {"cutoff": Space(0.1, 1)}

    def __init__(self, *, cutoff: float = 0.5, upper: float | None = None):
        between(0, 2, cutoff=cutoff)
        if upper is not None:
            above(cutoff, upper=upper)
        self.cutoff = cutoff
        self.upper = upper

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets:
        """One triplet per anchor that has a positive and a negative, drawn with the generator."""
        anchor = (pairs.positive.any(1) & pairs.negative.any(1)).nonzero()[:, 0]  # (T,)
        positive = draw_one(pairs.positive, generator)[anchor]
        up_to = double(self.weights(pairs)[anchor]).cumsum(1)  # (T, M)
        chance = drawn(torch.rand, len(anchor), 1, generator=generator, device=up_to.device, dtype=torch.float64)
        negative = torch.searchsorted(up_to, chance.mul_(up_to[:, -1:]), right=True)[:, 0]  # (T,)
        return Triplets(anchor, positive, negative.to(anchor.device))

    def weights(self, pairs: Pairs) -> Tensor:
        """P(n | a), (B, M): each row sums to 1, or is 0 for an anchor without negatives."""
        dim = pairs.z.shape[1]
        d2 = (2 - 2 * pairs.s).clamp_(self.cutoff**2, (2 - 1e-4) ** 2)  # (B, M)
        allowed = pairs.negative
        if self.upper is not None:
            below = allowed & (d2 < self.upper**2)
            allowed = torch.where(below.any(1, keepdim=True), below, allowed)
        log = (d2 / -4).log1p_().mul_((3 - dim) / 2).add_(d2.log_(), alpha=(2 - dim) / 2)  # (B, M) -log q
        log.masked_fill_(~allowed, -torch.inf)
        return log.softmax(1).masked_fill_(~allowed, 0)
