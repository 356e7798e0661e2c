"""The base of all regularisers."""

from collections.abc import Mapping
from typing import ClassVar

from torch import Generator, Tensor

from nearkin.pairs import PairMasks, Pairs, Triplets
from nearkin.registry import REGULARISERS
from nearkin.spaces import Space


class Regulariser:
    """A regulariser: it may change the tuples of the miner, or add a penalty to the loss.

    (Mixup does neither: it mixes inside the network; see `Mixup`.)

    `search` declares what tuning may try: hyper-parameter -> space (`nearkin.spaces`).
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    needs: ClassVar[type | None] = None  # the mined tuples that it changes
    search: ClassVar[Mapping[str, Space]] = {}

    def change(self, tuples: Triplets | PairMasks, pairs: Pairs, generator: Generator | None) -> Triplets | PairMasks:
        """The tuples that the loss gets: those of the miner, or changed ones.

        They are `Triplets` of (T,) or `PairMasks` of (B, M). Called after the miner, with the pairs (B, M) that it
        mined; by default nothing changes.
        """
        return tuples

    def penalty(self, pairs: Pairs) -> Tensor | None:
        """A scalar that is added to the loss of the batch, or None for nothing."""
        return None


REGULARISERS.takes(Regulariser, words="a nearkin.regularisers.Regulariser")
