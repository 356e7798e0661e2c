"""What a regulariser is: it may change the tuples of the miner, or add a penalty to the loss.

(Mixup does neither: it mixes inside the network; see `mixup.py`.)
"""

from typing import ClassVar

from torch import Generator, Tensor

from nearkin.pairs import PairMasks, Pairs, Triplets


class Regulariser:
    name: ClassVar[str]
    version: ClassVar[int] = 1
    needs: ClassVar[type | None] = None     # the mined tuples that it changes

    def change(self, tuples: Triplets | PairMasks, pairs: Pairs, generator: Generator | None) -> Triplets | PairMasks:
        return tuples

    def penalty(self, pairs: Pairs) -> Tensor | None:
        return None
