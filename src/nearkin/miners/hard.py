"""Hard and softly hard triplets, one an anchor.

    hard        p the least similar positive, n the most similar negative              Psomas 2020, eqs. 2.18 and 2.19
    softhard    n uniform among d_an < max_p d_ap, p uniform among d_ap > min_n d_an; where none, any  Roth et al. 2020

(Roth et al.'s eqs. 21 and 22 write arg max and arg min where the values are meant.)
"""

import torch
from torch import Generator

from nearkin.miners.base import Miner
from nearkin.pairs import Pairs, Triplets, draw_one
from nearkin.registry import MINERS


@MINERS.register("hard")
class Hard(Miner):
    """The hardest positive and the hardest negative of each anchor."""

    gives = Triplets
    source = "Hermans et al. 2017"

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets:
        anchor = (pairs.positive.any(1) & pairs.negative.any(1)).nonzero()[:, 0]                # (T,)
        positive = pairs.s.masked_fill(~pairs.positive, torch.inf).argmin(1)
        negative = pairs.s.masked_fill(~pairs.negative, -torch.inf).argmax(1)
        return Triplets(anchor, positive[anchor], negative[anchor])


@MINERS.register("softhard")
class Softhard(Miner):
    """Random among negatives nearer than the farthest positive, and positives beyond the nearest negative."""

    gives = Triplets
    source = "Roth et al. 2020"

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets:
        furthest = pairs.s.masked_fill(~pairs.positive, torch.inf).amin(1, keepdim=True)        # (B, 1)
        nearest = pairs.s.masked_fill(~pairs.negative, -torch.inf).amax(1, keepdim=True)        # (B, 1)
        hard_positive = pairs.positive & (pairs.s < nearest)                                    # (B, M)
        hard_negative = pairs.negative & (pairs.s > furthest)                                   # (B, M)
        hard_positive = torch.where(hard_positive.any(1, keepdim=True), hard_positive, pairs.positive)
        hard_negative = torch.where(hard_negative.any(1, keepdim=True), hard_negative, pairs.negative)
        anchor = (pairs.positive.any(1) & pairs.negative.any(1)).nonzero()[:, 0]                # (T,)
        return Triplets(anchor, draw_one(hard_positive, generator)[anchor], draw_one(hard_negative, generator)[anchor])
