"""Margin loss, with a learned boundary between positive and negative distances."""

from dataclasses import replace
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from nearkin.config.bounds import at_least, one_of
from nearkin.errors import NearkinError
from nearkin.losses.base import OWN_RATE, TripletLoss, check_labels
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import Space


@LOSSES.register("margin")
class Margin(TripletLoss):
    """Margin loss: positives lie within a learned boundary β of the anchor, negatives beyond it.

        ℓ = [γ + d_ap - β]₊ + [γ + β - d_an]₊,      L = Σ ℓ / number of active terms + ν·Σβ

    d is the distance of two unit vectors, a an anchor, p another sample of its class, n a sample of another class. The
    boundary β is one number for all, or one per class (the anchor's). Without a miner the sum is over all triplets of
    the batch, in O(B·M) memory. With nothing active the first part is 0.

        form="similarity"    ℓ = [γ + β - s_ap]₊ + [γ + s_an - β]₊

    is the same with -s in place of d and -β in place of β (in the penalty, too): β is then the similarity that
    positives exceed. A distance β is the similarity 1 - β²/2.

    Source: Wu et al. 2017 (ICCV); γ = 0.2, β = 1.2 per class and learned at 50 times the base rate, ν = 0 as in the
    code of Roth et al. 2020 (eq. 10 lacks the hinges); the similarity form with one β and γ = 0.5 is that of Psomas
    2020 (eq. 2.23, where the sign of a negative pair must be read as -1).

    Parameters:
        num_classes: C, the number of classes; needed if per_class is True. Labels are then 0 to C - 1.
        form: "distance" or "similarity", what γ and β are compared with.
        margin: γ, what should lie between β and a pair on either side; at least 0.
        beta: β, the start value of the boundary: a distance of at least 0, or a similarity of at least -1.
        per_class: True learns one β per class, False one β for all.
        learn_beta: False keeps β at its start value.
        nu: ν, weight of the penalty Σβ; at least 0.
        divisor: what the sum is divided by. "active_pairs" counts the non-zero halves of ℓ; "active_triplets" counts
            triplets with an active half, as the code of Roth et al. does.

    Shapes: embeddings (B, D), labels (B,), tuples from a miner: triplets (T,); the value is a scalar.

    Example:
        loss = nearkin.losses.Margin(num_classes=4, margin=0.2, beta=1.2)
        value = loss(embeddings, labels)
    """

    paper = "Wu et al. 2017"
    lr_factor = 50.0
    search: ClassVar = {
        "margin": Space(0.02, 0.5),
        "beta": Space(0.6, 1.4, when={"form": ("distance",)}),
        "loss.beta": Space(0, 0.8, when={"form": ("similarity",)}),  # the same setting, by its whole name
        "train.groups.loss.lr": replace(OWN_RATE, when={"learn_beta": (True,)}),
    }

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        form: Literal["distance", "similarity"] = "distance",
        margin: float = 0.2,
        beta: float = 1.2,
        per_class: bool = True,
        learn_beta: bool = True,
        nu: float = 0.0,
        divisor: Literal["active_pairs", "active_triplets"] = "active_pairs",
    ):
        super().__init__()
        one_of("distance", "similarity", form=form)
        at_least(0, margin=margin, nu=nu)
        at_least(0 if form == "distance" else -1, beta=beta)
        one_of("active_pairs", "active_triplets", divisor=divisor)
        if per_class and num_classes is None:
            raise NearkinError("margin with one beta per class needs num_classes: give it, or set per_class=False")
        self.form = form
        self.num_classes = num_classes if per_class else None
        self.margin = margin
        self.nu = nu
        self.divisor = divisor
        self.beta = nn.Parameter(torch.full((self.num_classes or 1,), float(beta)), requires_grad=learn_beta)

    def compute(self, pairs: Pairs, triplets: Triplets | None = None) -> Tensor:
        """The scalar value over the listed triplets (T,), or over all triplets of the batch if there is no list."""
        beta = boundary = self._boundary(pairs)
        if self.num_classes is not None:
            beta = beta[check_labels(pairs.labels, self.num_classes, self)]  # (B,)
        beta = beta.expand(len(pairs.z))
        listed = self._all(pairs, beta) if triplets is None else self._listed(pairs, beta, triplets)
        total, active_pairs, active_triplets, count = listed
        self.active = active_triplets / count.clamp_min(1)
        divisor = active_pairs if self.divisor == "active_pairs" else active_triplets
        return pairs.zero() + total / divisor.clamp_min(1) + self.nu * boundary.sum()

    def _boundary(self, pairs: Pairs) -> Tensor:
        """β, or -β on similarities: all below then reads -s as a distance."""
        beta = self.beta.to(pairs.z.dtype)
        return beta if self.form == "distance" else -beta

    def _apart(self, pairs: Pairs, row: Tensor, column: Tensor) -> Tensor:
        return pairs.d_at(row, column) if self.form == "distance" else -pairs.s_at(row, column)  # (T,)

    def _listed(self, pairs: Pairs, beta: Tensor, triplets: Triplets) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        beta = beta[triplets.anchor]  # (T,)
        attract = (self.margin + self._apart(pairs, triplets.anchor, triplets.positive) - beta).relu()
        repel = (self.margin + beta - self._apart(pairs, triplets.anchor, triplets.negative)).relu()
        active_a, active_r = attract > 0, repel > 0
        count = torch.tensor(len(beta), device=beta.device)
        return attract.sum() + repel.sum(), active_a.sum() + active_r.sum(), (active_a | active_r).sum(), count

    def _all(self, pairs: Pairs, beta: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Sum, active pairs, active triplets and number of triplets, over all triplets without listing them.

        A pair (a, p) occurs in |N_a| triplets and a pair (a, n) in |P_a|; hinges are linear where they are active.
        """
        d, b = pairs.d if self.form == "distance" else -pairs.s, beta[:, None]  # (B, M), (B, 1)
        with torch.no_grad():
            attract = pairs.positive & (d > b - self.margin)  # (B, M)
            repel = pairs.negative & (d < b + self.margin)  # (B, M)
            p, n = pairs.positive.sum(1), pairs.negative.sum(1)  # (B,)
            attracting, repelling = attract.sum(1), repel.sum(1)  # (B,)
            weight = attract * n[:, None].to(d.dtype)  # (B, M)
            weight -= repel * p[:, None].to(d.dtype)
            active_triplets = (p * n - (p - attracting) * (n - repelling)).sum()
        constant = (self.margin - beta) * (attracting * n) + (self.margin + beta) * (repelling * p)
        active_pairs = (attracting * n + repelling * p).sum()
        return (d * weight).sum() + constant.sum(), active_pairs, active_triplets, (p * n).sum()
