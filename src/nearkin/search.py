"""Exact nearest neighbours: the k best of every row, ties broken by the lower index.

A tile of similarities is compared with the k-th best that each row has so far; the few entries above it wait, as 64-bit
keys (similarity descending, then index ascending), until enough are there to be merged by a sort. Columns arrive in
ascending order, so an entry that only equals the k-th best comes too late. Keys order all entries totally: neither
memory budget nor chunk nor threads can change the result.

Shapes: Q queries, G gallery items, D dimensions, T = TILE.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nearkin.errors import NearkinError
from nearkin.tiles import TILE, Tiles

WORST = np.iinfo(np.int64).max
Progress = Callable[[int, int], None]       # tiles done, tiles in all
Block = tuple[np.ndarray, np.ndarray]       # index and similarity of up to T queries


class Neighbours(NamedTuple):
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
    """`own`: for each query its own index in the gallery, left out by index; None: no query is in the gallery."""
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
    """`neighbours`, one block of T queries after the other, so that the whole (Q, k) need never exist."""
    tiles = Tiles(query, gallery, metric, own)
    available = len(gallery) - (own is not None)
    if not 1 <= k <= available:
        raise NearkinError(f"k={k}: the gallery offers 1 to {available} neighbours a query")
    fits = len(query) * Best.bytes_a_row(k) <= budget_mib * 2**20 / 2
    found = _both_ways(tiles, k, progress) if tiles.symmetric and fits else _by_rows(tiles, k, progress)
    for i, (index, similarity) in enumerate(found):
        rows = min(TILE, len(query) - i * TILE)
        yield index[:rows], tiles.finish(i, similarity[:rows])


def _by_rows(tiles: Tiles, k: int, progress: Progress | None) -> Iterator[Block]:
    total = tiles.rows * tiles.columns
    for i in range(tiles.rows):
        best = Best(k)
        for j in range(tiles.columns):
            if tiles.symmetric and j < i:
                best.offer(tiles(j, i), j * TILE, axis=1)
            else:
                best.offer(tiles(i, j), j * TILE, axis=0)
            if progress:
                progress(i * tiles.columns + j + 1, total)
        yield best.decode()


def _both_ways(tiles: Tiles, k: int, progress: Progress | None) -> Iterator[Block]:
    """Each tile serves its rows and its columns; every row still sees the columns in ascending order."""
    best = [Best(k) for _ in range(tiles.rows)]
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
    for block in best:
        yield block.decode()


class Best:
    """The k best keys of each of T rows, and those that wait to be merged."""

    def __init__(self, k: int):
        self.keys = np.full((TILE, k), WORST)                       # (T, k) sorted
        self.bar = np.full(TILE, -np.inf, np.float32)               # an entry must be above it
        self.waiting: list[tuple[np.ndarray, np.ndarray]] = []      # rows and keys
        self.count = np.zeros(TILE, np.int64)                       # how many wait, by row
        self.limit = max(k, 32)

    @staticmethod
    def bytes_a_row(k: int) -> int:
        return 8 * k + 10 * max(k, 32)

    def offer(self, similarity: np.ndarray, first: int, axis: int) -> None:
        """A (T, T) tile whose rows lie along `axis`; `first` is the index of its first column."""
        if first == 0 and self.keys.shape[1] < TILE:
            kth = np.partition(similarity, TILE - self.keys.shape[1], axis=1 - axis)
            kth = np.take(kth, TILE - self.keys.shape[1], axis=1 - axis)
            self.bar = np.nextafter(kth, np.float32(-np.inf))
        above = similarity > (self.bar[:, None] if axis == 0 else self.bar)
        flat = np.flatnonzero(above)
        if not len(flat):
            return
        row, column = flat // TILE, flat % TILE
        if axis == 1:
            row, column = column, row
        self.waiting.append((row.astype(np.int16), encode(similarity.ravel()[flat], column + first)))
        self.count += np.bincount(row, minlength=TILE)
        if self.count.max() > self.limit:
            self.merge()

    def merge(self) -> None:
        if not self.waiting:
            return
        k = self.keys.shape[1]
        row, key = (np.concatenate(parts) for parts in zip(*self.waiting, strict=True))
        order = np.argsort(row, kind="stable")
        row, key = row[order], key[order]
        start = np.cumsum(self.count) - self.count
        table = np.full((TILE, k + self.count.max()), WORST)
        table[:, :k] = self.keys
        table[row, k + np.arange(len(row)) - start[row]] = key
        table.sort(axis=1)
        self.keys = table[:, :k].copy()
        full = self.keys[:, -1] != WORST
        self.bar[full] = decode(self.keys[full, -1])[1]
        self.waiting.clear()
        self.count[:] = 0

    def decode(self) -> Block:
        self.merge()
        return decode(self.keys)


def encode(similarity: np.ndarray, index: np.ndarray) -> np.ndarray:
    """An int64 that sorts by similarity, descending, then by index, ascending."""
    bits = (similarity + np.float32(0)).view(np.int32)              # + 0: there is one zero, not two
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)                    # ascending with the float
    return (~ordered).astype(np.int64) << 32 | index


def decode(key: np.ndarray) -> Block:
    ordered = ~(key >> 32).astype(np.int32)
    bits = ordered ^ ((ordered >> 31) & 0x7FFFFFFF)
    return key & 0xFFFFFFFF, bits.view(np.float32)
