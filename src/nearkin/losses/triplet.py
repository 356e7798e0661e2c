"""Triplet loss."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from nearkin.config.bounds import at_least, one_of
from nearkin.losses.base import TripletLoss
from nearkin.numerics import row_blocks
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import Space


@LOSSES.register("triplet")
class Triplet(TripletLoss):
    """Triplet loss: each positive should be nearer to the anchor than each negative, by a margin.

        L = mean over triplets of [d_ap² - d_an² + γ]₊          (squared=False: d instead of d²)

    d is the distance of two unit vectors, a an anchor, p another sample of its class, n a sample of another class.
    Without a miner the mean is over all triplets of the batch, in O(B·M) memory.

    Source: Weinberger, Saul 2009 (JMLR); Schroff et al. 2015 (CVPR); γ = 0.2, squared distances and the mean over all
    triplets, inactive ones included, as in Roth et al. 2020 (their eq. 2 prints d, their code has d²).

    Parameters:
        margin: γ, the amount by which d_an² (or d_an) should exceed d_ap² (or d_ap); at least 0.
        squared: True takes squared distances, False distances.
        reduction: "mean" divides by the number of triplets, "mean_active" by that of triplets with a term above 0.

    Shapes: embeddings (B, D), labels (B,), tuples from a miner: triplets (T,); the value is a scalar.

    Example:
        loss = nearkin.losses.Triplet(margin=0.2)
        value = loss(embeddings, labels)
    """

    paper = "Schroff et al. 2015"
    search: ClassVar = {"margin": Space(0.02, 0.5)}

    def __init__(
        self, *, margin: float = 0.2, squared: bool = True, reduction: Literal["mean", "mean_active"] = "mean"
    ):
        super().__init__()
        at_least(0, margin=margin)
        one_of("mean", "mean_active", reduction=reduction)
        self.margin = margin
        self.squared = squared
        self.reduction = reduction

    def compute(self, pairs: Pairs, triplets: Triplets | None = None) -> Tensor:
        """The scalar value over the listed triplets (T,), or over all triplets of the batch if there is no list."""
        if triplets is None:
            d = pairs.d2 if self.squared else pairs.d  # (B, M)
            total, count, active = all_triplets(d, pairs.positive, pairs.negative, self.margin)
        else:
            at = pairs.d2_at if self.squared else pairs.d_at
            d_ap, d_an = at(triplets.anchor, triplets.positive), at(triplets.anchor, triplets.negative)
            total, count, active = listed_triplets(d_ap, d_an, self.margin)
        self.active = active / count.clamp_min(1)
        divisor = count if self.reduction == "mean" else active
        return pairs.zero() + total / divisor.clamp_min(1)


def listed_triplets(d_ap: Tensor, d_an: Tensor, margin: float) -> tuple[Tensor, Tensor, Tensor]:
    """Three scalars: the sum of [d_ap - d_an + γ]₊ over listed triplets, their number, the number of non-zero terms.

    d_ap and d_an are (T,).
    """
    terms = (d_ap - d_an + margin).relu()  # (T,)
    return terms.sum(), torch.tensor(len(terms), device=terms.device), (terms > 0).sum()


def all_triplets(d: Tensor, positive: Tensor, negative: Tensor, margin: float) -> tuple[Tensor, Tensor, Tensor]:
    """The same three scalars over all triplets of a batch, without listing them; d and both masks are (B, M).

    A hinge is linear where it is active, so the sum is Σ w·d + γ·#active, where w counts at (a, p) the negatives nearer
    than d_ap + γ, and at (a, n) (with a minus) the positives whose d_ap + γ reaches n.
    """
    count = (positive.sum(1) * negative.sum(1)).sum()
    with torch.no_grad():
        slots = int(positive.sum(1).max()) if len(d) else 0  # P
        weight = torch.zeros_like(d)
        active = torch.zeros_like(count)
        for rows in row_blocks(d):
            active += _count_active(d[rows], positive[rows], negative[rows], margin, slots, weight[rows])
    return (d * weight).sum() + margin * active.to(d.dtype), count, active


def _count_active(d: Tensor, positive: Tensor, negative: Tensor, margin: float, slots: int, weight: Tensor) -> Tensor:
    """The number of active triplets of a block of b anchors; adds w (see `all_triplets`) to `weight` (b, M) in place.

    slots is the largest number of positives per anchor.
    """
    reach = d.masked_fill(~positive, -torch.inf).topk(slots, dim=1)  # (b, P), largest first
    column = reach.indices.flip(1)
    reached = reach.values.flip(1).add_(margin)  # (b, P) ascending
    missed = torch.searchsorted(reached, d, right=True)  # (b, M) reaches <= d
    weight.sub_((slots - missed).mul_(negative))
    nearer = missed.new_zeros(len(d), slots + 1).scatter_add_(1, missed, negative.long()).cumsum(1)[:, :slots]
    weight.scatter_add_(1, column, nearer.to(weight.dtype))  # empty slots add 0
    return nearer.sum()
