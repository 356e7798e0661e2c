"""ρ-regularisation by switching."""

from typing import ClassVar

import torch
from torch import Generator

from nearkin.config.bounds import between
from nearkin.errors import NearkinError
from nearkin.numerics import drawn
from nearkin.pairs import PairMasks, Pairs, Triplets, draw_one
from nearkin.registry import REGULARISERS
from nearkin.regularisers.base import Regulariser
from nearkin.spaces import Space


@REGULARISERS.register("rho")
class Rho(Regulariser):
    """ρ-regularisation by switching: some triplets push a member of the anchor's own class away.

        (a, p, n)  →  (a, a, p')        with probability p_switch

    The anchor becomes its own positive, and a random member p' of its class is pushed away like a negative. This keeps
    classes from collapsing and the spectrum of the embedding flat. For contrastive, triplet, margin and SNR triplet
    losses with a miner; their divisors stay as they are. A triplet whose anchor has no positive in the batch stays.

    Source: Roth et al. 2020 (ICML); p_switch = 0.2 is the default of their code (0.15 to 0.4 in their runs).

    Parameters:
        p_switch: the probability with which each triplet is switched; between 0 and 1.

    Shapes: `Triplets` of (T,) in and out.

    Example:
        regulariser = nearkin.regularisers.Rho(p_switch=0.2)
        objective = nearkin.engine.objective.Objective(nearkin.losses.Triplet(), nearkin.miners.Hard(), [regulariser])
        value = objective(embeddings, labels)
    """

    needs = Triplets
    search: ClassVar = {"p_switch": Space(0.05, 0.5)}

    def __init__(self, *, p_switch: float = 0.2):
        between(0, 1, p_switch=p_switch)
        self.p_switch = p_switch

    def change(self, tuples: Triplets | PairMasks, pairs: Pairs, generator: Generator | None) -> Triplets:
        """The triplets (T,), each switched with probability p_switch; the draws come from the generator."""
        if not isinstance(tuples, Triplets) or pairs.self_index is None:
            raise NearkinError("rho switches triplets whose anchors are among the references; this batch has none")
        anchor = tuples.anchor
        other = draw_one(pairs.positive, generator, anchor)  # (T,) p'
        switched = drawn(torch.rand, len(anchor), generator=generator, device=anchor.device) < self.p_switch
        switched &= pairs.positive.any(1)[anchor]
        return Triplets(
            anchor,
            torch.where(switched, pairs.self_index[anchor], tuples.positive),
            torch.where(switched, other, tuples.negative),
        )
