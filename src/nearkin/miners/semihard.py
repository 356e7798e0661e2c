"""Semihard negatives: farther than the positive, but within the margin.

    d_ap < d_an < d_ap + γ

One triplet an anchor: p uniform, n uniform among the admissible, any negative where there is none. Schroff et al. 2015
(CVPR), as in the code of Roth et al. 2020: distances are not squared, γ is the loss's margin unless set. hardest=True
takes the nearest negative beyond the positive (Psomas 2020, eq. 2.20); every=True lists all triplets with
0 < d_an - d_ap ≤ γ, as pytorch-metric-learning does.
"""

import torch
from torch import Generator, Tensor

from nearkin.config.bounds import at_least
from nearkin.errors import NearkinError
from nearkin.miners.base import Miner, triplets_where
from nearkin.pairs import Pairs, Triplets, draw_one
from nearkin.registry import MINERS


@MINERS.register("semihard")
class Semihard(Miner):
    """Semihard negatives."""

    gives = Triplets
    source = "Schroff et al. 2015"

    def __init__(self, *, margin: float | None = None, hardest: bool = False, every: bool = False):
        if margin is not None:
            at_least(0, margin=margin)
        if hardest and every:
            raise NearkinError("hardest and every exclude each other: one triplet an anchor, or all")
        self.margin = margin
        self.hardest = hardest
        self.every = every

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets:
        if self.margin is None:
            raise NearkinError("semihard used alone needs a margin: Semihard(margin=0.2)")
        margin = self.margin

        def within(positive: Tensor) -> Tensor:
            d_ap = pairs.d.gather(1, positive[:, None])                                         # (B, 1)
            return (pairs.d > d_ap) & (pairs.d - d_ap <= margin)                                # (B, M)

        if self.every:
            return triplets_where(pairs, within)
        positive = draw_one(pairs.positive, generator)                                          # (B,)
        if self.hardest:
            beyond = pairs.negative & (pairs.d > pairs.d.gather(1, positive[:, None]))          # (B, M)
            negative = pairs.d.masked_fill(~beyond, torch.inf).argmin(1)
            fallback = ~beyond.any(1)
        else:
            admissible = pairs.negative & within(positive)
            negative = draw_one(admissible, generator)
            fallback = ~admissible.any(1)
        negative = torch.where(fallback, draw_one(pairs.negative, generator), negative)
        anchor = (pairs.positive.any(1) & pairs.negative.any(1)).nonzero()[:, 0]                # (T,)
        return Triplets(anchor, positive[anchor], negative[anchor])
