"""`Pairs`: B anchors against M references, the one value that every loss and miner sees.

    references = the batch itself     -> ordinary pair losses
               = batch ++ memory      -> cross-batch memory
               = all ranks' batches   -> distributed training
               = a loss's own proxies -> proxy and softmax losses

Similarities, distances and masks are computed once, when first asked for, in at least float32; L2
normalisation happens here and nowhere else in training.

Shapes: B anchors, M references, D dimensions.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from nearkin.errors import NearkinError
from nearkin.numerics import at_least_float32, cosines, matmul, sqrt0, unit


@dataclass
class Embedded:
    """What a model returns: raw embeddings, and what a method reads beside them, one row a sample."""

    z: Tensor                                                       # (B, D)
    extras: dict[str, Tensor] = field(default_factory=dict)         # (B, ...) each
    mix: Any = None                                                 # what the network mixed (regularisers/mixup.py)

    def map(self, change: Callable[[Tensor], Tensor]) -> "Embedded":
        """The same with every tensor changed (gathered from all processes, detached, cut)."""
        return Embedded(change(self.z), {k: change(v) for k, v in self.extras.items()}, self.mix)

    def tensors(self) -> list[Tensor]:
        return [self.z, *self.extras.values()]


class Triplets(NamedTuple):
    """Index tuples of a miner: anchor rows, positive and negative reference columns."""

    anchor: Tensor                                                  # (T,)
    positive: Tensor                                                # (T,)
    negative: Tensor                                                # (T,)


class Couples(NamedTuple):
    """Anchors with one positive each, as a loss that uses all negatives draws them (N-pair, angular)."""

    anchor: Tensor                                                  # (T,)
    positive: Tensor                                                # (T,)


class Quadruplets(NamedTuple):
    """Triplets with a second negative `other`, of a third class; -1 where the batch has none."""

    anchor: Tensor                                                  # (T,)
    positive: Tensor                                                # (T,)
    negative: Tensor                                                # (T,)
    other: Tensor                                                   # (T,)


class PairMasks(NamedTuple):
    """The pairs that a miner keeps."""

    positive: Tensor                                                # (B, M) bool
    negative: Tensor                                                # (B, M) bool


class Pairs:
    def __init__(
        self,
        z: Tensor,
        labels: Tensor,
        *,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        own: Tensor | None = None,
    ):
        """`own`: for each anchor the column that is the anchor itself, so that self-pairs are excluded by
        index; None when no reference is an anchor. Without references the batch refers to itself."""
        self.z = at_least_float32(z)                               # (B, D), raw
        self.labels = labels                                        # (B,)
        self.square = references is None
        if references is None or reference_labels is None:
            self.reference_z = self.z                               # (M, D), raw
            self.reference_labels = labels                          # (M,)
            self.own: Tensor | None = torch.arange(len(z), device=z.device)
        else:
            self.reference_z = at_least_float32(references)
            if self.reference_z.dtype != self.z.dtype:              # float64 embeddings, float32 proxies
                common = torch.promote_types(self.z.dtype, self.reference_z.dtype)
                self.z, self.reference_z = self.z.to(common), self.reference_z.to(common)
            self.reference_labels = reference_labels
            self.own = own

    @classmethod
    def of(cls, embeddings: "Pairs | Tensor", labels: Tensor | None) -> "Pairs":
        """A checked batch from plain tensors; a `Pairs` passes through."""
        if isinstance(embeddings, Pairs):
            return embeddings
        if labels is None:
            raise NearkinError("labels are missing: call loss(embeddings, labels)")
        if embeddings.ndim != 2:
            raise NearkinError(f"embeddings have shape {tuple(embeddings.shape)}; a batch is (B, D)")
        if labels.shape != embeddings.shape[:1]:
            raise NearkinError(
                f"{len(embeddings)} embeddings but labels of shape {tuple(labels.shape)}; one label an embedding"
            )
        if labels.is_floating_point() or labels.is_complex():
            raise NearkinError(f"labels are {labels.dtype}; class labels are integers (labels.long())")
        return cls(embeddings, labels.to(embeddings.device))

    # -- geometry -----------------------------------------------------------------------------------------

    @cached_property
    def e(self) -> Tensor:
        """Anchors on the unit sphere."""
        return unit(self.z)                                         # (B, D)

    @cached_property
    def reference_e(self) -> Tensor:
        return self.e if self.square else unit(self.reference_z)    # (M, D)

    @cached_property
    def s(self) -> Tensor:
        """Cosine similarities."""
        if self.square:
            return matmul(self.e, self.e.T)                         # (B, M)
        return cosines(self.z, self.reference_z)                    # (B, M)

    @cached_property
    def d2(self) -> Tensor:
        """Squared distances on the sphere, 2 - 2s."""
        return (2 - 2 * self.s).clamp_min(0)                        # (B, M)

    @cached_property
    def d(self) -> Tensor:
        """Distances on the sphere, √(2 - 2s)."""
        return sqrt0(2 - 2 * self.s)                                # (B, M)

    def d2_at(self, row: Tensor, column: Tensor) -> Tensor:
        """Squared distances of listed pairs: from their vectors when they are few, else from the matrix."""
        if len(row) * self.z.shape[1] <= len(self.z) * len(self.reference_z):
            return (self.e[row] - self.reference_e[column]).square().sum(1)                     # (T,)
        return self.d2.flatten().index_select(0, row * len(self.reference_z) + column)          # (T,)

    def d_at(self, row: Tensor, column: Tensor) -> Tensor:
        return sqrt0(self.d2_at(row, column))                                                   # (T,)

    @cached_property
    def dot(self) -> Tensor:
        """Inner products of the raw vectors."""
        return matmul(self.z, self.reference_z.T)                   # (B, M)

    @cached_property
    def raw_d(self) -> Tensor:
        """Euclidean distances of the raw vectors."""
        square = self.z.square().sum(1)                             # (B,)
        reference_square = square if self.square else self.reference_z.square().sum(1)
        return sqrt0(square[:, None] + reference_square - 2 * self.dot)     # (B, M)

    # -- who is whose kin ---------------------------------------------------------------------------------

    @cached_property
    def same(self) -> Tensor:
        return self.labels[:, None] == self.reference_labels        # (B, M) bool, the anchor itself included

    @cached_property
    def positive(self) -> Tensor:
        if self.own is None:
            return self.same
        return self.same.scatter(1, self.own[:, None], False)       # (B, M) bool

    @cached_property
    def negative(self) -> Tensor:
        return ~self.same                                           # (B, M) bool

    # -- the same geometry under other labels or fewer pairs ----------------------------------------------

    def relabel(self, labels: Tensor, reference_labels: Tensor | None = None) -> "Pairs":
        """Other labels, shared geometry (mixup: λ·L(y) + (1-λ)·L(y_π))."""
        other = copy.copy(self)
        for mask in ("same", "positive", "negative"):
            other.__dict__.pop(mask, None)
        other.labels = labels
        other.reference_labels = labels if reference_labels is None else reference_labels
        return other

    def restrict(self, kept: PairMasks) -> "Pairs":
        """Only the pairs that a miner keeps; never more than the labels allow."""
        other = copy.copy(self)
        other.__dict__["positive"] = self.positive & kept.positive
        other.__dict__["negative"] = self.negative & kept.negative
        return other

    def detach(self) -> "Pairs":
        """The same pairs without a graph, for miners: what is computed already is shared, not repeated."""
        other = copy.copy(self)
        for name, value in self.__dict__.items():
            if isinstance(value, Tensor):
                other.__dict__[name] = value.detach()
        return other

    def zero(self) -> Tensor:
        """A loss of nothing: 0, with a graph, so that backward works."""
        return (self.z * 0).sum()


def draw_one(mask: Tensor, generator: Generator | None, rows: Tensor | None = None) -> Tensor:
    """One uniformly drawn column of each row of a mask, or of each listed row; column 0 where a row has none (leave it
    out yourself)."""
    count = mask.sum(1)                                             # (B,)
    first = count.cumsum(0) - count                                 # in the list of all columns, row after row
    if rows is not None:
        count, first = count[rows], first[rows]
    columns = mask.nonzero()[:, 1]
    if not len(columns):
        return torch.zeros_like(count)
    chance = torch.rand(len(count), generator=generator, device=mask.device, dtype=torch.float64)
    place = first + (chance * count).long()
    return columns[place.clamp_max(len(columns) - 1)].masked_fill(count == 0, 0)
