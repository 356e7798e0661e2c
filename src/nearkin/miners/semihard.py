"""Semihard triplets."""

import torch
from torch import Generator, Tensor

from nearkin.config.bounds import at_least
from nearkin.errors import NearkinError
from nearkin.miners.base import Miner, one_per_anchor, triplets_where
from nearkin.pairs import Pairs, Triplets, draw_one
from nearkin.registry import MINERS


@MINERS.register("semihard")
class Semihard(Miner):
    """Semihard negatives: farther than the positive, but within the margin.

        d_ap < d_an ≤ d_ap + γ

    There is one triplet per anchor that has a positive and a negative: p uniform, n uniform among the admissible
    negatives, any negative where there is none. d are distances of unit vectors.

    Source: Schroff et al. 2015 (CVPR), as in the code of Roth et al. 2020: distances are not squared, γ is the loss's
    margin unless set.

    Parameters:
        margin: γ; at least 0. None takes the margin of the loss when both are built into one objective; a miner that is
            called by itself needs a number.
        hardest: True takes the nearest negative beyond the positive (Psomas 2020, eq. 2.20) instead of a random one;
            the margin plays no part then, but must still be set or come from the loss.
        every: True lists all triplets with 0 < d_an - d_ap ≤ γ, as pytorch-metric-learning does; not with hardest.

    Shapes: embeddings (B, D), labels (B,); it gives `Triplets`: anchor, positive, negative, indices of (T,), T ≤ B
    unless every is True.

    Example:
        tuples = nearkin.miners.Semihard(margin=0.2)(embeddings, labels)
        value = nearkin.losses.Triplet(margin=0.2)(embeddings, labels, tuples)
    """

    gives = Triplets
    paper = "Schroff et al. 2015"

    def __init__(self, *, margin: float | None = None, hardest: bool = False, every: bool = False):
        if margin is not None:
            at_least(0, margin=margin)
        if hardest and every:
            raise NearkinError("hardest and every exclude each other: one triplet per anchor, or all")
        self.margin = margin
        self.hardest = hardest
        self.every = every

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets:
        """One triplet per anchor that has a positive and a negative, or all semihard ones if `every` is True."""
        if self.margin is None:
            raise NearkinError("semihard used alone needs a margin: Semihard(margin=0.2)")
        margin = self.margin

        def within(positive: Tensor) -> Tensor:
            d_ap = pairs.d.gather(1, positive[:, None])  # (B, 1)
            return (pairs.d > d_ap) & (pairs.d - d_ap <= margin)  # (B, M)

        if self.every:
            return triplets_where(pairs, within)
        positive = draw_one(pairs.positive, generator)  # (B,)
        if self.hardest:
            beyond = pairs.negative & (pairs.d > pairs.d.gather(1, positive[:, None]))  # (B, M)
            negative = pairs.d.masked_fill(~beyond, torch.inf).argmin(1)
            fallback = ~beyond.any(1)
        else:
            admissible = pairs.negative & within(positive)
            negative = draw_one(admissible, generator)
            fallback = ~admissible.any(1)
        negative = torch.where(fallback, draw_one(pairs.negative, generator), negative)
        return one_per_anchor(pairs, positive, negative)
