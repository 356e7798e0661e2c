"""`ForeignMiner`: a miner of another library behind the interface of `Miner`."""

from typing import Any

import torch
from torch import Generator, Tensor

from nearkin.errors import NearkinError
from nearkin.miners.base import Miner
from nearkin.pairs import PairMasks, Pairs, Triplets


class ForeignMiner(Miner):
    """A miner of another library, called as `miner(embeddings, labels)`.

    It returns (a, p, n) or, for pairs, (a, p, a, n): the convention of pytorch-metric-learning, of which nothing is
    imported here. Which of the two is found out by trying it on a small batch, so that a loss that cannot take it is
    refused when the objective is built.

    Parameters:
        miner: the miner of the other library.
        dim: the dimension of the embeddings in the small batch.
    """

    def __init__(self, miner: Any, *, dim: int = 8):
        self.miner = miner
        with torch.random.fork_rng(devices=[]):                     # the trial leaves the random state as it was
            labels = torch.arange(16) // 4
            trial = Pairs.of(torch.randn(16, dim), labels)
            self.gives = type(self.mine(trial, None))               # type: ignore[misc]

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets | PairMasks:
        """What the other library's miner chooses, as `Triplets` of (T,) or `PairMasks` of (B, M).

        It draws from the global random state, which is seeded from the generator for the call and restored afterwards.
        """
        with torch.random.fork_rng(devices=[]):
            if generator is not None:                               # foreign miners draw from the global state
                torch.manual_seed(int(torch.randint(2**62, (), generator=generator, device=generator.device)))
            found: Any = self.miner(pairs.z, pairs.labels)
        if len(found) == 3:
            return Triplets(*found)
        if len(found) != 4:
            raise NearkinError(f"{type(self.miner).__name__} gave {len(found)} index tensors; 3 or 4 are understood")
        return PairMasks(_mask(pairs, found[0], found[1]), _mask(pairs, found[2], found[3]))


def _mask(pairs: Pairs, row: Tensor, column: Tensor) -> Tensor:
    mask = torch.zeros_like(pairs.same)
    mask[row, column] = True
    return mask
