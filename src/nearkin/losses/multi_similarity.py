"""Multi-similarity loss.

    ℓ_i = (1/α) log(1 + Σ_p exp(-α(s_ip - λ))) + (1/β) log(1 + Σ_n exp(β(s_in - λ)))

Wang et al. 2019 (CVPR). α = 2, β = 40, λ = 0.5 as in Roth et al. 2020. L is the mean over the anchors that have
a pair left: all B without a miner (an anchor without positives still repels its negatives), the kept ones with it.
"""

from torch import Tensor

from nearkin.bounds import above, between
from nearkin.losses.base import PairLoss
from nearkin.pairs import Pairs, Triplets, masked_lse
from nearkin.registry import LOSSES


@LOSSES.register("multi_similarity")
class MultiSimilarity(PairLoss):
    def __init__(self, *, alpha: float = 2.0, beta: float = 40.0, base: float = 0.5):
        super().__init__()
        above(0, alpha=alpha, beta=beta)
        between(-1, 1, base=base)
        self.alpha = alpha
        self.beta = beta
        self.base = base

    def compute(self, pairs: Pairs, triplets: Triplets | None = None) -> Tensor:
        shifted = pairs.s - self.base                                                           # (B, M)
        attract = masked_lse(-self.alpha * shifted, pairs.positive, 1, with_zero=True)          # (B,)
        repel = masked_lse(self.beta * shifted, pairs.negative, 1, with_zero=True)              # (B,)
        kept = (pairs.positive | pairs.negative).any(1)                                         # (B,)
        self.active = (pairs.positive.sum() + pairs.negative.sum()) / max(1, kept.numel() * (pairs.s.shape[1] - 1))
        return (attract / self.alpha + repel / self.beta).sum() / kept.sum().clamp_min(1)
