"""The base of all miners: `Miner`, and functions that list positives and triplets.

Also, for the packages of losses and miners: submodules that explain themselves when they are called by mistake.
"""

import copy
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, ClassVar, NoReturn

import torch
from torch import Generator, Tensor, nn

from nearkin.errors import NearkinError
from nearkin.pairs import PairMasks, Pairs, Triplets
from nearkin.registry import MINERS
from nearkin.spaces import Space


class Miner:
    """A miner: it chooses pairs or triplets from a batch, without a graph.

    `gives` says which, `PairMasks` or `Triplets`; a loss that does not accept it is refused when the objective is
    built. Randomness comes from the generator of the call, never from a state of the miner. A subclass defines
    `mine(pairs, generator)`; its `search` declares what tuning may try: hyper-parameter -> space (`nearkin.spaces`).
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    gives: ClassVar[type]
    paper: ClassVar[str] = ""
    search: ClassVar[Mapping[str, Space]] = {}

    def __call__(
        self,
        embeddings: Any,
        labels: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Any = None,
        *,
        generator: Generator | None = None,
    ) -> Triplets | PairMasks:
        """Mine a batch: embeddings (B, D) with labels (B,), or a `Pairs` that holds both.

        Returns `Triplets` of (T,) or `PairMasks` of (B, M), the third argument of a loss. Labels are integers or
        strings, as a tensor, an array or a list. Positives and negatives are chosen from the batch itself, or from
        references ref_emb (M, D) with ref_labels (M,). Without a generator, the global random state is used.
        """
        pairs = Pairs.of(embeddings, labels, ref_emb=ref_emb, ref_labels=ref_labels)
        if not pairs.same.numel():  # no anchors, or no references
            none = torch.zeros(0, dtype=torch.long, device=pairs.z.device)
            return PairMasks(pairs.same, pairs.same) if self.gives is PairMasks else Triplets(none, none, none)
        if self.gives is PairMasks:
            _ = pairs.s  # with its graph, because the loss will read it too
        with torch.no_grad():
            return self.mine(pairs.detach(), generator)

    def for_loss(self, loss: Any) -> "Miner":
        """The miner to use with this loss: if its margin was not set (None), a copy with the margin of the loss.

        A loss without a margin is then an error.
        """
        if getattr(self, "margin", 0.0) is not None:
            return self
        if getattr(loss, "margin", None) is None:
            raise NearkinError(f"{type(self).__name__}: {type(loss).__name__} has no margin to share; set the miner's")
        other = copy.copy(self)
        other.margin = loss.margin  # type: ignore[attr-defined]
        return other

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets | PairMasks:
        """Choose from B anchors and M references, without a graph: `Triplets` (T,) or `PairMasks` (B, M)."""
        raise NearkinError(f"{type(self).__name__} does not define mine(pairs, generator)")


def positive_slots(pairs: Pairs) -> Iterator[tuple[Tensor, Tensor]]:
    """The first, second, ... positive of every anchor: yields (column, has), both (B,).

    `has` says whether the anchor has that many positives; if not, the column means nothing.
    """
    count = pairs.positive.sum(1)  # (B,)
    columns = pairs.positive.nonzero()[:, 1]
    first = count.cumsum(0) - count
    for slot in range(int(count.max()) if len(count) else 0):
        has = slot < count
        yield columns[(first + slot).clamp_max(len(columns) - 1)], has


def one_per_anchor(pairs: Pairs, positive: Tensor, negative: Tensor) -> Triplets:
    """One triplet (T,) for every anchor that has a positive and a negative, from a column of each (B,)."""
    anchor = (pairs.positive.any(1) & pairs.negative.any(1)).nonzero()[:, 0]  # (T,)
    return Triplets(anchor, positive[anchor], negative[anchor])


def triplets_where(pairs: Pairs, condition: Callable[[Tensor], Tensor] | None = None) -> Triplets:
    """All triplets, or those for which condition(column of the positive (B,)) -> (B, M) is true at the negative.

    It goes through the positives of all anchors one after another, so that nothing larger than (B, M) is in memory
    except the list itself.
    """
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    for positive, has in positive_slots(pairs):
        mask = pairs.negative & has[:, None]
        if condition is not None:
            mask &= condition(positive)
        row, column = mask.nonzero(as_tuple=True)
        parts.append((row, positive[row], column))
    if not parts:
        none = torch.zeros(0, dtype=torch.long, device=pairs.z.device)
        return Triplets(none, none, none)
    return Triplets(*(torch.cat(indices) for indices in zip(*parts, strict=True)))


class PartModule(ModuleType):
    """A submodule that has the name of a part: if it is called instead of the class, it names the class."""

    def __call__(self, *args: Any, **settings: Any) -> NoReturn:
        package = self.__name__.rpartition(".")[0]
        public = vars(sys.modules[package])
        names = [name for name in public["__all__"] if public[name].__module__ == self.__name__]
        holds = f"; call {', '.join(f'{package}.{name}' for name in names)}" if names else ""
        raise NearkinError(f"{self.__name__} is a module{holds}")


def explain_modules(package: str) -> None:
    """Let every imported submodule of a package explain itself when it is called."""
    for name, module in list(sys.modules.items()):
        if name.rpartition(".")[0] == package and type(module) is ModuleType:
            module.__class__ = PartModule


MINERS.takes(Miner, nn.Module, words="a nearkin.miners.Miner, or a torch.nn.Module (miners/foreign.py)")
