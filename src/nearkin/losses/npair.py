"""N-pair loss: one positive an anchor, drawn at random, against many negatives at once.

    ℓ_a = log(1 + Σ_n exp(z_a·z_n - z_a·z_p)),   L = mean ℓ_a + ν·mean ‖z‖                              raw vectors

Sohn 2016 (NeurIPS). pairing="anchor": every anchor, all its negatives, as in Roth et al. 2020 (eq. 4; the code has the
plain norm), ν = 0.005; pairing="class": Sohn's one pair a class, negatives the other pairs' positives.
"""

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from nearkin.config.bounds import at_least, one_of
from nearkin.errors import NearkinError
from nearkin.losses.base import Loss
from nearkin.numerics import log1p_exp, masked_lse, matmul, mean_norm
from nearkin.pairs import Couples, Pairs, draw_one
from nearkin.registry import LOSSES


@LOSSES.register("npair")
class NPair(Loss):
    """N-pair loss."""

    source = "Sohn 2016"
    accepts: ClassVar[tuple[type, ...]] = (Couples,)

    def __init__(self, *, pairing: Literal["anchor", "class"] = "anchor", nu: float = 0.005):
        super().__init__()
        one_of("anchor", "class", pairing=pairing)
        at_least(0, nu=nu)
        self.pairing = pairing
        self.nu = nu
        self.needs_square = pairing == "class"      # its pairs are drawn from the batch

    def draw(self, pairs: Pairs, tuples: Couples | None, generator: Generator | None) -> Couples:
        if tuples is not None:
            return tuples
        if self.pairing == "anchor":
            return draw_couples(pairs, generator)
        return draw_pair_a_class(pairs.labels, generator)

    def compute(self, pairs: Pairs, couples: Couples | None = None) -> Tensor:
        if couples is None:
            raise NearkinError("NPair.compute needs couples: call the loss, not compute")
        value = npair(pairs, couples) if self.pairing == "anchor" else one_a_class(pairs, couples)
        return value + self.nu * mean_norm(pairs.z) if self.nu else value


def draw_couples(pairs: Pairs, generator: Generator | None) -> Couples:
    """A random positive for every anchor that has a positive and a negative."""
    positive = draw_one(pairs.positive, generator)                                              # (B,)
    anchor = (pairs.positive.any(1) & pairs.negative.any(1)).nonzero()[:, 0]                    # (T,)
    return Couples(anchor, positive[anchor])


def draw_pair_a_class(labels: Tensor, generator: Generator | None) -> Couples:
    """Two random members of every class that has two: the first two of its samples in a random order."""
    order = torch.randperm(len(labels), generator=generator, device=labels.device)
    grouped, place = labels[order].sort(stable=True)
    order = order[place]                                                                        # random inside a class
    first = torch.ones_like(grouped, dtype=torch.bool)
    first[1:] = grouped[1:] != grouped[:-1]
    anchor = (first[:-1] & ~first[1:]).nonzero()[:, 0]                                          # a second follows
    return Couples(order[anchor], order[anchor + 1])


def npair(pairs: Pairs, couples: Couples) -> Tensor:
    """mean log(1 + Σ_n exp(z_a·z_n - z_a·z_p)) over all negatives."""
    z_a, z_p = pairs.z[couples.anchor], pairs.reference_z[couples.positive]                     # (T, D)
    repel = masked_lse(matmul(z_a, pairs.reference_z.T), pairs.negative[couples.anchor], 1)     # (T,)
    return log1p_exp(repel - (z_a * z_p).sum(1)).sum() / max(1, len(z_a))


def one_a_class(pairs: Pairs, couples: Couples) -> Tensor:
    """The same over the other couples' positives alone: cross-entropy with the diagonal as target."""
    if not len(couples.anchor):
        return pairs.zero()
    logits = matmul(pairs.z[couples.anchor], pairs.z[couples.positive].T)                       # (T, T)
    return F.cross_entropy(logits, torch.arange(len(logits), device=logits.device))
