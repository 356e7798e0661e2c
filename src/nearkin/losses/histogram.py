"""Losses on histograms of similarities, with soft bins: a value spreads linearly over its two neighbouring nodes.

    histogram   L = Σ_r h⁻(r) Σ_{q≤r} h⁺(q)         the chance that a negative pair is more similar than a positive one
    fastap      L = 1 - mean_a (1/|P_a|) Σ_l h⁺_a(l) H⁺_a(l) / H_a(l)         average precision of an anchor's ranking

Ustinova, Lempitsky 2016 (NeurIPS), 65 nodes on [-1, 1] as in Roth et al. 2020 (CUB and Cars; 11 on SOP); h± are the
shares of all positive and negative pairs. Cakir et al. 2019 (CVPR), 10 bins on d² in [0, 4]; H is the cumulative count
of both kinds, H⁺ of positives.
"""

import torch
from torch import Tensor

from nearkin.config.bounds import at_least
from nearkin.losses.base import PairLoss
from nearkin.numerics import soft_histogram
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES


@LOSSES.register("histogram")
class Histogram(PairLoss):
    """Histogram loss. 0 if the batch has no positive or no negative pair."""

    source = "Ustinova, Lempitsky 2016"

    def __init__(self, *, nodes: int = 65):
        super().__init__()
        at_least(2, nodes=nodes)
        self.nodes = nodes

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        x = (pairs.s + 1) * ((self.nodes - 1) / 2)                                              # (B, M) in nodes
        positive, negative = soft_histogram(x, pairs.positive, pairs.negative, self.nodes)      # (B, R)
        positive, negative = positive.sum(0), negative.sum(0)                                   # (R,)
        h_positive = positive / positive.sum().clamp_min(1)
        h_negative = negative / negative.sum().clamp_min(1)
        return (h_negative * h_positive.cumsum(0)).sum()


@LOSSES.register("fastap")
class FastAP(PairLoss):
    """FastAP loss: the mean over the anchors that have positives."""

    source = "Cakir et al. 2019"

    def __init__(self, *, bins: int = 10):
        super().__init__()
        at_least(1, bins=bins)
        self.bins = bins

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        x = (1 - pairs.s) * (self.bins / 2)                                                     # (B, M), d² in bins
        positive, negative = soft_histogram(x, pairs.positive, pairs.negative, self.bins + 1)   # (B, L)
        up_to, all_up_to = positive.cumsum(1), (positive + negative).cumsum(1)
        precision = positive * up_to / torch.where(all_up_to > 0, all_up_to, 1)
        count = pairs.positive.sum(1)                                                           # (B,)
        ap = precision.sum(1) / count.clamp_min(1)
        has = count > 0
        return (has.sum() - ap.sum()) / has.sum().clamp_min(1)
