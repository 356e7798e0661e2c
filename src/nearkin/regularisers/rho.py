"""ρ-regularisation by switching.

With probability p_switch a triplet (a, p, n) becomes (a, a, p'): the anchor is its own positive, and a random
member p' of its class is pushed away like a negative. This keeps classes from collapsing and the spectrum of the
embedding flat. Roth et al. 2020 (ICML); p_switch = 0.2 is the default of their code (0.15 to 0.4 in their runs).

For contrastive, triplet, margin and SNR triplet losses with a miner; their divisors stay as they are.
"""

import torch
from torch import Generator

from nearkin.config.bounds import between
from nearkin.errors import NearkinError
from nearkin.pairs import PairMasks, Pairs, Triplets, draw_one
from nearkin.registry import REGULARISERS
from nearkin.regularisers.base import Regulariser


@REGULARISERS.register("rho")
class Rho(Regulariser):
    needs = Triplets

    def __init__(self, *, p_switch: float = 0.2):
        between(0, 1, p_switch=p_switch)
        self.p_switch = p_switch

    def change(self, tuples: Triplets | PairMasks, pairs: Pairs, generator: Generator | None) -> Triplets:
        if not isinstance(tuples, Triplets) or pairs.own is None:
            raise NearkinError("rho switches triplets whose anchors are among the references; this batch has none")
        anchor = tuples.anchor
        other = draw_one(pairs.positive, generator, anchor)                                     # (T,) p'
        switched = torch.rand(len(anchor), generator=generator, device=anchor.device) < self.p_switch
        switched &= pairs.positive.any(1)[anchor]
        return Triplets(
            anchor,
            torch.where(switched, pairs.own[anchor], tuples.positive),
            torch.where(switched, other, tuples.negative),
        )
