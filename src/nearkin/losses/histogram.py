"""Losses on histograms of similarities with soft bins: histogram loss and FastAP."""

from typing import ClassVar

import torch
from torch import Tensor

from nearkin.config.bounds import at_least
from nearkin.losses.base import PairLoss
from nearkin.numerics import soft_histogram
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import Space


@LOSSES.register("histogram")
class Histogram(PairLoss):
    """Histogram loss: the chance that a random negative pair is more similar than a random positive pair.

        L = Σ_r h⁻(r) Σ_{q≤r} h⁺(q)

    h⁺ and h⁻ are the shares of all positive and of all negative pairs at each node of a histogram of cosine
    similarities. Its bins are soft: a similarity spreads linearly over its two neighbouring nodes. The value is 0 if
    the batch has no positive or no negative pair.

    Source: Ustinova, Lempitsky 2016 (NeurIPS); 65 nodes on [-1, 1] as in Roth et al. 2020 (CUB and Cars; 11 on SOP).

    Parameters:
        nodes: the number of nodes of the histogram, evenly spaced on [-1, 1]; at least 2.

    Shapes: embeddings (B, D), labels (B,), tuples from a miner: masks (B, B); the value is a scalar.

    Example:
        loss = nearkin.losses.Histogram(nodes=65)
        value = loss(embeddings, labels)
    """

    paper = "Ustinova, Lempitsky 2016"
    search: ClassVar = {"nodes": Space(5, 125, 10, whole=True)}

    def __init__(self, *, nodes: int = 65):
        super().__init__()
        at_least(2, nodes=nodes)
        self.nodes = nodes

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value over the masks (B, M) of `pairs`."""
        x = (pairs.s + 1) * ((self.nodes - 1) / 2)  # (B, M) in nodes
        positive, negative = soft_histogram(x, pairs.positive, pairs.negative, self.nodes)  # (B, R)
        positive, negative = positive.sum(0), negative.sum(0)  # (R,)
        h_positive = positive / positive.sum().clamp_min(1)
        h_negative = negative / negative.sum().clamp_min(1)
        return (h_negative * h_positive.cumsum(0)).sum()


@LOSSES.register("fastap")
class FastAP(PairLoss):
    """FastAP loss: 1 minus the mean average precision of the anchors' rankings, read off soft histograms.

        L = 1 - mean_a (1/|P_a|) Σ_l h⁺_a(l) H⁺_a(l) / H_a(l)

    For each anchor a with positives P_a, h⁺_a counts them in bins of d², the squared distance of unit vectors; H⁺_a is
    the cumulative count of its positives and H_a that of its positives and negatives. Bins are soft: a value spreads
    linearly over its two neighbouring nodes. The mean is over the anchors that have positives.

    Source: Cakir et al. 2019 (CVPR); 10 bins on d² in [0, 4].

    Parameters:
        bins: the number of bins of d² on [0, 4], which have bins + 1 nodes; at least 1.

    Shapes: embeddings (B, D), labels (B,), tuples from a miner: masks (B, B); the value is a scalar.

    Example:
        loss = nearkin.losses.FastAP(bins=10)
        value = loss(embeddings, labels)
    """

    paper = "Cakir et al. 2019"
    search: ClassVar = {"bins": Space(5, 50, whole=True)}

    def __init__(self, *, bins: int = 10):
        super().__init__()
        at_least(1, bins=bins)
        self.bins = bins

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value over the masks (B, M) of `pairs`."""
        x = (1 - pairs.s) * (self.bins / 2)  # (B, M), d² in bins
        positive, negative = soft_histogram(x, pairs.positive, pairs.negative, self.bins + 1)  # (B, L)
        up_to, all_up_to = positive.cumsum(1), (positive + negative).cumsum(1)
        precision = positive * up_to / torch.where(all_up_to > 0, all_up_to, 1)
        count = pairs.positive.sum(1)  # (B,)
        ap = precision.sum(1) / count.clamp_min(1)
        has = count > 0
        return (has.sum() - ap.sum()) / has.sum().clamp_min(1)
