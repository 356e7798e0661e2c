"""Contrastive loss, on distances or on similarities."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from nearkin.config.bounds import at_least, between, one_of
from nearkin.losses.base import PairLoss
from nearkin.numerics import sqrt0
from nearkin.pairs import PairMasks, Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import Space


@LOSSES.register("contrastive", version=2)
class Contrastive(PairLoss):
    """Contrastive loss: positive pairs attract, negative pairs repel each other up to a margin.

        form="distance"      L = mean [d_p - m₊]₊ + mean [γ - d_n]₊
        form="cosine"        the same with 1 - s in place of d
        form="similarity"    L = mean over all pairs of -s_p for a positive, [s_n - λ]₊ for a negative

    d and s are the distance and the cosine similarity of two unit vectors, p a positive pair (one class), n a negative
    pair.

    What is averaged: without triplets, each side of the first two forms is a mean over its non-zero terms of all pairs,
    or of the pairs that a miner keeps. With triplets (a, p, n), each side is a mean over all triplets. The similarity
    form is one mean over all pairs, or over the two pairs of every triplet. A side without pairs contributes 0.

    Source: Hadsell, Chopra, LeCun 2006 (CVPR); m₊ = 0, γ = 1 as in Roth et al. 2020 (eq. 1); the similarity form and λ
    = 0.5 are those of Psomas 2020 (eq. 2.15). The cosine form with γ = 1 - λ' is pytorch-metric-learning's on
    similarities, with pos_margin 1 and neg_margin λ'.

    Parameters:
        form: "distance", "cosine" or "similarity", the formula that is used.
        pos_margin: m₊, the distance at which a positive pair stops attracting (distance and cosine form); at least -2.
            Below 0 it attracts at every distance.
        neg_margin: γ, the distance at which a negative pair stops repelling (distance and cosine form); at least 0.
        threshold: λ, the similarity below which a negative pair does not repel (similarity form); between -1 and 1.

    Shapes: embeddings (B, D), labels (B,), tuples from a miner: masks (B, B) or triplets (T,); the value is a scalar.

    Example:
        loss = nearkin.losses.Contrastive(pos_margin=0.0, neg_margin=1.0)
        value = loss(embeddings, labels)
    """

    paper = "Hadsell et al. 2006"
    accepts: ClassVar[tuple[type, ...]] = (PairMasks, Triplets)
    search: ClassVar = {
        "pos_margin": Space(-0.3, 0.6, when={"form": ("distance", "cosine")}),
        "neg_margin": Space(0.2, 1.5, when={"form": ("distance", "cosine")}),
        "threshold": Space(0, 0.9, when={"form": ("similarity",)}),
    }

    def __init__(
        self,
        *,
        form: Literal["distance", "cosine", "similarity"] = "distance",
        pos_margin: float = 0.0,
        neg_margin: float = 1.0,
        threshold: float = 0.5,
    ):
        super().__init__()
        one_of("distance", "cosine", "similarity", form=form)
        at_least(-2, pos_margin=pos_margin)  # below 0 every positive pair attracts; some tuned values are below 0
        at_least(0, neg_margin=neg_margin)
        between(-1, 1, threshold=threshold)
        self.form = form
        self.pos_margin = pos_margin
        self.neg_margin = neg_margin
        self.threshold = threshold

    def compute(self, pairs: Pairs, triplets: Triplets | None = None) -> Tensor:
        """The scalar value over the masks (B, M) of `pairs`, or over the listed triplets (T,)."""
        if triplets is not None:
            return self._triplets(pairs, triplets)
        if self.form != "similarity":
            d = pairs.d if self.form == "distance" else pairs.d2 / 2  # d²/2 = 1 - s
            value, self.active = hinge_means(d, pairs.positive, pairs.negative, self.pos_margin, self.neg_margin)
            return value
        repel = pairs.negative & (pairs.s.detach() > self.threshold)  # (B, M)
        count = (pairs.positive.sum() + pairs.negative.sum()).clamp_min(1)
        self.active = (pairs.positive.sum() + repel.sum()) / count
        weight = repel.to(pairs.s.dtype).sub_(pairs.positive.to(pairs.s.dtype)) / count
        return (pairs.s * weight).sum() - self.threshold * repel.sum().to(weight.dtype) / count

    def _triplets(self, pairs: Pairs, triplets: Triplets) -> Tensor:
        terms = max(1, len(triplets.anchor))
        d2_ap = pairs.d2_at(triplets.anchor, triplets.positive)  # (T,)
        d2_an = pairs.d2_at(triplets.anchor, triplets.negative)  # (T,)
        if self.form == "similarity":
            attract = d2_ap / 2 - 1  # -s
            repel = (1 - d2_an / 2 - self.threshold).relu()
            self.active = (len(repel) + (repel > 0).sum()) / (2 * terms)
            return pairs.zero() + (attract.sum() + repel.sum()) / (2 * terms)
        d_ap, d_an = (sqrt0(d2_ap), sqrt0(d2_an)) if self.form == "distance" else (d2_ap / 2, d2_an / 2)
        attract = (d_ap - self.pos_margin).relu()
        repel = (self.neg_margin - d_an).relu()
        self.active = ((attract > 0).sum() + (repel > 0).sum()) / (2 * terms)
        return pairs.zero() + attract.sum() / terms + repel.sum() / terms


def hinge_means(
    d: Tensor, positive: Tensor, negative: Tensor, pos_margin: float, neg_margin: float
) -> tuple[Tensor, Tensor]:
    """mean [d - m₊]₊ over positives + mean [γ - d]₊ over negatives, each over its non-zero terms; d is (B, M).

    Returns this value and the share of pairs whose term is not zero. A hinge is linear where it is active, so its mean
    is one product of d with a matrix of weights.
    """
    with torch.no_grad():
        attract = positive & (d > pos_margin)  # (B, M)
        repel = negative & (d < neg_margin)  # (B, M)
        attracting, repelling = attract.sum(), repel.sum()
        weight = attract.to(d.dtype) / attracting.clamp_min(1)  # (B, M)
        weight -= repel.to(d.dtype) / repelling.clamp_min(1)
        share = (attracting + repelling) / (positive.sum() + negative.sum()).clamp_min(1)
        constant = neg_margin * (repelling > 0).to(d.dtype) - pos_margin * (attracting > 0).to(d.dtype)
    return (d * weight).sum() + constant, share
