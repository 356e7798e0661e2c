"""Exact nearest neighbours: the k best of every row, ties broken by the lower index.

A tile of similarities is compared with the k-th best that each row has so far; the few entries above it wait, as 64-bit
keys (similarity descending, then index ascending), until enough are there to be merged by a sort. Columns arrive in
ascending order, so an entry that only equals the k-th best comes too late. Keys order all entries totally: neither
memory budget nor chunk nor threads can change the result.

Shapes: Q queries, G gallery items, D dimensions, T = TILE.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nearkin.errors import NearkinError
from nearkin.evaluation.tiles import TILE, Tiles

WAIT = 32                                   # entries of a row that wait before they are merged, at least
BYTES_A_KEY = 140                           # measured: the peak, for each of the k best of a row that is ranked
BYTES_ALL_PASS = 64 * TILE * TILE           # measured: the peak when all entries of a tile are equal and pass
WORST = np.iinfo(np.int64).max
Progress = Callable[[int, int], None]       # tiles done, tiles in all
Block = tuple[np.ndarray, np.ndarray]       # index and similarity of up to T queries


@dataclass(frozen=True)
class Neighbours:
    """The k nearest of each query, best first. Similarity: cosine; minus the squared distance (euclid); minus the
    SNR distance."""

    index: Tensor                                                   # (Q, k) int64, into the gallery
    similarity: Tensor                                              # (Q, k) float32


def neighbours(
    query: Tensor,
    gallery: Tensor,
    k: int,
    *,
    own: np.ndarray | Tensor | None = None,
    metric: str = "cosine",
    budget_mib: float = 256,
    progress: Progress | None = None,
) -> Neighbours:
    """`own`: for each query its own index in the gallery, which is left out, or -1; None: no query is in the gallery.

    Where queries inside and outside meet and k reaches the whole gallery, those inside end with index -1, similarity
    -inf."""
    blocks = list(search(query, gallery, k, own=own, metric=metric, budget_mib=budget_mib, progress=progress))
    index, similarity = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return Neighbours(torch.from_numpy(index), torch.from_numpy(similarity))


def search(
    query: Tensor,
    gallery: Tensor,
    k: int,
    *,
    own: np.ndarray | Tensor | None = None,
    metric: str = "cosine",
    budget_mib: float = 256,
    progress: Progress | None = None,
) -> Iterator[Block]:
    """`neighbours`, one block of queries after the other (at most T), so that the whole (Q, k) need never exist."""
    tiles = Tiles(query, gallery, metric, own)
    available = len(gallery) - int(tiles.own is not None and bool((tiles.own >= 0).all()))
    if not 1 <= k <= available:
        raise NearkinError(f"k={k}: the gallery offers 1 to {available} neighbours a query")
    budget = budget_mib * 2**20
    least = tiles.bytes + max(BYTES_ALL_PASS, BYTES_A_KEY * k)
    if budget < least:
        raise NearkinError(
            f"budget_mib={budget_mib}: at least {least / 2**20:.0f} are needed for k={k}, D={query.shape[1]}"
        )
    held = Best.bytes_held(k) * len(query)
    if tiles.symmetric and held + tiles.bytes + max(BYTES_ALL_PASS, BYTES_A_KEY * k * TILE) <= budget:
        return _both_ways(tiles, k, progress)
    rows = min(TILE, int((budget - tiles.bytes) // (BYTES_A_KEY * k)))      # that can be ranked at a time
    return _by_rows(tiles, k, rows, progress)


def _by_rows(tiles: Tiles, k: int, rows: int, progress: Progress | None) -> Iterator[Block]:
    """One row block after the other; when k is large, a part of its rows at a time, with the same tiles again."""
    parts = [(i, part) for i in range(tiles.rows) for part in _parts(tiles.valid(i), rows)]
    for done, (i, part) in enumerate(parts):
        best = Best(k, part)
        for j in range(tiles.columns):
            if tiles.symmetric and j < i:
                best.offer(tiles(j, i), j * TILE, axis=1)
            else:
                best.offer(tiles(i, j), j * TILE, axis=0)
            if progress:
                progress(done * tiles.columns + j + 1, len(parts) * tiles.columns)
        yield best.decode(tiles, i)


def _both_ways(tiles: Tiles, k: int, progress: Progress | None) -> Iterator[Block]:
    """Each tile serves its rows and its columns; every row still sees the columns in ascending order."""
    best = [Best(k, slice(0, tiles.valid(i))) for i in range(tiles.rows)]
    done, total = 0, tiles.rows * (tiles.rows + 1) // 2
    for j in range(tiles.rows):
        for i in range(j + 1):
            similarity = tiles(i, j)
            if i < j:
                best[j].offer(similarity, i * TILE, axis=1)
            best[i].offer(similarity, j * TILE, axis=0)
            done += 1
            if progress:
                progress(done, total)
    for i, block in enumerate(best):
        yield block.decode(tiles, i)


def _parts(size: int, rows: int) -> list[slice]:
    return [slice(start, min(start + rows, size)) for start in range(0, size, rows)]


class Best:
    """The k best keys of R rows of a block, in no order, and behind them those that wait to be merged."""

    def __init__(self, k: int, rows: slice):
        self.k, self.rows = k, rows
        size = rows.stop - rows.start
        self.table = np.full((size, k + max(k, WAIT)), WORST)       # (R, W) keys
        self.fill = np.zeros(size, np.int64)                        # (R,) columns of the table in use
        self.bar = np.full(size, -np.inf, np.float32)               # (R,) an entry must be above it

    @staticmethod
    def bytes_held(k: int) -> int:
        return 8 * (k + max(k, WAIT))                               # of a row

    def offer(self, tile: np.ndarray, first: int, axis: int) -> None:
        """A (T, T) tile, in which the rows of this block lie along `axis`; its first column has index `first`."""
        similarity = tile[self.rows] if axis == 0 else tile[:, self.rows]
        if first == 0 and self.k < TILE:                            # without a bar yet, everything would pass
            by_row = similarity if axis == 0 else torch.from_numpy(similarity).T.contiguous().numpy()
            kth = np.partition(by_row, TILE - self.k, axis=1)[:, TILE - self.k]
            self.bar = np.nextafter(kth, np.float32(-np.inf))
        above = similarity > (self.bar[:, None] if axis == 0 else self.bar)
        flat = np.flatnonzero(above)
        row, column = np.divmod(flat, above.shape[1])
        value = similarity.ravel()[flat]
        if axis == 1:
            order = np.argsort(column.astype(np.int16), kind="stable")
            row, column, value = column[order], row[order], value[order]
        self._add(row, encode(value, column + first))

    def _add(self, row: np.ndarray, key: np.ndarray) -> None:
        """`row` ascends."""
        count = np.bincount(row, minlength=len(self.fill))
        place = np.arange(len(row)) + (self.fill - np.cumsum(count) + count)[row]
        self.fill += count
        most = int(self.fill.max())
        if most > self.table.shape[1]:
            more = np.full((len(self.table), most - self.table.shape[1]), WORST)
            self.table = np.concatenate([self.table, more], 1)
        self.table[row, place] = key
        if most > self.k + max(self.k, WAIT) // 2:
            self._merge()

    def _merge(self) -> None:
        self.table.partition(self.k - 1, axis=1)
        if self.table.shape[1] > self.k + max(self.k, WAIT):        # a tile with many candidates had widened it
            self.table = self.table[:, : self.k + max(self.k, WAIT)].copy()
        self.table[:, self.k :] = WORST
        self.fill[:] = self.k
        kth = self.table[:, self.k - 1]
        full = kth != WORST
        self.bar[full] = decode(kth[full])[1]

    def decode(self, tiles: Tiles, i: int) -> Block:
        self._merge()
        keys = np.sort(self.table[:, : self.k], axis=1)
        index, similarity = decode(keys)
        if (keys[:, -1] == WORST).any():                            # a query inside the gallery has one neighbour less
            index, similarity = np.where(keys == WORST, -1, index), np.where(keys == WORST, -np.inf, similarity)
        return index, tiles.finish(i, self.rows, similarity)


def encode(similarity: np.ndarray, index: np.ndarray) -> np.ndarray:
    """An int64 that sorts by similarity, descending, then by index, ascending."""
    bits = (similarity + np.float32(0)).view(np.int32)              # + 0: there is one zero, not two
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)                    # ascending with the float
    return (~ordered).astype(np.int64) << 32 | index


def decode(key: np.ndarray) -> Block:
    ordered = ~(key >> 32).astype(np.int32)
    bits = ordered ^ ((ordered >> 31) & 0x7FFFFFFF)
    return key & 0xFFFFFFFF, bits.view(np.float32)
