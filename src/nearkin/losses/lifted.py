"""Lifted structure losses: four losses whose negatives enter through a log-sum-exp."""

from typing import ClassVar

from torch import Tensor

from nearkin.config.bounds import above, at_least, one_of
from nearkin.losses.base import PairLoss
from nearkin.numerics import masked_lse, mean_norm
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import Space


@LOSSES.register("lifted_structure")
class LiftedStructure(PairLoss):
    """Lifted structure loss of Song et al.: each positive pair against all negatives of both its samples.

        L = mean over positive pairs of [J_ij]₊²/2
        J_ij = log(Σ_{k∈N_i} e^{m - d_ik} + Σ_{l∈N_j} e^{m - d_jl}) + d_ij

    d are distances of unit vectors, N_i the negatives of sample i. The negatives enter through a log-sum-exp, a soft
    minimum of their distances. The mean is over the ordered positive pairs that have a negative, inactive ones
    included. Anchors without a positive or without a negative are left out. It compares references with each other, so
    a memory cannot be used.

    Source: Song et al. 2016 (CVPR); m = 1 as in pytorch-metric-learning.

    Parameters:
        margin: m, the distance by which negatives should be farther away than the positive; at least 0.

    Shapes: embeddings (B, D), labels (B,), tuples from a miner: masks (B, B); the value is a scalar.

    Example:
        loss = nearkin.losses.LiftedStructure(margin=1.0)
        value = loss(embeddings, labels)
    """

    paper = "Song et al. 2016"
    needs_square = True
    search: ClassVar = {"margin": Space(0.1, 2)}

    def __init__(self, *, margin: float = 1.0):
        super().__init__()
        at_least(0, margin=margin)
        self.margin = margin

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value over the masks (B, B) of `pairs`."""
        repel = masked_lse(pairs.d, pairs.negative, 1, scale=-1) + self.margin  # (B,)
        repel = repel.clamp_min(-1e30)  # no negatives, no NaN
        i, j = pairs.positive.nonzero(as_tuple=True)  # (P,)
        lifted = repel[i].logaddexp(repel[j]) + pairs.d[i, j]  # (P,) J
        counted = lifted > -1e29
        self.active = (lifted > 0).sum() / counted.sum().clamp_min(1)
        return pairs.zero() + lifted.relu().square().sum() / 2 / counted.sum().clamp_min(1)


@LOSSES.register("generalized_lifted")
class GeneralizedLifted(PairLoss):
    """Lifted structure loss with all positives of an anchor at once, on raw vectors.

        L = mean_a [log Σ_p e^{D_ap} + log Σ_n e^{γ - D_an}]₊ + ν·mean_i ‖z_i‖,      D_ij = ‖z_i - z_j‖

    p runs over the positives of anchor a, n over its negatives. The negatives enter through a log-sum-exp, a soft
    minimum of their distances, the positives through a soft maximum. Anchors without a positive or without a negative
    are left out; the penalty covers all samples.

    Source: Hermans et al. 2017; γ = 1, ν = 0.005 as in Roth et al. 2020, whose code takes means and the plain norm
    where eq. 3 prints sums and the square (reg_power=2).

    Parameters:
        margin: γ, the distance by which negatives should be farther away than positives; at least 0.
        nu: ν, weight of the penalty on the norms of the raw embeddings; at least 0.
        reg_power: 1 penalises ‖z‖, 2 penalises ‖z‖².

    Shapes: embeddings (B, D), labels (B,), tuples from a miner: masks (B, B); the value is a scalar.

    Example:
        loss = nearkin.losses.GeneralizedLifted(margin=1.0)
        value = loss(embeddings, labels)
    """

    paper = "Hermans et al. 2017"
    search: ClassVar = {"margin": Space(0.1, 2), "nu": Space(1e-4, 0.1, log=True)}

    def __init__(self, *, margin: float = 1.0, nu: float = 0.005, reg_power: int = 1):
        super().__init__()
        at_least(0, margin=margin, nu=nu)
        one_of("1", "2", reg_power=str(reg_power))
        self.margin = margin
        self.nu = nu
        self.reg_power = reg_power

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value over the masks (B, M) of `pairs`."""
        attract = masked_lse(pairs.raw_d, pairs.positive, 1)  # (B,)
        repel = masked_lse(pairs.raw_d, pairs.negative, 1, scale=-1) + self.margin  # (B,)
        whole = (attract.isfinite() & repel.isfinite()).nonzero()[:, 0]  # (T,)
        terms = (attract[whole] + repel[whole]).relu()
        self.active = (terms > 0).sum() / max(1, len(terms))
        return terms.sum() / max(1, len(terms)) + self.nu * mean_norm(pairs.z, self.reg_power)


