"""Quadruplet loss."""

from typing import Any, ClassVar

import torch
from torch import Generator, Tensor

from nearkin.config.bounds import at_least
from nearkin.errors import NearkinError
from nearkin.losses.base import Loss
from nearkin.miners.distance_weighted import DistanceWeighted
from nearkin.numerics import row_blocks
from nearkin.pairs import Pairs, Quadruplets, Triplets, draw_one
from nearkin.registry import LOSSES
from nearkin.spaces import Space


@LOSSES.register("quadruplet")
class Quadruplet(Loss):
    """Quadruplet loss: a triplet loss, plus a term for the distance between two negatives of different classes.

        L = mean [d_ap - d_an + γ₁]₊ + mean [d_ap - d_nn' + γ₂]₊

    d is the distance of two unit vectors, a an anchor, p another sample of its class, n a sample of another class, and
    n' one of a third class, drawn uniformly. A triplet for which the batch has no third class is left out of the second
    mean. Triplets come from the miner; without one they are distance-weighted, as in Roth et al. It compares references
    with each other, so a memory cannot be used.

    Source: Chen et al. 2017 (CVPR); γ₁ = 1, γ₂ = 0.5 as in Roth et al. 2020, whose eq. 14 prints d_an for the second
    d_ap and whose code may draw n' from the classes of a or n; ours does not.

    Parameters:
        margin: γ₁, the distance by which n should be farther from a than p is; at least 0.
        margin2: γ₂, the distance by which d_nn' should exceed d_ap; at least 0.

    Shapes: embeddings (B, D), labels (B,), tuples from a miner: triplets (T,); the value is a scalar.

    Example:
        loss = nearkin.losses.Quadruplet(margin=1.0, margin2=0.5)
        value = loss(embeddings, labels)
    """

    paper = "Chen et al. 2017"
    accepts: ClassVar[tuple[type, ...]] = (Triplets, Quadruplets)
    needs_square = True
    search: ClassVar = {"margin": Space(0.1, 2), "margin2": Space(0.05, 1)}

    def __init__(self, *, margin: float = 1.0, margin2: float = 0.5):
        super().__init__()
        at_least(0, margin=margin, margin2=margin2)
        self.margin = margin
        self.margin2 = margin2

    def draw(self, pairs: Pairs, tuples: Any, generator: Generator | None) -> Any:
        """`Quadruplets` of (T,): the miner's triplets (or distance-weighted ones), each with a random n'.

        `other` is -1 where the batch has no third class.
        """
        triplets = DistanceWeighted()(pairs, generator=generator) if tuples is None else tuples
        if not isinstance(triplets, Triplets):
            return triplets
        other = torch.full_like(triplets.anchor, -1)
        for rows in row_blocks(other, 1024):  # a list of all triplets may be long
            third = pairs.negative[triplets.anchor[rows]] & pairs.negative[triplets.negative[rows]]  # (1024, M)
            other[rows] = draw_one(third, generator).masked_fill(~third.any(1), -1)
        return Quadruplets(*triplets, other)

    def compute(self, pairs: Pairs, quadruplets: Quadruplets | None = None) -> Tensor:
        """The scalar value, given the quadruplets (T,) that `draw` made."""
        if quadruplets is None:
            raise NearkinError("Quadruplet.compute needs quadruplets: call the loss, not compute")
        a, p, n, other = quadruplets
        d_ap, d_an = pairs.d_at(a, p), pairs.d_at(a, n)  # (T,)
        first = (d_ap - d_an + self.margin).relu()
        has = other >= 0  # (T,)
        second = (d_ap - pairs.d_at(n, other.clamp_min(0)) + self.margin2).relu().where(has, 0)  # (T,)
        self.active = ((first > 0).sum() + (second > 0).sum()) / (len(first) + has.sum()).clamp_min(1)
        return pairs.zero() + first.sum() / max(1, len(first)) + second.sum() / has.sum().clamp_min(1)
