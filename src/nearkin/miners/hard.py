"""Hard and softly hard triplets, one per anchor."""

from typing import ClassVar

import torch
from torch import Generator

from nearkin.config.bounds import between
from nearkin.miners.base import Miner, one_per_anchor
from nearkin.pairs import Pairs, Triplets, draw_one
from nearkin.registry import MINERS
from nearkin.spaces import Space


@MINERS.register("hard")
class Hard(Miner):
    """The hardest positive and the hardest negative of each anchor.

        p = the least similar positive,   n = the most similar negative

    There is one triplet per anchor that has a positive and a negative.

    Source: Hermans et al. 2017; Psomas 2020 (eqs. 2.18 and 2.19).

    Shapes: embeddings (B, D), labels (B,); it gives `Triplets`: anchor, positive, negative, indices of (T,), T ≤ B.

    Example:
        tuples = nearkin.miners.Hard()(embeddings, labels)
        value = nearkin.losses.Triplet()(embeddings, labels, tuples)
    """

    gives = Triplets
    paper = "Hermans et al. 2017"

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets:
        """One triplet per anchor that has a positive and a negative; the generator is not used."""
        positive = pairs.s.masked_fill(~pairs.positive, torch.inf).argmin(1)
        negative = pairs.s.masked_fill(~pairs.negative, -torch.inf).argmax(1)
        return one_per_anchor(pairs, positive, negative)


@MINERS.register("hard_floor")
class HardFloor(Miner):
    """A random positive and the nearest negative, where distances below a floor count as the floor.

        p uniform,   n = argmin_n max(d_an, f_a),   f_a = min(floor, max_p d_ap)

    Negatives nearer than f_a are all as near as each other: one of them is drawn, so that the hardest, which are often
    wrong labels or near copies, do not always win. There is one triplet per anchor that has a positive and a negative.

    Source: the hard selector of Zheng et al. 2021, public code, which takes the first of equally near negatives; that
    max_p is over the positives of the anchor is our reading.

    Parameters:
        floor: the distance below which negatives count as equally near; between 0 and 2.

    Shapes: embeddings (B, D), labels (B,); it gives `Triplets`: anchor, positive, negative, indices of (T,), T ≤ B.

    Example:
        tuples = nearkin.miners.HardFloor(floor=0.5)(embeddings, labels)
        value = nearkin.losses.Triplet()(embeddings, labels, tuples)
    """

    gives = Triplets
    paper = "Zheng et al. 2021"
    search: ClassVar = {"floor": Space(0.1, 1)}

    def __init__(self, *, floor: float = 0.5):
        between(0, 2, floor=floor)
        self.floor = floor

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets:
        """One triplet per anchor that has a positive and a negative, drawn with the generator."""
        furthest = pairs.d.masked_fill(~pairs.positive, 0).amax(1, keepdim=True)  # (B, 1)
        raised = pairs.d.maximum(furthest.clamp_max(self.floor)).masked_fill(~pairs.negative, torch.inf)  # (B, M)
        nearest = pairs.negative & (raised == raised.amin(1, keepdim=True))  # (B, M)
        return one_per_anchor(pairs, draw_one(pairs.positive, generator), draw_one(nearest, generator))


@MINERS.register("softhard")
class Softhard(Miner):
    """Softly hard triplets: random negatives nearer than the farthest positive, positives beyond the nearest negative.

        n uniform among d_an < max_p d_ap,   p uniform among d_ap > min_n d_an;   where there is none, any

    There is one triplet per anchor that has a positive and a negative.

    Source: Roth et al. 2020 (their eqs. 21 and 22 write arg max and arg min where the values are meant).

    Shapes: embeddings (B, D), labels (B,); it gives `Triplets`: anchor, positive, negative, indices of (T,), T ≤ B.

    Example:
        tuples = nearkin.miners.Softhard()(embeddings, labels)
        value = nearkin.losses.Triplet()(embeddings, labels, tuples)
    """

    gives = Triplets
    paper = "Roth et al. 2020"

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets:
        """One triplet per anchor that has a positive and a negative, drawn with the generator."""
        furthest = pairs.s.masked_fill(~pairs.positive, torch.inf).amin(1, keepdim=True)  # (B, 1)
        nearest = pairs.s.masked_fill(~pairs.negative, -torch.inf).amax(1, keepdim=True)  # (B, 1)
        hard_positive = pairs.positive & (pairs.s < nearest)  # (B, M)
        hard_negative = pairs.negative & (pairs.s > furthest)  # (B, M)
        hard_positive = torch.where(hard_positive.any(1, keepdim=True), hard_positive, pairs.positive)
        hard_negative = torch.where(hard_negative.any(1, keepdim=True), hard_negative, pairs.negative)
        return one_per_anchor(pairs, draw_one(hard_positive, generator), draw_one(hard_negative, generator))
