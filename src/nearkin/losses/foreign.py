"""`ForeignLoss`: a loss of another library, or a plain module, behind the interface of `Loss`."""

import inspect
from typing import Any

from torch import Tensor, nn

from nearkin.errors import NearkinError
from nearkin.losses.base import Loss, one_number
from nearkin.miners.foreign import as_indices
from nearkin.pairs import PairMasks, Triplets


class ForeignLoss(Loss):
    """A loss of another library, called as `loss(embeddings, labels, indices_tuple)`; or a plain module, called as
    `loss(embeddings, labels)`.

    The first is the signature of pytorch-metric-learning: triplets are passed as (a, p, n), pairs as (a1, p, a2, n).
    Nothing of that library is imported here; any module with this signature will do. A module that takes two arguments
    sees all of the batch: no miner, memory or ref_emb goes with it. The parameters of either are trained and saved like
    those of our own losses.

    Parameters:
        module: the loss of the other library, or the plain module.

    Example:
        loss = ForeignLoss(MyModule())
        value = loss(embeddings, labels)
    """

    def __init__(self, module: nn.Module):
        super().__init__()
        if not isinstance(module, nn.Module):
            what = f"the class {module.__name__}: call it" if isinstance(module, type) else f"a {type(module).__name__}"
            raise NearkinError(f"a loss is a torch.nn.Module, not {what}")
        self.module = module
        self.plain = not _takes_three(module)

    @property
    def accepts(self) -> tuple[type, ...]:  # type: ignore[override]
        """What miners may give: anything but to a plain module."""
        return () if self.plain else (PairMasks, Triplets)

    @property
    def numbered(self) -> bool:
        """Does it read labels as numbers of classes? One that has parameters may."""
        return any(True for _ in self.module.parameters())

    def forward(
        self,
        embeddings: Any,
        labels: Any = None,
        tuples: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Any = None,
        *,
        indices_tuple: Any = None,
        generator: Any = None,
    ) -> Tensor:
        """The value that the other library's module gives, with the tuples translated to its convention.

        embeddings (B, D) or `Pairs`, labels (B,), tuples `PairMasks`, `Triplets`, index tensors or None. Where
        references other than the batch exist, they are passed as its fourth and fifth arguments, vectors (M, D) and
        labels (M,). The generator is not used.
        """
        name = type(self.module).__name__
        if self.plain and any(beside is not None for beside in (tuples, indices_tuple, ref_emb)):
            raise NearkinError(f"{name} takes embeddings and labels alone, neither a miner's tuples nor ref_emb")
        pairs, tuples = self.given(embeddings, labels, tuples, ref_emb, ref_labels, indices_tuple)
        indices = None if tuples is None else as_indices(tuples)
        if not len(pairs.z) or not len(pairs.reference_z):
            return self.nothing(pairs)
        if self.plain:
            value = self.module(pairs.z, pairs.labels)
        elif pairs.square:
            value = self.module(pairs.z, pairs.labels, indices)
        else:
            value = self.module(pairs.z, pairs.labels, indices, pairs.reference_z, pairs.reference_labels)
        return one_number(value, name)


def _takes_three(module: nn.Module) -> bool:
    """Can a module be called with embeddings, labels and indices?"""
    try:
        inspect.signature(module.forward).bind(None, None, None)
    except TypeError:
        return False
    return True
