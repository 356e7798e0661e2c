"""N-pair loss."""

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from nearkin.config.bounds import at_least, one_of
from nearkin.errors import NearkinError
from nearkin.losses.base import Loss
from nearkin.numerics import drawn, log1p_exp, masked_lse, matmul, mean_norm
from nearkin.pairs import Couples, Pairs, draw_one
from nearkin.registry import LOSSES
from nearkin.spaces import Space


@LOSSES.register("npair", version=2)  # 2: with unit=True, ν weighs unit norms: it pulls at nothing
class NPair(Loss):
    """N-pair loss: one positive per anchor, drawn at random, against many negatives at once.

        ℓ_a = log(1 + Σ_n exp(z_a·z_n - z_a·z_p)),   L = mean_a ℓ_a + ν·mean_i ‖z_i‖

    z are raw vectors, or unit vectors with unit=True; p is a sample of the anchor's class, n runs over the samples of
    other classes. The mean is over the anchors that have a positive and a negative. Every call draws new positives,
    from its generator.

    Source: Sohn 2016 (NeurIPS); pairing="anchor" and ν = 0.005 as in Roth et al. 2020 (eq. 4; the code has the plain
    norm), pairing="class" as in Sohn; Psomas 2020 has pairing="class" and unit=True (eq. 2.22).

    Parameters:
        pairing: "anchor" takes every anchor with all its negatives; "class" takes Sohn's one random pair per class,
            with the other pairs' positives as negatives, and cannot be used with a memory.
        unit: compare unit vectors; their products lie between -1 and 1, so that the loss can fall a little way only.
        nu: ν, weight of the mean norm of the vectors that are compared; at least 0. Unit vectors have one norm, which
            gives no gradient: the loss would otherwise shrink raw vectors until their directions are noise.

    Shapes: embeddings (B, D), labels (B,); the value is a scalar. Positives drawn by the caller are `Couples` of (T,).

    Example:
        loss = nearkin.losses.NPair(pairing="anchor")
        value = loss(embeddings, labels)
    """

    paper = "Sohn 2016"
    accepts: ClassVar[tuple[type, ...]] = (Couples,)
    search: ClassVar = {"nu": Space(1e-4, 0.1, log=True, when={"unit": (False,)})}  # unit vectors have one norm

    def __init__(self, *, pairing: Literal["anchor", "class"] = "anchor", unit: bool = False, nu: float = 0.005):
        super().__init__()
        one_of("anchor", "class", pairing=pairing)
        at_least(0, nu=nu)
        self.pairing = pairing
        self.unit = unit
        self.nu = nu
        self.needs_square = pairing == "class"

    @property
    def why_no_references(self) -> str:
        """Pairs of classes are drawn from the batch; single anchors meet any references."""
        return "pairing=class draws its pairs, negatives included, from the batch" if self.needs_square else ""

    def draw(self, pairs: Pairs, tuples: Couples | None, generator: Generator | None) -> Couples:
        """The random positives: `Couples` of (T,), one per anchor or one per class."""
        if tuples is not None:
            return tuples
        if self.pairing == "anchor":
            return draw_couples(pairs, generator)
        return draw_pair_per_class(pairs.labels, generator)

    def compute(self, pairs: Pairs, couples: Couples | None = None) -> Tensor:
        """The scalar value, given the couples (T,) that `draw` made."""
        if couples is None:
            raise NearkinError("NPair.compute needs couples: call the loss, not compute")
        z, references = (pairs.e, pairs.reference_e) if self.unit else (pairs.z, pairs.reference_z)
        if self.pairing == "anchor":
            value = npair(z, references, pairs.negative, couples)
        else:
            value = one_per_class(z, couples) if len(couples.anchor) else pairs.zero()
        return value + self.nu * mean_norm(z) if self.nu else value


def draw_couples(pairs: Pairs, generator: Generator | None) -> Couples:
    """One random positive for every anchor that has a positive and a negative: `Couples` of (T,)."""
    positive = draw_one(pairs.positive, generator)  # (B,)
    anchor = (pairs.positive.any(1) & pairs.negative.any(1)).nonzero()[:, 0]  # (T,)
    return Couples(anchor, positive[anchor])


def draw_pair_per_class(labels: Tensor, generator: Generator | None) -> Couples:
    """Two random members of every class that has two or more: `Couples` of (T,), one per class.

    They are the first two samples of the class in a random order of the labels (B,).
    """
    order = drawn(torch.randperm, len(labels), generator=generator, device=labels.device)
    grouped, place = labels[order].sort(stable=True)
    order = order[place]  # random inside a class
    first = torch.ones_like(grouped, dtype=torch.bool)
    first[1:] = grouped[1:] != grouped[:-1]
    anchor = (first[:-1] & ~first[1:]).nonzero()[:, 0]  # a second follows
    return Couples(order[anchor], order[anchor + 1])


def npair(z: Tensor, references: Tensor, negative: Tensor, couples: Couples) -> Tensor:
    """mean log(1 + Σ_n exp(z_a·z_n - z_a·z_p)) over the couples (T,), n over all negatives of a, the mask (B, M); a
    scalar."""
    z_a, z_p = z[couples.anchor], references[couples.positive]  # (T, D)
    repel = masked_lse(matmul(z_a, references.T), negative[couples.anchor], 1)  # (T,)
    return log1p_exp(repel - (z_a * z_p).sum(1)).sum() / max(1, len(z_a))


def one_per_class(z: Tensor, couples: Couples) -> Tensor:
    """The same with only the other couples' positives as negatives; a scalar.

    This is cross-entropy over a (T, T) matrix with the diagonal as target.
    """
    logits = matmul(z[couples.anchor], z[couples.positive].T)  # (T, T)
    return F.cross_entropy(logits, torch.arange(len(logits), device=logits.device))
