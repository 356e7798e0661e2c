"""All triplets of the batch, listed.

The triplet losses sum over all triplets without a list when no miner is set; the list is for the others (contrastive,
which takes all pairs otherwise) and grows with the cube of the batch where classes are few.
"""

from torch import Generator

from nearkin.miners.base import Miner, triplets_where
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import MINERS


@MINERS.register("all")
class All(Miner):
    """All triplets of the batch, listed."""

    gives = Triplets

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets:
        return triplets_where(pairs)
