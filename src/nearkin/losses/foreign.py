"""`ForeignLoss`: a loss of another library behind the interface of `Loss`."""

from typing import Any, ClassVar

from torch import Tensor, nn

from nearkin.losses.base import Loss
from nearkin.pairs import PairMasks, Pairs, Triplets


class ForeignLoss(Loss):
    """A loss of another library, called as `loss(embeddings, labels, indices_tuple)`.

    That is the signature of pytorch-metric-learning: triplets are passed as (a, p, n), pairs as (a, p, a, n). Nothing
    of that library is imported here; any module with this signature will do. Its parameters are trained and saved like
    those of our own losses.

    Parameters:
        module: the loss of the other library.
    """

    accepts: ClassVar[tuple[type, ...]] = (PairMasks, Triplets)

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, embeddings: Any, labels: Any = None, tuples: Any = None, *, generator: Any = None) -> Tensor:
        """The value that the other library's module gives, with the tuples translated to its convention.

        embeddings (B, D) or `Pairs`, labels (B,), tuples `PairMasks`, `Triplets` or None. Where references other than
        the batch exist, they are passed as its fourth and fifth arguments, vectors (M, D) and labels (M,). The
        generator is not used.
        """
        pairs = Pairs.of(embeddings, labels)
        indices: tuple[Tensor, ...] | None = None
        if isinstance(tuples, PairMasks):
            indices = (*tuples.positive.nonzero(as_tuple=True), *tuples.negative.nonzero(as_tuple=True))
        elif tuples is not None:
            indices = tuple(tuples)
        if pairs.square:
            return self.module(pairs.z, pairs.labels, indices)
        return self.module(pairs.z, pairs.labels, indices, pairs.reference_z, pairs.reference_labels)
