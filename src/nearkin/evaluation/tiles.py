"""Similarities in tiles of one fixed shape.

The similarities of a block of rows with a block of columns are always one product of TILE × D by D × TILE, padded with
zeros where the data end (the last bits of a bare product depend on its shape). The blocks I, J of one set are always
computed as I × J with I <= J and read across for the rows of J, so that the use of symmetry changes no bit either.

    cosine   e_q · e_g, e = z/‖z‖
    euclid   -‖z_q - z_g‖², raw vectors
    snr      -Var(e_q - e_g) / Var(e_q), variances over the D coordinates (Yuan et al. 2019); not symmetric

Arithmetic is float32; float64 input is normalised or centred in float64 first. T = TILE.
"""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from nearkin.errors import NearkinError, choices
from nearkin.numerics import unit

TILE = 1024
METRICS = ("cosine", "euclid", "snr")


class Tiles:
    """tiles(i, j): similarities of query block i with gallery block j; -inf on the padding and on the query itself.

    The array is good until the next call.
    """

    def __init__(self, query: Tensor, gallery: Tensor, metric: str, own: np.ndarray | Tensor | None = None):
        if metric not in METRICS:
            raise NearkinError(f"unknown metric {metric!r}: {choices(metric, METRICS)}")
        if query.ndim != 2 or gallery.ndim != 2 or query.shape[1] != gallery.shape[1]:
            shapes = f"{tuple(query.shape)} and {tuple(gallery.shape)}"
            raise NearkinError(f"queries and gallery have shapes {shapes}; they must be (Q, D) and (G, D)")
        self.symmetric = query is gallery and own is not None and np.array_equal(own, np.arange(len(gallery)))
        self.query, self.gallery, self.metric = query.detach(), gallery.detach(), metric
        self.own = None if own is None else np.asarray(own)         # (Q,), -1: not in the gallery
        self.rows, self.columns = -(-len(query) // TILE), -(-len(gallery) // TILE)
        self.centre = _centre(self.gallery) if metric == "euclid" else None
        self._out = torch.empty(TILE, TILE)
        self.block = lru_cache(maxsize=2)(self._block)

    def _block(self, of_gallery: bool, i: int) -> Tensor:
        """One padded block, such that the similarity is a function of inner products."""
        z = (self.gallery if of_gallery else self.query)[i * TILE : (i + 1) * TILE]
        block = z.new_zeros(TILE, z.shape[1], dtype=torch.promote_types(z.dtype, torch.float32))
        block[: len(z)] = z
        if self.centre is not None:
            block[: len(z)] -= self.centre
            return block.float()                                    # (T, D)
        block = unit(block)
        if self.metric == "snr":
            block -= block.mean(1, keepdim=True)
        return block.float()                                        # (T, D)

    def __call__(self, i: int, j: int) -> np.ndarray:
        a, b = self.block(self.symmetric, i), self.block(True, j)
        with torch.autocast("cpu", enabled=False):
            s = torch.mm(a, b.T, out=self._out)                     # (T, T)
        if self.metric != "cosine":
            s.mul_(2).sub_(_square(a)[:, None] + _square(b))        # minus the squared distance
        s[:, len(self.gallery) - j * TILE :] = -torch.inf
        if self.symmetric:
            s[len(self.query) - i * TILE :] = -torch.inf            # these rows are read as columns, too
        tile = s.numpy()
        if self.own is not None:
            column = self.own[i * TILE : (i + 1) * TILE] - j * TILE
            row = np.flatnonzero((column >= 0) & (column < TILE))
            tile[row, column[row]] = -np.inf
        return tile

    def valid(self, i: int) -> int:
        """Rows of query block i that are not padding."""
        return min(TILE, len(self.query) - i * TILE)

    @property
    def bytes(self) -> int:
        """Working memory at the peak: a tile and its copies, two blocks and their copies."""
        return 40 * TILE * TILE + 6 * TILE * self.query.shape[1] * max(self.query.element_size(), 4)

    def finish(self, i: int, rows: slice, similarity: np.ndarray) -> np.ndarray:
        """From what tiles are ranked by to what is reported, for these rows of query block i."""
        if self.metric == "cosine":
            return similarity
        similarity = np.minimum(similarity, 0)
        if self.metric == "snr":
            freedom = max(self.query.shape[1] - 1, 1)
            variance = (_square(self.block(self.symmetric, i)) / freedom).clamp_min(1e-12)
            similarity = similarity / freedom / variance.numpy()[rows, None]
        return similarity


def _square(x: Tensor) -> Tensor:
    return x.square().sum(1)


def _centre(z: Tensor) -> Tensor:
    """A shift changes no distance, and near the mean fewer digits are lost. An item, not the mean itself: the distances
    of whole numbers then stay exact, and equal ones tie."""
    mean = torch.stack([part.double().sum(0) for part in z.split(TILE)]).sum(0) / len(z)
    some = z[:TILE].double()
    return some[_square(some - mean).argmin()]
