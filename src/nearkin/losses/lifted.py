"""Lifted structure losses: an anchor's negatives enter through a log-sum-exp, a soft minimum of their distances.

    lifted_structure    mean over positive pairs of [J_ij]₊²/2,
                        J_ij = log(Σ_{k∈N_i} e^{m - d_ik} + Σ_{l∈N_j} e^{m - d_jl}) + d_ij
    generalized_lifted  mean_a [log Σ_p e^{D_ap} + log Σ_n e^{γ - D_an}]₊ + ν·mean ‖z‖         D of the raw vectors
    lifted_similarity   Σ_a [log Σ_p e^{λ - s_ap} + log Σ_n e^{s_an}]₊
    lifted_weighted     1/B Σ_a (2/β) log Σ_p e^{-β s_ap} + (2/α) log Σ_n e^{α s_an}

Song et al. 2016 (CVPR), m = 1 as in pytorch-metric-learning; Hermans et al. 2017, γ = 1, ν = 0.005 as in Roth et al.
2020 (whose code takes means and the plain norm where eq. 3 prints sums and the square: reg_power=2); Psomas 2020
eq. 2.21, λ = 0.5; and the form that Psomas's code has in its place, α = 40, β = 2, meant for the pairs that the
multi_similarity miner keeps. Anchors without a positive or without a negative are left out.
"""

from torch import Tensor

from nearkin.config.bounds import above, at_least, one_of
from nearkin.losses.base import PairLoss
from nearkin.numerics import masked_lse, mean_norm
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES


@LOSSES.register("lifted_structure")
class LiftedStructure(PairLoss):
    """Lifted structure loss of Song et al."""

    source = "Song et al. 2016"
    needs_square = True

    def __init__(self, *, margin: float = 1.0):
        super().__init__()
        at_least(0, margin=margin)
        self.margin = margin

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        repel = masked_lse(pairs.d, pairs.negative, 1, scale=-1) + self.margin                  # (B,)
        repel = repel.clamp_min(-1e30)                                                          # no negatives, no NaN
        i, j = pairs.positive.nonzero(as_tuple=True)                                            # (P,)
        lifted = repel[i].logaddexp(repel[j]) + pairs.d[i, j]                                   # (P,) J
        counted = lifted > -1e29
        self.active = (lifted > 0).sum() / counted.sum().clamp_min(1)
        return pairs.zero() + lifted.relu().square().sum() / 2 / counted.sum().clamp_min(1)


@LOSSES.register("generalized_lifted")
class GeneralizedLifted(PairLoss):
    """Lifted structure loss with all positives of an anchor, on raw vectors."""

    source = "Hermans et al. 2017"

    def __init__(self, *, margin: float = 1.0, nu: float = 0.005, reg_power: int = 1):
        super().__init__()
        at_least(0, margin=margin, nu=nu)
        one_of("1", "2", reg_power=str(reg_power))
        self.margin = margin
        self.nu = nu
        self.reg_power = reg_power

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        attract = masked_lse(pairs.raw_d, pairs.positive, 1)                                    # (B,)
        repel = masked_lse(pairs.raw_d, pairs.negative, 1, scale=-1) + self.margin              # (B,)
        whole = attract.isfinite() & repel.isfinite()
        terms = (attract[whole] + repel[whole]).relu()
        self.active = (terms > 0).sum() / max(1, len(terms))
        return terms.sum() / max(1, len(terms)) + self.nu * mean_norm(pairs.z, self.reg_power)


@LOSSES.register("lifted_similarity")
class LiftedSimilarity(PairLoss):
    """Lifted structure loss in similarities, a sum over anchors."""

    source = "Psomas 2020, eq. 2.21"

    def __init__(self, *, margin: float = 0.5):
        super().__init__()
        at_least(0, margin=margin)
        self.margin = margin

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        attract = masked_lse(pairs.s, pairs.positive, 1, scale=-1) + self.margin                # (B,)
        repel = masked_lse(pairs.s, pairs.negative, 1)                                          # (B,)
        whole = attract.isfinite() & repel.isfinite()
        terms = (attract[whole] + repel[whole]).relu()
        self.active = (terms > 0).sum() / max(1, len(terms))
        return terms.sum()


@LOSSES.register("lifted_weighted")
class LiftedWeighted(PairLoss):
    """Lifted structure loss with the weights of multi-similarity, without hinge or margin."""

    source = "Psomas 2020, code"

    def __init__(self, *, alpha: float = 40.0, beta: float = 2.0):
        super().__init__()
        above(0, alpha=alpha, beta=beta)
        self.alpha = alpha
        self.beta = beta

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        attract = masked_lse(pairs.s, pairs.positive, 1, scale=-self.beta)                      # (B,)
        repel = masked_lse(pairs.s, pairs.negative, 1, scale=self.alpha)                        # (B,)
        whole = attract.isfinite() & repel.isfinite()
        self.active = whole.sum() / max(1, len(whole))
        return (2 / self.beta * attract[whole] + 2 / self.alpha * repel[whole]).sum() / max(1, len(whole))
