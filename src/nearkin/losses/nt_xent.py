"""NT-Xent loss."""

from typing import ClassVar

from torch import Tensor

from nearkin.config.bounds import above
from nearkin.losses.base import PairLoss
from nearkin.numerics import log1p_exp, masked_lse
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import Space


@LOSSES.register("nt_xent")
class NTXent(PairLoss):
    """NT-Xent loss: normalised temperature-scaled cross-entropy over labelled pairs.

        L = mean over ordered positive pairs (i, j) of -log( e^{s_ij/t} / (e^{s_ij/t} + Σ_{n∈N_i} e^{s_in/t}) )

    s are cosine similarities, N_i the negatives of sample i. The other positives of i are not in the denominator.
    Anchors without negatives are left out.

    Source: Sohn 2016 (NeurIPS), Chen et al. 2020 (ICML); t = 0.07 as in pytorch-metric-learning.

    Parameters:
        temperature: t, by which similarities are divided: the lower, the more the nearest negatives dominate; above 0.

    Shapes: embeddings (B, D), labels (B,), tuples from a miner: masks (B, B); the value is a scalar.

    Example:
        loss = nearkin.losses.NTXent(temperature=0.07)
        value = loss(embeddings, labels)
    """

    paper = "Chen et al. 2020"
    search: ClassVar = {"temperature": Space(1e-3, 0.5, log=True)}

    def __init__(self, *, temperature: float = 0.07):
        super().__init__()
        above(0, temperature=temperature)
        self.temperature = temperature

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value over the masks (B, M) of `pairs`."""
        repel = masked_lse(pairs.s, pairs.negative, 1, scale=1 / self.temperature)  # (B,)
        i, j = pairs.positive.nonzero(as_tuple=True)  # (P,)
        terms = log1p_exp(repel[i] - pairs.s[i, j] / self.temperature)  # (P,)
        return pairs.zero() + terms.sum() / repel[i].isfinite().sum().clamp_min(1)
