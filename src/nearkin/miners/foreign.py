"""Miners of other libraries: `ForeignMiner`, one behind the interface of `Miner`, and the translation of tuples.

pytorch-metric-learning lists triplets as (a, p, n) and pairs as (a1, p, a2, n): tuples of index tensors. Nothing of it
is imported here.
"""

from typing import Any

import torch
from torch import Generator, Tensor

from nearkin.errors import NearkinError
from nearkin.miners.base import Miner
from nearkin.pairs import PairMasks, Pairs, Triplets


class ForeignMiner(Miner):
    """A miner of another library, called as `miner(embeddings, labels)`.

    It returns (a, p, n) or, for pairs, (a1, p, a2, n): the convention of pytorch-metric-learning. Which of the two is
    determined on a small batch, so that a loss that does not accept it is refused when the objective is built.

    Parameters:
        miner: the miner of the other library.
        dim: the dimension of the embeddings in the small batch.
    """

    def __init__(self, miner: Any, *, dim: int = 8):
        self.miner = miner
        with torch.random.fork_rng(devices=[]):  # the trial does not change the random state
            labels = torch.arange(16) // 4
            trial = Pairs.of(torch.randn(16, dim), labels)
            self.gives = type(self.mine(trial, None))  # type: ignore[misc]

    def mine(self, pairs: Pairs, generator: Generator | None) -> Triplets | PairMasks:
        """What the other library's miner chooses, as `Triplets` of (T,) or `PairMasks` of (B, M).

        It draws from the global random state, which is seeded from the generator for the call and restored afterwards.
        Where references other than the batch exist, they are its third and fourth arguments.
        """
        batch = (
            (pairs.z, pairs.labels)
            if pairs.square
            else (pairs.z, pairs.labels, pairs.reference_z, pairs.reference_labels)
        )
        with torch.random.fork_rng(devices=[]):
            if generator is not None:  # foreign miners draw from the global state
                torch.manual_seed(int(torch.randint(2**62, (), generator=generator, device=generator.device)))
            indices: Any = self.miner(*batch)
        return from_indices(indices, pairs, f"{type(self.miner).__name__}'s")


def as_indices(tuples: Any) -> tuple[Tensor, ...]:
    """The result of a nearkin miner in the form of pytorch-metric-learning: a tuple of index tensors.

    `Triplets` become (a, p, n), `PairMasks` (a1, p, a2, n); a tuple of 3 or 4 index tensors stays as it is.

    Example:
        value = pytorch_metric_learning.losses.TripletMarginLoss()(embeddings, labels, as_indices(tuples))
    """
    if isinstance(tuples, PairMasks):
        return (*tuples.positive.nonzero(as_tuple=True), *tuples.negative.nonzero(as_tuple=True))
    if isinstance(tuples, Triplets) or (is_indices(tuples) and len(tuples) in (3, 4)):
        return tuple(tuples)
    raise NearkinError(f"{type(tuples).__name__} is not the result of a miner: Triplets or PairMasks are needed")


def is_indices(tuples: Any) -> bool:
    """Is it a plain tuple or list, as in other libraries?"""
    return type(tuples) in (tuple, list)


def from_indices(indices: Any, pairs: Pairs, whose: str = "the") -> Triplets | PairMasks:
    """`Triplets` of (T,) from (a, p, n), `PairMasks` of (B, M) from (a1, p, a2, n); batch and labels must allow them.

    A pair that is listed twice counts once: masks do not count.
    """
    name = f"{whose} indices_tuple"
    if not is_indices(indices) or len(indices) not in (3, 4):
        given = f"{len(indices)} index tensors" if is_indices(indices) else f"a {type(indices).__name__}"
        raise NearkinError(f"{name} is {given}; it must have 3, triplets (a, p, n), or 4, pairs (a1, p, a2, n)")
    rows = (0,) if len(indices) == 3 else (0, 2)
    sizes = [len(pairs.z) if i in rows else len(pairs.reference_z) for i in range(len(indices))]
    checked = [_index(index, size, name, pairs.z.device) for index, size in zip(indices, sizes, strict=True)]
    lengths = [len(index) for index in checked]
    for first, after in zip(rows, (*rows[1:], len(checked)), strict=True):
        if len(set(lengths[first:after])) > 1:
            raise NearkinError(f"{name} has index tensors of lengths {', '.join(map(str, lengths))}")
    _check_labels(checked, pairs, name)
    if len(checked) == 3:
        return Triplets(*checked)
    masks = [torch.zeros(sizes[0], sizes[1], dtype=torch.bool, device=pairs.z.device) for _ in rows]
    for mask, first in zip(masks, rows, strict=True):
        mask[checked[first], checked[first + 1]] = True
    return PairMasks(*masks)


def _check_labels(checked: list[Tensor], pairs: Pairs, name: str) -> None:
    """Refuse positives of another class than their anchor, negatives of its class, and pairs of an anchor with itself:
    masks would drop them without a word."""
    a, p, b, n = checked if len(checked) == 4 else (checked[0], checked[1], checked[0], checked[2])
    wrong = {
        "positive pairs (a, p) are of two classes": (a, p, pairs.labels[a] != pairs.reference_labels[p]),
        "negative pairs (a, n) are of one class": (b, n, pairs.labels[b] == pairs.reference_labels[n]),
    }
    if len(checked) == 4 and pairs.self_index is not None:
        wrong["positive pairs (a, p) are an image and itself"] = (a, p, pairs.self_index[a] == p)
    counts = torch.stack([mask.sum() for _, _, mask in wrong.values()]).tolist()  # one wait for a device
    for (words, (rows, columns, mask)), count in zip(wrong.items(), counts, strict=True):
        if count:
            row, column = int(rows[mask][0]), int(columns[mask][0])
            such = f"({row}, {column}), labels {int(pairs.labels[row])} and {int(pairs.reference_labels[column])}"
            raise NearkinError(f"{name} contradicts the labels: {count:,} of {len(rows):,} {words}, such as {such}")


def _index(index: Any, size: int, name: str, device: torch.device) -> Tensor:
    """One index tensor (T,) as int64, each index below the size."""
    try:
        index = torch.as_tensor(index, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise NearkinError(f"{name} holds a {type(index).__name__}; it must hold index tensors (T,)") from error
    if index.ndim != 1 or (len(index) and (index.is_floating_point() or index.dtype in (torch.bool, torch.complex64))):
        raise NearkinError(
            f"{name} holds a {index.dtype} tensor {tuple(index.shape)}; index tensors must be integers (T,)"
        )
    if len(index) and not 0 <= int(index.min()) <= int(index.max()) < size:
        raise NearkinError(
            f"{name} has indices from {int(index.min())} to {int(index.max())}; there are {size} rows, 0 to {size - 1}"
        )
    return index.long()
