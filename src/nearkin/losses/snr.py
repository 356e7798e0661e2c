"""Losses on the signal-to-noise ratio of two embeddings: triplet and contrastive."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from nearkin.config.bounds import at_least
from nearkin.losses.base import PairLoss, TripletLoss
from nearkin.losses.contrastive import hinge_means
from nearkin.losses.triplet import all_triplets, listed_triplets
from nearkin.numerics import matmul, replace_small, rounding
from nearkin.pairs import PairMasks, Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import Space


@LOSSES.register("snr_triplet")
class SNRTriplet(TripletLoss):
    """Triplet loss on signal-to-noise ratios in place of distances.

        SNR(a, x) = Var_m(e_am - e_xm) / Var_m(e_am)
        L = Σ [SNR_ap - SNR_an + γ]₊ / #active + λ·mean_i |Σ_m e_im|

    The variances are over the coordinates m of unit vectors; SNR is not symmetric. The sum is divided by the number of
    non-zero terms. Without a miner it is over all triplets of the batch, in O(B·M) memory.

    Source: Yuan et al. 2019 (CVPR); γ = 0.2, λ = 0.005 as in Roth et al. 2020 (their code drops λ beside the
    distance-weighted miner; eq. 15 lacks the squares).

    Parameters:
        margin: γ, the amount by which SNR_an should exceed SNR_ap; at least 0.
        reg_weight: λ, weight of the penalty that keeps each embedding's coordinates centred at 0; at least 0.

    Shapes: embeddings (B, D), labels (B,), tuples from a miner: triplets (T,); the value is a scalar.

    Example:
        loss = nearkin.losses.SNRTriplet(margin=0.2)
        value = loss(embeddings, labels)
    """

    paper = "Yuan et al. 2019"
    search: ClassVar = {"margin": Space(0.02, 1), "reg_weight": Space(1e-4, 0.1, log=True)}

    def __init__(self, *, margin: float = 0.2, reg_weight: float = 0.005):
        super().__init__()
        at_least(0, margin=margin, reg_weight=reg_weight)
        self.margin = margin
        self.reg_weight = reg_weight

    def compute(self, pairs: Pairs, triplets: Triplets | None = None) -> Tensor:
        """The scalar value over the listed triplets (T,), or over all triplets of the batch if there is no list."""
        if triplets is None:
            total, count, active = all_triplets(snr(pairs), pairs.positive, pairs.negative, self.margin)
        else:
            snr_ap, snr_an = (snr_at(pairs, triplets.anchor, x) for x in (triplets.positive, triplets.negative))
            total, count, active = listed_triplets(snr_ap, snr_an, self.margin)
        self.active = active / count.clamp_min(1)
        return total / active.clamp_min(1) + self.reg_weight * mean_sum(pairs.e)


@LOSSES.register("snr_contrastive", version=2)
class SNRContrastive(PairLoss):
    """Contrastive loss on signal-to-noise ratios in place of distances.

        SNR(a, x) = Var_m(e_am - e_xm) / Var_m(e_am)
        L = mean [SNR_p - m₊]₊ + mean [γ - SNR_n]₊ + λ·mean_i |Σ_m e_im|

    The variances are over the coordinates m of unit vectors; SNR is not symmetric. The first two means are over their
    non-zero terms; a side without any contributes 0.

    Source: Yuan et al. 2019 (CVPR); m₊ = 0, γ = 1, λ = 0 as in pytorch-metric-learning.

    Parameters:
        pos_margin: m₊, the ratio at which a positive pair stops attracting; at least 0.
        neg_margin: γ, the ratio at which a negative pair stops repelling; at least 0.
        reg_weight: λ, weight of the penalty that keeps each embedding's coordinates centred at 0; at least 0.

    Shapes: embeddings (B, D), labels (B,), tuples from a miner: masks (B, B); the value is a scalar.

    Example:
        loss = nearkin.losses.SNRContrastive(neg_margin=1.0)
        value = loss(embeddings, labels)
    """

    paper = "Yuan et al. 2019"
    accepts: ClassVar[tuple[type, ...]] = (PairMasks,)
    search: ClassVar = {"pos_margin": Space(0, 0.6), "neg_margin": Space(0.3, 1.5), "reg_weight": Space(0, 0.2)}

    def __init__(self, *, pos_margin: float = 0.0, neg_margin: float = 1.0, reg_weight: float = 0.0):
        super().__init__()
        at_least(0, pos_margin=pos_margin, neg_margin=neg_margin, reg_weight=reg_weight)
        self.pos_margin = pos_margin
        self.neg_margin = neg_margin
        self.reg_weight = reg_weight

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value over the masks (B, M) of `pairs`."""
        value, self.active = hinge_means(snr(pairs), pairs.positive, pairs.negative, self.pos_margin, self.neg_margin)
        return value + self.reg_weight * mean_sum(pairs.e)


def snr(pairs: Pairs) -> Tensor:
    """SNR (B, M) of every anchor a with every reference x, (Var a + Var x - 2 Cov(a, x)) / Var a.

    It is one product of matrices, with the variance of x as a further coordinate. Where it is within rounding of 0, it
    is computed from the difference of the vectors; for vectors on one ray it is exactly 0, with gradient 0.
    """
    a, var_a = _centred(pairs.e)  # (B, D), (B, 1)
    x, var_x = (a, var_a) if pairs.square else _centred(pairs.reference_e)
    divisor = var_a.clamp_min(1e-12)
    left, right = torch.cat([-2 / a.shape[1] * a, torch.ones_like(var_a)], 1) / divisor, torch.cat([x, var_x], 1)
    ratio = (var_a / divisor).detach() + matmul(left, right.T)  # (B, M); the first term is 1, or 0 without variance

    def exact(row: Tensor, column: Tensor) -> Tensor:
        return _noise(pairs, a[row] - x[column]) / divisor[row, 0]  # (T,)

    small = ratio.detach() <= 4 * rounding(pairs.z)  # 1 + 1 - 2 for equal vectors
    return replace_small(ratio, small, exact, a.shape[1]).relu()


def snr_at(pairs: Pairs, row: Tensor, column: Tensor) -> Tensor:
    """SNR (T,) of the listed pairs: anchors `row` (T,) with references `column` (T,)."""
    a, var_a = _centred(pairs.e[row])
    x, _ = _centred(pairs.reference_e[column])
    return _noise(pairs, a - x) / var_a[:, 0].clamp_min(1e-12)  # (T,)


def _noise(pairs: Pairs, difference: Tensor) -> Tensor:
    """Variance (T,) of centred differences (T, D); 0 where rounding can make it out of vectors on one ray."""
    return F.threshold(difference.square().mean(1), rounding(pairs.z) ** 2 / difference.shape[1], 0)


def _centred(e: Tensor) -> tuple[Tensor, Tensor]:
    centred = e - e.mean(1, keepdim=True)
    return centred, centred.square().mean(1, keepdim=True)


def mean_sum(e: Tensor) -> Tensor:
    """Mean over the rows of e (B, D) of |Σ_m e_im|, a scalar: 0 when the coordinates of every row are centred."""
    return e.sum(1).abs().sum() / max(1, len(e))
