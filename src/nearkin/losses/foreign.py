"""A loss of another library, called as `loss(embeddings, labels, indices_tuple)`.

That is the signature of pytorch-metric-learning: triplets travel as (a, p, n), pairs as (a, p, a, n). Nothing of that
library is imported here; any module with this signature will do. Its parameters are trained and saved like our own.
"""

from typing import Any, ClassVar

from torch import Tensor, nn

from nearkin.losses.base import Loss
from nearkin.pairs import PairMasks, Pairs, Triplets


class ForeignLoss(Loss):
    accepts: ClassVar[tuple[type, ...]] = (PairMasks, Triplets)

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, embeddings: Any, labels: Any = None, tuples: Any = None, *, generator: Any = None) -> Tensor:
        pairs = Pairs.of(embeddings, labels)
        indices: tuple[Tensor, ...] | None = None
        if isinstance(tuples, PairMasks):
            indices = (*tuples.positive.nonzero(as_tuple=True), *tuples.negative.nonzero(as_tuple=True))
        elif tuples is not None:
            indices = tuple(tuples)
        if pairs.square:
            return self.module(pairs.z, pairs.labels, indices)
        return self.module(pairs.z, pairs.labels, indices, pairs.reference_z, pairs.reference_labels)
