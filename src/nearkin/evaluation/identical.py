"""Embeddings that are identical to another one, bit for bit: copies of an image, or a model that has collapsed."""

import numpy as np
import torch
from torch import Tensor

from nearkin.evaluation.inputs import Sets

CHUNK = 4096  # rows that are hashed at a time
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # bytes of a number -> the integers of that size


def identical_note(sets: Sets) -> str:
    """A warning about identical embeddings among queries and gallery, "" without any."""
    hashes = [row_hashes(sets.gallery)]
    if sets.query is not sets.gallery:
        outside = slice(None) if sets.self_index is None else torch.from_numpy(sets.self_index < 0)
        hashes.append(row_hashes(sets.query[outside]))
    _, counts = np.unique(np.concatenate(hashes), return_counts=True)
    n, same = int(counts.sum()), int(counts[counts > 1].sum())
    if not same:
        return ""
    if len(counts) == 1:
        return (
            f"warning: all {n:,} embeddings are identical: the model has collapsed, and the figures say nothing but in "
            "which order the rows stand"
        )
    return (
        f"warning: {same:,} of {n:,} embeddings are identical to another one: copies of an image, or a model that "
        "collapses; between equal neighbours the order of the rows decides"
    )


def row_hashes(z: Tensor) -> np.ndarray:  # (N, D) -> (N,) int64
    """A hash of each row: the sum of its numbers, read as integers, times random odd numbers, modulo 2^64."""
    kind = INTEGERS[z.element_size()]
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, (z.shape[1],), generator=generator) * 2 + 1  # (D,)
    parts = [
        ((z[start : start + CHUNK] + 0.0).contiguous().view(kind).long() * factors).sum(1)  # -0 + 0 is 0
        for start in range(0, len(z), CHUNK)
    ]
    return torch.cat(parts).numpy() if parts else np.empty(0, np.int64)