@LOSSES.register("lifted_similarity")
class LiftedSimilarity(PairLoss):
    """Lifted structure loss on cosine similarities; a sum over anchors, not a mean.

        L = Σ_a [log Σ_p e^{λ - s_ap} + log Σ_n e^{s_an}]₊

    s are cosine similarities; p runs over the positives of anchor a, n over its negatives, which enter through a
    log-sum-exp, a soft maximum of their similarities. Anchors without a positive or without a negative are left out. As
    a sum, the value grows with the batch.

    Source: Psomas 2020 (eq. 2.21); λ = 0.5.

    Parameters:
        margin: λ, the similarity by which positives should exceed negatives; at least 0.

    Shapes: embeddings (B, D), labels (B,), tuples from a miner: masks (B, B); the value is a scalar.

    Example:
        loss = nearkin.losses.LiftedSimilarity(margin=0.5)
        value = loss(embeddings, labels)
    """

    paper = "Psomas 2020, eq. 2.21"
    search: ClassVar = {"margin": Space(0.05, 1)}

    def __init__(self, *, margin: float = 0.5):
        super().__init__()
        at_least(0, margin=margin)
        self.margin = margin

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value over the masks (B, M) of `pairs`."""
        attract = masked_lse(pairs.s, pairs.positive, 1, scale=-1) + self.margin  # (B,)
        repel = masked_lse(pairs.s, pairs.negative, 1)  # (B,)
        whole = (attract.isfinite() & repel.isfinite()).nonzero()[:, 0]  # (T,)
        terms = (attract[whole] + repel[whole]).relu()
        self.active = (terms > 0).sum() / max(1, len(terms))
        return terms.sum()


@LOSSES.register("lifted_weighted")
class LiftedWeighted(PairLoss):
    """Lifted structure loss with the weights of multi-similarity, without hinge or margin.

        L = 1/B Σ_a (2/β) log Σ_p e^{-β s_ap} + (2/α) log Σ_n e^{α s_an}

    s are cosine similarities; p runs over the positives of anchor a, n over its negatives. Meant for the pairs that the
    multi_similarity miner keeps. Anchors without a positive or without a negative are left out of the sum, but B counts
    all anchors. The value may be negative.

    Source: Psomas 2020, code, which has this form in place of eq. 2.21 (`LiftedSimilarity`); α = 40, β = 2.

    Parameters:
        alpha: α, how strongly the most similar negatives dominate the others; above 0.
        beta: β, how strongly the least similar positives dominate the others; above 0.

    Shapes: embeddings (B, D), labels (B,), tuples from a miner: masks (B, B); the value is a scalar.

    Example:
        loss = nearkin.losses.LiftedWeighted(alpha=40.0, beta=2.0)
        value = loss(embeddings, labels, nearkin.miners.MultiSimilarity()(embeddings, labels))
    """

    paper = "Psomas 2020, code"
    search: ClassVar = {"alpha": Space(5, 100, log=True), "beta": Space(0.5, 20, log=True)}

    def __init__(self, *, alpha: float = 40.0, beta: float = 2.0):
        super().__init__()
        above(0, alpha=alpha, beta=beta)
        self.alpha = alpha
        self.beta = beta

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value over the masks (B, M) of `pairs`."""
        attract = masked_lse(pairs.s, pairs.positive, 1, scale=-self.beta)  # (B,)
        repel = masked_lse(pairs.s, pairs.negative, 1, scale=self.alpha)  # (B,)
        has = attract.isfinite() & repel.isfinite()  # (B,)
        whole = has.nonzero()[:, 0]  # (T,)
        self.active = has.sum() / max(1, len(has))
        return (2 / self.beta * attract[whole] + 2 / self.alpha * repel[whole]).sum() / max(1, len(has))
