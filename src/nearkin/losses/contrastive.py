"""Contrastive loss.

    distance form       mean [d_p - m₊]₊ + mean [γ - d_n]₊
    similarity form     mean over all pairs of -s_p for a positive, [s_n - λ]₊ for a negative

Hadsell, Chopra, LeCun 2006 (CVPR); m₊ = 0, γ = 1 as in Roth et al. 2020 (eq. 1); the similarity form and λ = 0.5 are
Psomas 2020's (eq. 2.15).
"""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from nearkin.config.bounds import at_least, between, one_of
from nearkin.losses.base import PairLoss
from nearkin.numerics import sqrt0
from nearkin.pairs import PairMasks, Pairs, Triplets
from nearkin.registry import LOSSES


@LOSSES.register("contrastive")
class Contrastive(PairLoss):
    """Contrastive loss.

    With triplets (a, p, n) each side of the distance form is a mean over the triplets; without, over the non-zero
    terms of all pairs. A side without pairs contributes 0.
    """

    source = "Hadsell et al. 2006"
    accepts: ClassVar[tuple[type, ...]] = (PairMasks, Triplets)

    def __init__(
        self,
        *,
        form: Literal["distance", "similarity"] = "distance",
        pos_margin: float = 0.0,
        neg_margin: float = 1.0,
        threshold: float = 0.5,
    ):
        super().__init__()
        one_of("distance", "similarity", form=form)
        at_least(-2, pos_margin=pos_margin)     # a margin below 0 attracts without end: some tuned values do
        at_least(0, neg_margin=neg_margin)
        between(-1, 1, threshold=threshold)
        self.form = form
        self.pos_margin = pos_margin
        self.neg_margin = neg_margin
        self.threshold = threshold

    def compute(self, pairs: Pairs, triplets: Triplets | None = None) -> Tensor:
        if triplets is not None:
            return self._triplets(pairs, triplets)
        if self.form == "distance":
            value, self.active = hinge_means(
                pairs.d, pairs.positive, pairs.negative, self.pos_margin, self.neg_margin
            )
            return value
        repel = pairs.negative & (pairs.s.detach() > self.threshold)                            # (B, M)
        count = (pairs.positive.sum() + pairs.negative.sum()).clamp_min(1)
        self.active = (pairs.positive.sum() + repel.sum()) / count
        weight = repel.to(pairs.s.dtype).sub_(pairs.positive.to(pairs.s.dtype)) / count
        return (pairs.s * weight).sum() - self.threshold * repel.sum() / count

    def _triplets(self, pairs: Pairs, triplets: Triplets) -> Tensor:
        terms = max(1, len(triplets.anchor))
        d2_ap = pairs.d2_at(triplets.anchor, triplets.positive)                                 # (T,)
        d2_an = pairs.d2_at(triplets.anchor, triplets.negative)                                 # (T,)
        if self.form == "similarity":
            attract = d2_ap / 2 - 1                                                             # -s
            repel = (1 - d2_an / 2 - self.threshold).relu()
            self.active = (len(repel) + (repel > 0).sum()) / (2 * terms)
            return pairs.zero() + (attract.sum() + repel.sum()) / (2 * terms)
        attract = (sqrt0(d2_ap) - self.pos_margin).relu()
        repel = (self.neg_margin - sqrt0(d2_an)).relu()
        self.active = ((attract > 0).sum() + (repel > 0).sum()) / (2 * terms)
        return pairs.zero() + attract.sum() / terms + repel.sum() / terms


def hinge_means(
    d: Tensor, positive: Tensor, negative: Tensor, pos_margin: float, neg_margin: float
) -> tuple[Tensor, Tensor]:
    """mean [d - m₊]₊ over positives + mean [γ - d]₊ over negatives, each over its non-zero terms; and their share.

    A hinge is linear where it is active: its mean is one product of d with a matrix of weights.
    """
    with torch.no_grad():
        attract = positive & (d > pos_margin)                                                   # (B, M)
        repel = negative & (d < neg_margin)                                                     # (B, M)
        attracting, repelling = attract.sum(), repel.sum()
        weight = attract.to(d.dtype) / attracting.clamp_min(1)                                  # (B, M)
        weight -= repel.to(d.dtype) / repelling.clamp_min(1)
        share = (attracting + repelling) / (positive.sum() + negative.sum()).clamp_min(1)
        constant = neg_margin * (repelling > 0).to(d.dtype) - pos_margin * (attracting > 0).to(d.dtype)
    return (d * weight).sum() + constant, share
