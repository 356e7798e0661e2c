"""The miner of the multi-similarity loss."""

from typing import ClassVar

import torch
from torch import Generator

from nearkin.config.bounds import at_least
from nearkin.miners.base import Miner
from nearkin.pairs import PairMasks, Pairs
from nearkin.registry import MINERS
from nearkin.spaces import TABLE_15, Space


@MINERS.register("multi_similarity")
class MultiSimilarity(Miner):
    """Pairs for multi-similarity: negatives nearer than the farthest positive, positives beyond the nearest negative.

        negative n of anchor i:  s_in + ε > min_{p∈P_i} s_ip
        positive p of anchor i:  s_ip - ε < max_{n∈N_i} s_in

    s are cosine similarities, P_i and N_i the positives and negatives of i. Both tests read the unfiltered sets. An
    anchor left without positives or without negatives is dropped whole, unless one_sided=True.

    Source: Wang et al. 2019 (CVPR); ε = 0.1; one_sided=True as in pytorch-metric-learning, which Psomas 2020 and
    Musgrave et al. 2020 ran.

    Parameters:
        epsilon: ε, a tolerance in similarity: the larger, the more pairs are kept; at least -2.
        one_sided: keep the remaining pairs of an anchor even if only positives, or only negatives, remain.

    Shapes: embeddings (B, D), labels (B,); it gives `PairMasks`: two boolean masks positive and negative, each (B, B).

    Example:
        tuples = nearkin.miners.MultiSimilarity(epsilon=0.1)(embeddings, labels)
        value = nearkin.losses.MultiSimilarity()(embeddings, labels, tuples)
    """

    gives = PairMasks
    paper = "Wang et al. 2019"
    search: ClassVar = {"epsilon": Space(0, 1, 0.1, source=TABLE_15)}

    def __init__(self, *, epsilon: float = 0.1, one_sided: bool = False):
        at_least(-2, epsilon=epsilon)
        self.epsilon = epsilon
        self.one_sided = one_sided

    def mine(self, pairs: Pairs, generator: Generator | None) -> PairMasks:
        """The masks (B, M) of the kept pairs; the generator is not used."""
        furthest = pairs.s.masked_fill(~pairs.positive, torch.inf).amin(1, keepdim=True)  # (B, 1)
        nearest = pairs.s.masked_fill(~pairs.negative, -torch.inf).amax(1, keepdim=True)  # (B, 1)
        positive = pairs.positive & (pairs.s - self.epsilon < nearest)  # (B, M)
        negative = pairs.negative & (pairs.s + self.epsilon > furthest)  # (B, M)
        if self.one_sided:
            return PairMasks(positive, negative)
        complete = positive.any(1, keepdim=True) & negative.any(1, keepdim=True)  # (B, 1)
        return PairMasks(positive & complete, negative & complete)
