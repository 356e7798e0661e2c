"""Contrastive loss.

    distance form     mean [d_p - m₊]₊ + mean [γ - d_n]₊

Hadsell, Chopra, LeCun 2006 (CVPR); m₊ = 0, γ = 1 as in Roth et al. 2020 (eq. 1).
"""

from typing import ClassVar

from torch import Tensor

from nearkin.bounds import at_least
from nearkin.losses.base import PairLoss
from nearkin.pairs import PairMasks, Pairs, Triplets
from nearkin.registry import LOSSES


@LOSSES.register("contrastive")
class Contrastive(PairLoss):
    """With triplets (a, p, n): two means over the triplets. Without: all pairs of the batch, each side
    averaged over its non-zero terms. A side without pairs contributes 0."""

    accepts: ClassVar[tuple[type, ...]] = (PairMasks, Triplets)

    def __init__(self, *, pos_margin: float = 0.0, neg_margin: float = 1.0):
        super().__init__()
        at_least(-2, pos_margin=pos_margin)     # below 0 it attracts without end; tuned values are, for some data
        at_least(0, neg_margin=neg_margin)
        self.pos_margin = pos_margin
        self.neg_margin = neg_margin

    def compute(self, pairs: Pairs, triplets: Triplets | None = None) -> Tensor:
        if triplets is not None:
            attract = (pairs.d[triplets.anchor, triplets.positive] - self.pos_margin).relu()    # (T,)
            repel = (self.neg_margin - pairs.d[triplets.anchor, triplets.negative]).relu()      # (T,)
            terms = max(1, len(attract))
            self.active = ((attract > 0).sum() + (repel > 0).sum()) / (2 * terms)
            return pairs.zero() + attract.sum() / terms + repel.sum() / terms
        attract = (pairs.d - self.pos_margin).relu() * pairs.positive                           # (B, M)
        repel = (self.neg_margin - pairs.d).relu() * pairs.negative                             # (B, M)
        attracting, repelling = (attract > 0).sum(), (repel > 0).sum()
        all_pairs = pairs.positive.sum() + pairs.negative.sum()
        self.active = (attracting + repelling) / all_pairs.clamp_min(1)
        return attract.sum() / attracting.clamp_min(1) + repel.sum() / repelling.clamp_min(1)
