"""Triplet loss.

    L = mean over triplets of [d_ap² - d_an² + γ]₊          (squared=False: d instead of d²)

Weinberger, Saul 2009 (JMLR); Schroff et al. 2015 (CVPR). γ = 0.2, squared distances and the mean over all
triplets, inactive ones included, as in Roth et al. 2020 (their eq. 2 prints d, their code has d²).
"""

from typing import Literal

import torch
from torch import Tensor

from nearkin.bounds import at_least, one_of
from nearkin.losses.base import TripletLoss
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES


@LOSSES.register("triplet")
class Triplet(TripletLoss):
    """Without a miner: all triplets of the batch, in O(B·M) memory."""

    def __init__(
        self,
        *,
        margin: float = 0.2,
        squared: bool = True,
        reduction: Literal["mean", "mean_active"] = "mean",
    ):
        super().__init__()
        at_least(0, margin=margin)
        one_of("mean", "mean_active", reduction=reduction)
        self.margin = margin
        self.squared = squared
        self.reduction = reduction

    def compute(self, pairs: Pairs, triplets: Triplets | None = None) -> Tensor:
        d = pairs.d2 if self.squared else pairs.d                                               # (B, M)
        if triplets is None:
            total, count, active = all_triplets(d, pairs.positive, pairs.negative, self.margin)
        else:
            terms = (d[triplets.anchor, triplets.positive] - d[triplets.anchor, triplets.negative] + self.margin).relu()
            total, count, active = terms.sum(), d.new_tensor(len(terms)), (terms > 0).sum()
        self.active = active / count.clamp_min(1)
        divisor = count if self.reduction == "mean" else active
        return pairs.zero() + total / divisor.clamp_min(1)


def all_triplets(d: Tensor, positive: Tensor, negative: Tensor, margin: float) -> tuple[Tensor, Tensor, Tensor]:
    """Σ, number and active number of [d_ap - d_an + γ]₊ over all triplets, without listing them.

    With an anchor's negatives sorted, the active ones of a pair (a, p) are the first c, those with
    d_an < d_ap + γ, and their sum is c·(d_ap + γ) - prefix(c).
    """
    sorted_d = d.masked_fill(~negative, torch.inf).sort(dim=1).values                           # (B, M)
    prefix = sorted_d.masked_fill(sorted_d.isinf(), 0).cumsum(1)
    prefix = torch.cat([prefix.new_zeros(len(d), 1), prefix], dim=1)                            # (B, M + 1)
    reach = d + margin
    c = torch.searchsorted(sorted_d.detach(), reach.detach().contiguous())                      # (B, M)
    c = c.masked_fill(~positive, 0)
    total = (c * reach - prefix.gather(1, c)).masked_fill(~positive, 0).sum()
    count = (positive.sum(1) * negative.sum(1)).sum()
    return total, count, c.sum()
