"""`Pairs`, on which every loss and miner works; `Embedded`, which a model returns; the index tuples of miners."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from nearkin.errors import NearkinError
from nearkin.numerics import at_least_float32, cosines, drawn, matmul, replace_small, rounding, sqrt0, unit


@dataclass
class Embedded:
    """What a model returns: raw embeddings, and whatever else a method reads, one row per sample.

    The attributes have the names of the parameters; there are B samples and D dimensions.

    Parameters:
        z: (B, D), the raw embeddings, not normalised.
        extras: name -> tensor (B, ...): what a head hands to a method besides z, such as the parts of DRML.
        mix: what mixup mixed inside the network (regularisers/mixup.py); None without mixup.

    Example:
        embedded = Embedded(embeddings, extras={"parts": embeddings.view(len(embeddings), 2, -1)})
        first = embedded.map(lambda tensor: tensor[:4])     # the first 4 samples
    """

    z: Tensor  # (B, D)
    extras: dict[str, Tensor] = field(default_factory=dict)  # (B, ...) each
    mix: Any = None

    def map(self, change: Callable[[Tensor], Tensor]) -> "Embedded":
        """The same with `change` applied to z and to every extra: to gather, detach or cut them."""
        return Embedded(change(self.z), {k: change(v) for k, v in self.extras.items()}, self.mix)

    def tensors(self) -> list[Tensor]:
        """z, then the extras."""
        return [self.z, *self.extras.values()]


class Triplets(NamedTuple):
    """Index tuples of a miner: anchors are rows, positives and negatives columns of the (B, M) matrices of `Pairs`."""

    anchor: Tensor  # (T,)
    positive: Tensor  # (T,)
    negative: Tensor  # (T,)


class Couples(NamedTuple):
    """Anchors with one positive each, for losses that use all negatives of an anchor (npair, angular)."""

    anchor: Tensor  # (T,)
    positive: Tensor  # (T,)


class Quadruplets(NamedTuple):
    """Triplets with a second negative `other`, which is of a third class; -1 where the batch has no third class."""

    anchor: Tensor  # (T,)
    positive: Tensor  # (T,)
    negative: Tensor  # (T,)
    other: Tensor  # (T,)


class PairMasks(NamedTuple):
    """The pairs that a miner keeps, as masks."""

    positive: Tensor  # (B, M) bool
    negative: Tensor  # (B, M) bool


class Pairs:
    """B anchors against M references: the one thing that every loss and miner sees.

        references = the batch itself                       -> ordinary pair losses
                   = the batch, then a memory               -> cross-batch memory
                   = the batches of all processes           -> distributed training
                   = the class vectors of a loss            -> proxy and softmax losses

    Similarities, distances and masks are computed when they are first asked for, once, in at least float32. L2
    normalisation happens here and nowhere else in training. An anchor does not form a pair with itself: self-pairs are
    excluded by index, so that an image and its duplicate in the batch are still a pair.

    `Pairs.of(embeddings, labels)` makes the ordinary case, a batch against itself, and checks its input.

    Parameters:
        z: (B, D), the raw embeddings of the anchors.
        labels: (B,), their classes, integers.
        references: (M, D), raw; None: the anchors themselves, M = B.
        reference_labels: (M,); must come with `references`.
        self_index: (B,), the column of each anchor that is the anchor itself; None: no reference is an anchor. It is
            read only if there are `references`; without them anchor i is column i.

    Attributes (computed ones on first use):
        z, reference_z: (B, D) and (M, D), raw, in at least float32.
        labels, reference_labels: (B,) and (M,).
        classes: their names, if the labels were strings (class k is classes[k]); else None.
        square: bool, the references are the anchors themselves.
        self_index: (B,) or None, as above.
        e, reference_e: (B, D) and (M, D), the unit vectors.
        s: (B, M), cosine similarities.
        d, d2: (B, M), distances of the unit vectors and their squares; exactly 0 for a vector and its copies.
        dot, raw_d: (B, M), inner products and distances of the raw vectors.
        same, positive, negative: (B, M) bool: of one class; of one class but not the anchor itself; of two classes.

    Example:
        pairs = nearkin.pairs.Pairs.of(embeddings, labels)
        nearest_negative = pairs.d.masked_fill(~pairs.negative, torch.inf).amin(1)      # (B,)
    """

    classes: tuple[str, ...] | None = None

    def __init__(
        self,
        z: Tensor,
        labels: Tensor,
        *,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        self_index: Tensor | None = None,
    ):
        self.z = at_least_float32(z)  # (B, D), raw
        self.labels = labels  # (B,)
        self.square = references is None
        if references is None or reference_labels is None:
            self.reference_z = self.z  # (M, D), raw
            self.reference_labels = labels  # (M,)
            self.self_index: Tensor | None = torch.arange(len(z), device=z.device)
        else:
            self.reference_z = at_least_float32(references)
            if self.reference_z.dtype != self.z.dtype:  # float64 embeddings, float32 proxies
                common = torch.promote_types(self.z.dtype, self.reference_z.dtype)
                self.z, self.reference_z = self.z.to(common), self.reference_z.to(common)
            self.reference_labels = reference_labels
            self.self_index = self_index

    @classmethod
    def of(cls, embeddings: Any, labels: Any, *, ref_emb: Any = None, ref_labels: Any = None) -> "Pairs":
        """A batch against itself or against given references; the input is checked. A `Pairs` is returned as it is.

        Parameters:
            embeddings: (B, D) tensor, an `Embedded`, or a `Pairs`.
            labels: (B,), the classes: a tensor, array or list of integers, or of strings, which are numbered in sorted
                order (`classes` then holds them); None only with a `Pairs`.
            ref_emb: (M, D) tensor, references other than the batch; None: the batch itself.
            ref_labels: (M,), their classes; must come with `ref_emb`. Strings are numbered together with those of the
                batch.
        """
        if isinstance(embeddings, Pairs):
            if ref_emb is not None or ref_labels is not None:
                raise NearkinError(
                    "embeddings are a Pairs, which already has its references: leave out ref_emb and ref_labels"
                )
            return embeddings
        z = _vectors(embeddings, "embeddings")
        if labels is None:
            raise NearkinError("labels are missing: call loss(embeddings, labels)")
        if ref_emb is None or (ref_emb is embeddings and (ref_labels is None or ref_labels is labels)):
            if ref_labels is not None and ref_emb is None:
                raise NearkinError("ref_labels without ref_emb: references are vectors (M, D) with labels (M,)")
            (numbers,), classes = _numbered({"labels": (labels, z)})
            pairs = cls(z, numbers)
        else:
            if ref_labels is None:
                raise NearkinError("ref_emb without ref_labels: references are vectors (M, D) with labels (M,)")
            references = _vectors(ref_emb, "ref_emb").to(z.device)
            if references.shape[1] != z.shape[1]:
                raise NearkinError(f"ref_emb has {references.shape[1]} dimensions, embeddings have {z.shape[1]}")
            (numbers, reference_numbers), classes = _numbered(
                {"labels": (labels, z), "ref_labels": (ref_labels, references)}
            )
            pairs = cls(z, numbers, references=references, reference_labels=reference_numbers)
        pairs.classes = classes
        return pairs

    # -- geometry -----------------------------------------------------------------------------------------

    @cached_property
    def e(self) -> Tensor:
        """(B, D), the anchors as unit vectors."""
        return unit(self.z)  # (B, D)

    @cached_property
    def reference_e(self) -> Tensor:
        """(M, D), the references as unit vectors."""
        return self.e if self.square else unit(self.reference_z)  # (M, D)

    @cached_property
    def s(self) -> Tensor:
        """(B, M), cosine similarities."""
        if self.square:
            return matmul(self.e, self.e.T)  # (B, M)
        return cosines(self.z, self.reference_z)  # (B, M)

    @cached_property
    def d2(self) -> Tensor:
        """(B, M), squared distances of the unit vectors, 2 - 2s; exactly 0 with gradient 0 for vectors on one ray."""
        return self._squares().relu()  # (B, M)

    @cached_property
    def d(self) -> Tensor:
        """(B, M), distances of the unit vectors, √(2 - 2s); exactly 0 with gradient 0 for vectors on one ray."""
        return sqrt0(self._squares())  # (B, M)

    def _squares(self) -> Tensor:
        """(B, M), 2 - 2s; where that is 0 up to rounding, the squared length of the difference.

        The 2 is the sum of two squared lengths; that of a zero vector is 0.
        """
        e = self.e  # (B, D)
        length = (self.z.norm(dim=1) > 0).to(e.dtype)  # (B,) 1 or 0
        reference_length = length if self.square else (self.reference_z.norm(dim=1) > 0).to(e.dtype)
        squares = torch.sub(length[:, None] + reference_length, self.s, alpha=2)  # (B, M)

        def difference(row: Tensor, column: Tensor) -> Tensor:
            reference = e[column] if self.square else unit(self.reference_z[column])  # (T, D)
            return self._zeroed((e[row] - reference).square().sum(1))

        small = squares.detach() <= 2 * rounding(e)
        return replace_small(squares, small, difference, e.shape[1])

    def _zeroed(self, squares: Tensor) -> Tensor:
        """Squared distances of unit vectors; those that are no larger than rounding are set to 0."""
        return F.threshold(squares, rounding(self.z) ** 2, 0)

    def d2_at(self, row: Tensor, column: Tensor) -> Tensor:
        """(T,), squared distances of T listed pairs: from their vectors if there are few, else from the matrix `d2`.

        Parameters:
            row: (T,), anchors.
            column: (T,), references.
        """
        if len(row) * self.z.shape[1] <= len(self.z) * len(self.reference_z):
            return self._zeroed((self.e[row] - self.reference_e[column]).square().sum(1))  # (T,)
        return self.d2.flatten().index_select(0, row * len(self.reference_z) + column)  # (T,)

    def d_at(self, row: Tensor, column: Tensor) -> Tensor:
        """(T,), distances of T listed pairs: the square root of `d2_at`."""
        return sqrt0(self.d2_at(row, column))  # (T,)

    def s_at(self, row: Tensor, column: Tensor) -> Tensor:
        """(T,), cosine similarities of T listed pairs."""
        return self.s.flatten().index_select(0, row * len(self.reference_z) + column)  # (T,)

    @cached_property
    def dot(self) -> Tensor:
        """(B, M), inner products of the raw vectors."""
        return matmul(self.z, self.reference_z.T)  # (B, M)

    @cached_property
    def raw_d(self) -> Tensor:
        """(B, M), Euclidean distances of the raw vectors; exactly 0 with gradient 0 for equal vectors."""
        square = self.z.square().sum(1)  # (B,)
        reference_square = square if self.square else self.reference_z.square().sum(1)
        both = square[:, None] + reference_square  # (B, M)
        squares = torch.sub(both, self.dot, alpha=2)  # (B, M)

        def difference(row: Tensor, column: Tensor) -> Tensor:
            exact = (self.z[row] - self.reference_z[column]).square().sum(1)  # (T,)
            return exact.masked_fill(exact <= rounding(self.z) ** 2 / 2 * both[row, column], 0)

        small = squares.detach() <= rounding(self.z) * both.detach()
        return sqrt0(replace_small(squares, small, difference, self.z.shape[1]))

    # -- which pairs are of one class ---------------------------------------------------------------------

    @cached_property
    def same(self) -> Tensor:
        """(B, M) bool: anchor and reference are of one class; also True for the anchor itself."""
        return self.labels[:, None] == self.reference_labels  # (B, M) bool

    @cached_property
    def positive(self) -> Tensor:
        """(B, M) bool: of one class, but not the anchor itself; after `restrict`, only the pairs that are kept."""
        if self.self_index is None:
            return self.same
        return self.same.scatter(1, self.self_index[:, None], False)  # (B, M) bool

    @cached_property
    def negative(self) -> Tensor:
        """(B, M) bool: of different classes; after `restrict`, only the pairs that are kept."""
        return ~self.same  # (B, M) bool

    # -- the same geometry under other labels or fewer pairs ----------------------------------------------

    def relabel(self, labels: Tensor, reference_labels: Tensor | None = None) -> "Pairs":
        """The same vectors under other labels, as mixup needs them: λ·L(y) + (1-λ)·L(y_π). Nothing is computed twice.

        Parameters:
            labels: (B,), of the anchors.
            reference_labels: (M,); None: the same as `labels`.
        """
        other = copy.copy(self)
        for mask in ("same", "positive", "negative"):
            other.__dict__.pop(mask, None)
        other.labels = labels
        other.reference_labels = labels if reference_labels is None else reference_labels
        return other

    def restrict(self, masks: PairMasks) -> "Pairs":
        """The same with `positive` and `negative` reduced to the pairs that a miner keeps; none are added."""
        other = copy.copy(self)
        other.__dict__["positive"] = self.positive & masks.positive
        other.__dict__["negative"] = self.negative & masks.negative
        return other

    def detach(self) -> "Pairs":
        """The same pairs without a graph, for miners. What is already computed is shared."""
        other = copy.copy(self)
        for name, value in self.__dict__.items():
            if isinstance(value, Tensor):
                other.__dict__[name] = value.detach()
        return other

    def zero(self) -> Tensor:
        """The loss when there is nothing to compare: 0, with a graph, so that backward works."""
        return (self.z * 0).sum()


def draw_one(mask: Tensor, generator: Generator | None, rows: Tensor | None = None) -> Tensor:
    """One column per row, drawn uniformly from the columns where the mask is True.

    A row without such a column gives column 0: the caller must leave it out.

    Parameters:
        mask: (B, M) bool.
        generator: where the random numbers come from; None: torch's global one.
        rows: (T,), the rows to draw for, possibly repeated; None: every row once.
    """
    count = mask.sum(1)  # (B,)
    before = count.cumsum(0) - count  # (B,) Trues in the rows above
    empty = mask.device.type == "cpu" and not count.any()  # a device would make us wait
    if rows is not None:
        count, before = count[rows], before[rows]
    if empty:
        return torch.zeros_like(count)
    chance = drawn(torch.rand, len(count), generator=generator, device=mask.device, dtype=torch.float64)
    nth = (chance * count).long().minimum(count - 1) + before + 1  # (T,) which True of the whole mask
    place = torch.searchsorted(mask.flatten().cumsum(0), nth)  # a list of the Trues would wait for the device
    return (place % max(1, mask.shape[1])).masked_fill_(count == 0, 0)


# -- what a caller passes in --------------------------------------------------------------------------------


def _vectors(given: Any, what: str) -> Tensor:
    """Embeddings (B, D) as given, after a check."""
    if isinstance(given, Embedded):
        if given.mix is not None:
            raise NearkinError(f"{what} come from mixed images, which have two labels: call an Objective with mixup")
        given = given.z
    if isinstance(given, np.ndarray):
        raise NearkinError(f"{what} are a numpy array, through which no gradient flows: torch.from_numpy({what})")
    if not isinstance(given, Tensor):
        raise NearkinError(f"{what} are a {type(given).__name__}; a batch is a tensor (B, D)")
    if given.ndim != 2:
        hint = {1: f"; one vector: {what}[None]", 4: f"; pooled maps: {what}.flatten(1)"}.get(given.ndim, "")
        raise NearkinError(f"{what} have shape {tuple(given.shape)}; a batch is (B, D){hint}")
    if not given.is_floating_point():
        raise NearkinError(f"{what} are {given.dtype}; vectors are floating-point numbers ({what}.float())")
    return given


def _numbered(given: dict[str, tuple[Any, Tensor]]) -> tuple[list[Tensor], tuple[str, ...] | None]:
    """Labels as integers, given beside their vectors; for strings also the names of the classes."""
    checked = {what: _labels(labels, what, z) for what, (labels, z) in given.items()}
    words = [labels for labels in checked.values() if isinstance(labels, np.ndarray)]
    if not words:
        return [labels for labels in checked.values() if isinstance(labels, Tensor)], None
    if len(words) < len(checked):
        kinds = (f"{what} are {'strings' if isinstance(k, np.ndarray) else 'integers'}" for what, k in checked.items())
        raise NearkinError(f"{', '.join(kinds)}; give both as strings, or both as integers")
    classes, numbers = np.unique(np.concatenate(words), return_inverse=True)
    parts = torch.from_numpy(numbers).split([len(part_labels) for part_labels in words])
    return [part.to(z.device) for part, (_, z) in zip(parts, given.values(), strict=True)], tuple(map(str, classes))


def _labels(given: Any, what: str, z: Tensor) -> Tensor | np.ndarray:
    """One label per row of z: integers as a tensor on its device, strings as an array."""
    labels = given if isinstance(given, Tensor) else _array(given, what)
    if labels.shape != z.shape[:1]:
        hint = ""
        if labels.ndim == 2 and len(labels) == len(z):
            hint = f": {what}.{'squeeze(1)' if labels.shape[1] == 1 else 'argmax(1), if they are one-hot'}"
        raise NearkinError(
            f"{len(z)} embeddings but {what} of shape {tuple(labels.shape)}; one label per embedding is needed{hint}"
        )
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "U":
        return labels
    if not len(labels):
        return torch.zeros(0, dtype=torch.long, device=z.device)
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "biu":
        return torch.from_numpy(labels.astype(np.int64)).to(z.device)
    if isinstance(labels, np.ndarray) or labels.is_floating_point() or labels.is_complex():
        raise NearkinError(f"{what} are {labels.dtype}; class labels are integers ({what}.long()) or strings")
    return labels.to(z.device)


def _array(given: Any, what: str) -> np.ndarray:
    """Labels that are not a tensor, as an array; strings as `U`."""
    if isinstance(given, list | tuple) and given and all(isinstance(item, Tensor) for item in given):
        given = [item.tolist() for item in given]
    try:
        array = np.asarray(given)
    except ValueError as error:  # rows of different lengths
        raise NearkinError(f"{what} are a {type(given).__name__} of unequal rows; one label per embedding") from error
    if array.dtype.kind not in "OUS" or not array.size:
        return array
    items = array.ravel().tolist() if isinstance(given, np.ndarray) else np.asarray(given, dtype=object).ravel()
    kinds = {type(item) for item in items}
    if all(issubclass(kind, str) for kind in kinds):
        return array.astype(str)
    if kinds == {bytes}:
        return np.char.decode(array.astype("S"), "utf-8", "replace")
    if any(issubclass(kind, str | bytes) for kind in kinds):
        other_kinds = ", ".join(sorted(kind.__name__ for kind in kinds if not issubclass(kind, str | bytes)))
        raise NearkinError(
            f"{what} are strings and {other_kinds or 'bytes'}; class labels are all strings or all integers"
        )
    if all(issubclass(kind, int | np.integer) for kind in kinds):
        return array.astype(np.int64)
    names = ", ".join(sorted("None" if kind is type(None) else kind.__name__ for kind in kinds))
    raise NearkinError(f"{what} hold {names}; class labels are integers or strings")
