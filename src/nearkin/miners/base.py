"""What a miner is: a choice of pairs or triplets from a batch, without a graph.

`gives` says which; a loss that does not accept it is refused when the objective is built. Randomness comes
from the generator of the call, never from a state of the miner.
"""

import copy
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor

from nearkin.errors import NearkinError
from nearkin.pairs import PairMasks, Pairs, Triplets


class Miner:
    name: ClassVar[str]
    version: ClassVar[int] = 1
    gives: ClassVar[type]

    def __call__(
        self, embeddings: Pairs | Tensor, labels: Tensor | None = None, *, generator: Generator | None = None
    ) -> Triplets | PairMasks:
        with torch.no_grad():
            return self.mine(Pairs.of(embeddings, labels).detach(), generator)

    def for_loss(self, loss: Any) -> "Miner":
        """This miner beside a loss: a margin that was not set (None) is the loss's."""
        if getattr(self, "margin", 0.0) is not None:
            return self
        if getattr(loss, "margin", None) is None:
            raise NearkinError(f"{type(self).__name__}: {type(loss).__name__} has no margin to share; set the miner's")
        other = copy.copy(self)
        other.margin = loss.margin                                  # type: ignore[attr-defined]
        return other

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets | PairMasks:
        raise NearkinError(f"{type(self).__name__} does not define mine(pairs, generator)")


def draw(mask: Tensor, generator: Generator | None) -> Tensor:
    """One uniformly drawn column of each row of a mask; rows without any give column 0 (mask them yourself)."""
    noise = torch.rand(mask.shape, generator=generator, device=mask.device)
    return noise.masked_fill_(~mask, -1).argmax(1)                                              # (B,)
