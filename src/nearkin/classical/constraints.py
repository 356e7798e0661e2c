"""What a metric is learned from: pairs and triplets of rows, drawn from labels or given."""

import numpy as np
from numpy.typing import ArrayLike

from nearkin.errors import NearkinError


def draw_triplets(labels: np.ndarray, number: int, seed: int) -> np.ndarray:
    """At most `number` different triplets of rows (T, 3): the second is of the first's class, the third is not.

    Rows that have no partner in their class or nobody outside it begin no triplet. The same seed draws the same.
    """
    random = np.random.default_rng(seed)
    order = np.argsort(labels, kind="stable")  # place -> row; the members of a class stand side by side
    _, first, count = np.unique(labels[order], return_index=True, return_counts=True)
    first, count = np.repeat(first, count), np.repeat(count, count)  # (N,) of each place: those of its class
    able = np.flatnonzero((count > 1) & (count < len(labels)))
    if not len(able):
        return np.empty((0, 3), dtype=int)
    i = random.choice(able, number)
    partner = (i - first[i] + 1 + random.integers(count[i] - 1)) % count[i] + first[i]
    other = (first[i] + count[i] + random.integers(len(labels) - count[i])) % len(labels)
    return np.unique(order[np.stack([i, partner, other], 1)], axis=0)


def draw_pairs(labels: np.ndarray, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `number` different similar pairs of rows (S, 2) and as many dissimilar ones (D, 2).

    One class has no dissimilar pairs, classes of one row have no similar ones. The same seed draws the same.
    """
    random = np.random.default_rng(seed)
    pairs = random.integers(len(labels), size=(2, number, 2))
    order = np.argsort(labels, kind="stable")
    _, first, count = np.unique(labels[order], return_index=True, return_counts=True)
    first, count = np.repeat(first, count), np.repeat(count, count)
    i = pairs[0, :, 0]
    pairs[0] = order[np.stack([i, first[i] + pairs[0, :, 1] % count[i]], 1)]
    similar, dissimilar = (np.unique(np.sort(side, 1), axis=0) for side in pairs)
    same = labels[dissimilar[:, 0]] == labels[dissimilar[:, 1]]
    return similar[similar[:, 0] != similar[:, 1]], dissimilar[~same]


def check_tuples(tuples: ArrayLike, width: int, rows: int, name: str) -> np.ndarray:
    """Tuples of rows that a user gave, as whole numbers (T, width) between 0 and `rows` - 1."""
    given = np.asarray(tuples)
    if given.size == 0:
        return np.empty((0, width), dtype=int)
    if given.ndim != 2 or given.shape[1] != width:
        raise NearkinError(f"{name} of shape {given.shape}: must be (number, {width}), the rows of X that it relates")
    if not np.issubdtype(given.dtype, np.integer):
        raise NearkinError(f"{name} of {given.dtype}: must be whole numbers, the rows of X that it relates")
    if given.min() < 0 or given.max() >= rows:
        raise NearkinError(f"{name} names row {given.min() if given.min() < 0 else given.max()}: X has 0 to {rows - 1}")
    return given


def nearest_of_class(x: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Target neighbours: pairs (i, j) of each row and its k nearest rows of the same class, or as many as there are,
    in the order of i."""
    from sklearn.neighbors import NearestNeighbors

    pairs = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        most = min(k + 1, len(rows))
        near = NearestNeighbors(n_neighbors=most, algorithm="brute").fit(x[rows]).kneighbors(x[rows])[1]  # (n, most)
        for i, row in zip(rows, near, strict=True):
            pairs += [(i, rows[j]) for j in row if rows[j] != i][:k]
    return np.array(sorted(pairs), dtype=int).reshape(-1, 2)
