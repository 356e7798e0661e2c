"""A miner that lists all triplets."""

from torch import Generator

from nearkin.miners.base import Miner, triplets_where
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import MINERS


@MINERS.register("all")
class All(Miner):
    """All triplets of the batch, listed.

    The triplet losses sum over all triplets without a list when no miner is set. The list is for the others
    (contrastive, which takes all pairs otherwise); it grows with the cube of the batch where classes are few.

    Shapes: embeddings (B, D), labels (B,); it gives `Triplets`: anchor, positive, negative, indices of (T,).

    Example:
        tuples = nearkin.miners.All()(embeddings, labels)
        value = nearkin.losses.Contrastive()(embeddings, labels, tuples)
    """

    gives = Triplets

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets:
        """All T triplets of the pairs (B, M); the generator is not used."""
        return triplets_where(pairs)
