"""Multi-similarity loss."""

from typing import ClassVar, Literal

from torch import Tensor

from nearkin.config.bounds import above, between, one_of
from nearkin.losses.base import PairLoss
from nearkin.numerics import log1p_exp, masked_lse
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import TABLE_15, Space


@LOSSES.register("multi_similarity")
class MultiSimilarity(PairLoss):
    """Multi-similarity loss: soft sums over the positives and negatives of each anchor; its miner has the same name.

        ℓ_i = (1/α) log(1 + Σ_p exp(-α(s_ip - λ))) + (1/β) log(1 + Σ_n exp(β(s_in - λ)))

    L is the mean of ℓ_i over the anchors that have a pair left: all B without a miner (an anchor without positives
    still repels its negatives), the kept ones with it; divisor="batch" divides by B in either case. s_ij is the cosine
    similarity of samples i and j; p runs over the positives of i, n over its negatives.

    Source: Wang et al. 2019 (CVPR), whose code divides by B; α = 2, β = 40, λ = 0.5 and the kept anchors as in Roth et
    al. 2020. Psomas 2020 and Musgrave et al. 2020 ran divisor="batch" with the miner's one_sided=True, Psomas with β =
    50.

    Parameters:
        alpha: α, how strongly the least similar positives dominate the others; above 0.
        beta: β, how strongly the most similar negatives dominate the others; above 0.
        base: λ, the similarity that positives should exceed and negatives stay below; between -1 and 1.
        divisor: what the sum is divided by: "kept", the number of anchors with a pair left, or "batch", B.

    Shapes: embeddings (B, D), labels (B,), tuples from a miner: masks (B, B); the value is a scalar.

    Example:
        loss = nearkin.losses.MultiSimilarity(alpha=2.0, beta=40.0)
        value = loss(embeddings, labels)
    """

    paper = "Wang et al. 2019"
    search: ClassVar = {
        "alpha": Space(2, 100, 2, source=TABLE_15),
        "beta": Space(2, 100, 2, source=TABLE_15),
        "base": Space(0, 1, 0.1, source=TABLE_15),
    }

    def __init__(
        self, *, alpha: float = 2.0, beta: float = 40.0, base: float = 0.5, divisor: Literal["kept", "batch"] = "kept"
    ):
        super().__init__()
        above(0, alpha=alpha, beta=beta)
        between(-1, 1, base=base)
        self.alpha = alpha
        self.beta = beta
        one_of("kept", "batch", divisor=divisor)
        self.base = base
        self.divisor = divisor

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value over the masks (B, M) of `pairs`."""
        attract = log1p_exp(masked_lse(pairs.s, pairs.positive, 1, -self.alpha) + self.alpha * self.base)  # (B,)
        repel = log1p_exp(masked_lse(pairs.s, pairs.negative, 1, self.beta) - self.beta * self.base)  # (B,)
        pair_counts = pairs.positive.sum(1) + pairs.negative.sum(1)  # (B,) pairs per anchor
        self.active = pair_counts.sum() / max(1, pairs.s.numel() - len(pair_counts))
        total = (attract / self.alpha + repel / self.beta).sum()
        return total / (len(pair_counts) if self.divisor == "batch" else (pair_counts > 0).sum().clamp_min(1))
