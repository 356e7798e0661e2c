"""N-pair and angular losses: one positive an anchor, drawn at random, against many negatives at once.

    npair      ℓ_a = log(1 + Σ_n exp(z_a·z_n - z_a·z_p)),   L = mean ℓ_a + ν·mean ‖z‖                   raw vectors
    angular    ℓ_a = log(1 + Σ_n exp(4 tan²α (e_a + e_p)·e_n - 2(1 + tan²α) e_a·e_p)),
               L = N-pair + λ·mean ℓ_a + ν·mean ‖z‖, with the same positives

Sohn 2016 (NeurIPS); Wang et al. 2017 (ICCV). pairing="anchor": every anchor, all its negatives, as in Roth et al. 2020
(eq. 4, whose code has the plain norm); pairing="class": Sohn's one pair a class, negatives the other pairs' positives.
ν = 0.005, α = 45°, λ = 2 as in Roth et al. (eq. 5 is misprinted: tan² belongs to α alone and the last product is a·p).
"""

import math
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from nearkin.bounds import above, at_least, one_of
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

    def draw(self, pairs: Pairs, tuples: Couples | None, generator: Generator | None) -> Couples:
        if tuples is not None:
            return tuples
        if self.pairing == "anchor":
            return draw_couples(pairs, generator)
        if not pairs.square:
            raise NearkinError("npair with pairing='class' draws its pairs from the batch: no memory beside it")
        return draw_pair_a_class(pairs.labels, generator)

    def compute(self, pairs: Pairs, couples: Couples | None = None) -> Tensor:
        if couples is None:
            raise NearkinError("NPair.compute needs couples: call the loss, not compute")
        value = npair(pairs, couples) if self.pairing == "anchor" else one_a_class(pairs, couples)
        return value + self.nu * mean_norm(pairs.z) if self.nu else value


@LOSSES.register("angular")
class Angular(Loss):
    """Angular loss beside the N-pair loss. `alpha` in degrees; `npair=0` leaves the N-pair term out."""

    source = "Wang et al. 2017"
    accepts: ClassVar[tuple[type, ...]] = (Couples,)

    def __init__(self, *, alpha: float = 45.0, lam: float = 2.0, npair: float = 1.0, nu: float = 0.005):
        super().__init__()
        above(0, alpha=alpha)
        if not alpha < 90:
            raise NearkinError(f"alpha={alpha}: an angle in degrees below 90")
        at_least(0, lam=lam, npair=npair, nu=nu)
        self.alpha = alpha
        self.lam = lam
        self.npair = npair
        self.nu = nu

    def draw(self, pairs: Pairs, tuples: Couples | None, generator: Generator | None) -> Couples:
        return draw_couples(pairs, generator) if tuples is None else tuples

    def compute(self, pairs: Pairs, couples: Couples | None = None) -> Tensor:
        if couples is None:
            raise NearkinError("Angular.compute needs couples: call the loss, not compute")
        tan2 = math.tan(math.radians(self.alpha)) ** 2
        e_a, e_p = pairs.e[couples.anchor], pairs.reference_e[couples.positive]                 # (T, D)
        between = matmul(e_a + e_p, pairs.reference_e.T)                                        # (T, M)
        repel = masked_lse(between, pairs.negative[couples.anchor], 1, scale=4 * tan2)          # (T,)
        terms = log1p_exp(repel - 2 * (1 + tan2) * (e_a * e_p).sum(1))                          # (T,)
        value = self.lam * terms.sum() / max(1, len(terms))
        if self.npair:
            value = value + self.npair * npair(pairs, couples)
        return value + self.nu * mean_norm(pairs.z) if self.nu else value


def draw_couples(pairs: Pairs, generator: Generator | None) -> Couples:
    """A random positive for every anchor that has a positive and a negative."""
    positive = draw_one(pairs.positive, generator)                                              # (B,)
    anchor = (pairs.positive.any(1) & pairs.negative.any(1)).nonzero()[:, 0]                    # (T,)
    return Couples(anchor, positive[anchor])


def draw_pair_a_class(labels: Tensor, generator: Generator | None) -> Couples:
    """Two random members of every class that has two: the first two of its samples in a random order."""
    order = torch.randperm(len(labels), generator=generator).to(labels.device)
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
