"""What a miner is: a choice of pairs or triplets from a batch, without a graph.

`gives` says which; a loss that does not accept it is refused when the objective is built. Randomness comes
from the generator of the call, never from a state of the miner.
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor

from nearkin.errors import NearkinError
from nearkin.pairs import PairMasks, Pairs, Triplets


class Miner:
    name: ClassVar[str]
    version: ClassVar[int] = 1
    gives: ClassVar[type]
    source: ClassVar[str] = ""

    def __call__(
        self, embeddings: Pairs | Tensor, labels: Tensor | None = None, *, generator: Generator | None = None
    ) -> Triplets | PairMasks:
        pairs = Pairs.of(embeddings, labels)
        if self.gives is PairMasks:
            _ = pairs.s                                             # with its graph: the loss will read it too
        with torch.no_grad():
            return self.mine(pairs.detach(), generator)

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


def positive_slots(pairs: Pairs) -> Iterator[tuple[Tensor, Tensor]]:
    """The first, second, ... positive of every anchor: (column, whether the anchor has as many)."""
    count = pairs.positive.sum(1)                                                               # (B,)
    columns = pairs.positive.nonzero()[:, 1]
    first = count.cumsum(0) - count
    for slot in range(int(count.max()) if len(count) else 0):
        has = slot < count
        yield columns[(first + slot).clamp_max(len(columns) - 1)], has


def triplets_where(pairs: Pairs, condition: Callable[[Tensor], Tensor] | None = None) -> Triplets:
    """All triplets, or those for which condition(column of the positive) -> (B, M) holds at the negative. One
    positive an anchor at a time, so that nothing larger than (B, M) is held beside the list itself."""
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    for positive, has in positive_slots(pairs):
        mask = pairs.negative & has[:, None]
        if condition is not None:
            mask &= condition(positive)
        row, column = mask.nonzero(as_tuple=True)
        found.append((row, positive[row], column))
    if not found:
        none = torch.zeros(0, dtype=torch.long, device=pairs.z.device)
        return Triplets(none, none, none)
    return Triplets(*(torch.cat(part) for part in zip(*found, strict=True)))
