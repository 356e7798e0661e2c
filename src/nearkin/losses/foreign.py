"""`ForeignLoss`: a loss of another library behind the interface of `Loss`."""

from typing import Any, ClassVar

from torch import Tensor, nn

from nearkin.losses.base import Loss
from nearkin.miners.foreign import as_indices
from nearkin.pairs import PairMasks, Triplets


class ForeignLoss(Loss):
    """A loss of another library, called as `loss(embeddings, labels, indices_tuple)`.

    That is the signature of pytorch-metric-learning: triplets are passed as (a, p, n), pairs as (a1, p, a2, n).
    Nothing of that library is imported here; any module with this signature will do. Its parameters are trained and
    saved like those of our own losses.

    Parameters:
        module: the loss of the other library.
    """

    accepts: ClassVar[tuple[type, ...]] = (PairMasks, Triplets)

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

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
        pairs, tuples = self.given(embeddings, labels, tuples, ref_emb, ref_labels, indices_tuple)
        indices = None if tuples is None else as_indices(tuples)
        if not len(pairs.z) or not len(pairs.reference_z):
            return self.nothing(pairs)
        if pairs.square:
            return self.module(pairs.z, pairs.labels, indices)
        return self.module(pairs.z, pairs.labels, indices, pairs.reference_z, pairs.reference_labels)
