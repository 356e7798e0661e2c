"""Similarities in tiles of one fixed shape.

The last bits of a matrix product depend on its shape. So the similarities of a block of queries with a block of gallery
items are always one product of a TILE × D by a D × TILE matrix, padded with zeros where the data end. If query and
gallery are one set, the tile of blocks I and J is always computed as I × J with I <= J, and its columns serve as the
rows of J: whether symmetry is used changes no bit either.

    distance   similarity by which items are ranked
    cosine     e_q · e_g, e = z/‖z‖
    euclid     -‖z_q - z_g‖², raw vectors
    snr        -Var(e_q - e_g) / Var(e_q), variances over the D coordinates (Yuan et al. 2019); not symmetric

The arithmetic is float32; float64 input is normalised or centred in float64 first.

Shapes: Q queries, G gallery items, D dimensions, T = TILE.
"""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from nearkin.errors import NearkinError, choices
from nearkin.numerics import unit

TILE = 1024
DISTANCES = ("cosine", "euclid", "snr")


def peak_bytes(dim: int, element_size: int = 4) -> int:
    """Working memory of the tiles of `dim` dimensions: a tile and its copies, two blocks and their copies."""
    return 40 * TILE * TILE + 6 * TILE * dim * max(element_size, 4)


def chosen_distance(distance: str | None, metric: str | None) -> str:
    """The distance of a call in which it may also be given as `metric`, its old name; cosine if neither is given."""
    if distance is not None and metric is not None and distance != metric:
        raise NearkinError(
            f"distance={distance!r} and metric={metric!r} contradict each other: metric is the old name of distance, "
            "give distance alone"
        )
    given = metric if distance is None else distance
    return check_distance("cosine" if given is None else given)


def check_distance(distance: str) -> str:
    """Return the distance; refuse one that is unknown."""
    if distance not in DISTANCES:
        raise NearkinError(f"unknown distance {distance!r}: {choices(distance, DISTANCES)}")
    return distance


class Tiles:
    """tiles(i, j): the (T, T) similarities of query block i with gallery block j.

    They are -inf on the padding and where an item meets itself. The next call overwrites the array.

    Parameters:
        query: (Q, D) tensor.
        gallery: (G, D) tensor.
        distance: "cosine", "euclid" or "snr".
        self_index: (Q,), the index of each query in the gallery, -1 for a query that is not in it; None if no query is.

    Attributes:
        rows, columns: the number of query blocks and of gallery blocks.
        symmetric: True if query and gallery are one set; tiles(i, j) is then called with i <= j only, and its columns
            serve as the rows of block j.
    """

    def __init__(self, query: Tensor, gallery: Tensor, distance: str, self_index: np.ndarray | Tensor | None = None):
        check_distance(distance)
        if query.ndim != 2 or gallery.ndim != 2 or query.shape[1] != gallery.shape[1]:
            shapes = f"{tuple(query.shape)} and {tuple(gallery.shape)}"
            raise NearkinError(f"queries and gallery have shapes {shapes}; they must be (Q, D) and (G, D)")
        self.symmetric = (
            query is gallery and self_index is not None and np.array_equal(self_index, np.arange(len(gallery)))
        )
        self.query, self.gallery, self.distance = query.detach(), gallery.detach(), distance
        self.self_index = None if self_index is None else np.asarray(self_index)  # (Q,)
        self.rows, self.columns = -(-len(query) // TILE), -(-len(gallery) // TILE)
        self.centre = _centre(self.gallery) if distance == "euclid" else None
        self._out = torch.empty(TILE, TILE)
        self.block = lru_cache(maxsize=2)(self._block)

    def _block(self, of_gallery: bool, i: int) -> Tensor:
        """One padded block, prepared so that the similarity is a function of inner products."""
        z = (self.gallery if of_gallery else self.query)[i * TILE : (i + 1) * TILE]
        block = z.new_zeros(TILE, z.shape[1], dtype=torch.promote_types(z.dtype, torch.float32))
        block[: len(z)] = z
        if self.centre is not None:
            block[: len(z)] -= self.centre
            return block.float()  # (T, D)
        block = unit(block)
        if self.distance == "snr":
            block -= block.mean(1, keepdim=True)
        return block.float()  # (T, D)

    def __call__(self, i: int, j: int) -> np.ndarray:
        a, b = self.block(self.symmetric, i), self.block(True, j)
        with torch.autocast("cpu", enabled=False):
            s = torch.mm(a, b.T, out=self._out)  # (T, T)
        if self.distance != "cosine":
            s.mul_(2).sub_(_square(a)[:, None] + _square(b))  # minus the squared distance
        s[:, len(self.gallery) - j * TILE :] = -torch.inf
        if self.symmetric:
            s[len(self.query) - i * TILE :] = -torch.inf  # these rows are also read as columns
        tile = s.numpy()
        if self.self_index is not None:
            column = self.self_index[i * TILE : (i + 1) * TILE] - j * TILE
            row = np.flatnonzero((column >= 0) & (column < TILE))
            tile[row, column[row]] = -np.inf
        return tile

    def valid(self, i: int) -> int:
        """How many rows of query block i are queries, not padding."""
        return min(TILE, len(self.query) - i * TILE)

    @property
    def bytes(self) -> int:
        """Working memory in bytes at the peak."""
        return peak_bytes(self.query.shape[1], self.query.element_size())

    def finish(self, i: int, rows: slice, similarity: np.ndarray) -> np.ndarray:
        """Turn what ranks the items into the similarity that is reported, for these rows of query block i.

        snr ranks by -‖·‖² of the centred vectors, which differs from the similarity by a factor per query.
        """
        if self.distance == "cosine":
            return similarity
        similarity = np.minimum(similarity, 0)
        if self.distance == "snr":
            freedom = max(self.query.shape[1] - 1, 1)
            variance = (_square(self.block(self.symmetric, i)) / freedom).clamp_min(1e-12)
            similarity = similarity / freedom / variance.numpy()[rows, None]
        return similarity


def _square(x: Tensor) -> Tensor:
    return x.square().sum(1)


def _centre(z: Tensor) -> Tensor:
    """The item nearest to the mean, among the first T.

    Subtracting a vector from all items changes no distance, and loses fewer digits when it is near the mean. An item is
    taken instead of the mean itself, so that distances of whole numbers stay exact and equal ones tie.
    """
    mean = torch.stack([part.double().sum(0) for part in z.split(TILE)]).sum(0) / len(z)
    items = z[:TILE].double()
    return items[_square(items - mean).argmin()]
