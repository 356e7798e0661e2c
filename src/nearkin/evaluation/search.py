"""Exact nearest neighbours: the k most similar gallery items of every query; of equal ones the lower index comes first.

Each tile of similarities is compared with the k-th best that every row has found so far. The few entries above it are
collected as 64-bit keys, which sort by similarity (descending), then by index (ascending); when enough have come
together, they are merged with the k best by a partial sort. Columns arrive in ascending order, so an entry that only
equals the k-th best has a higher index and loses. No two keys are equal: neither the memory budget nor the blocks nor
the threads can change the result.

Shapes: Q queries, G gallery items, D dimensions, T = TILE.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nearkin.errors import NearkinError
from nearkin.evaluation.tiles import TILE, Tiles, chosen_distance

WAIT = 32  # a row has room for at least this many entries that are not merged yet
BYTES_PER_KEY = 140  # measured: peak memory for each of the k best of a row that is ranked
BYTES_ALL_PASS = 64 * TILE * TILE  # measured: peak memory when all entries of a tile are equal and pass
PLAIN_BUDGET = 256 * 2**20  # bytes of working memory, where nothing else is said
WORST = np.iinfo(np.int64).max  # a key behind all others: an empty place
OnProgress = Callable[[int, int], None]  # called with the number of tiles done, and of all tiles
Block = tuple[np.ndarray, np.ndarray]  # index and similarity, each (up to T, k)


@dataclass(frozen=True)
class Neighbours:
    """What `neighbours` returns: the k nearest gallery items of each query, the nearest first.

    The attributes have the names of the parameters; there are Q queries.

    Parameters:
        index: (Q, k) int64 tensor, indices into the gallery.
        similarity: (Q, k) float32 tensor: the cosine; under euclid minus the squared distance; under snr minus the SNR
            distance.

    Example:
        nearest = nearkin.evaluation.neighbours(embeddings, embeddings, k=4, self_index=torch.arange(len(embeddings)))
        hits = labels[nearest.index] == labels[:, None]       # (Q, k)
    """

    index: Tensor  # (Q, k)
    similarity: Tensor  # (Q, k)


def neighbours(
    query: Tensor,
    gallery: Tensor,
    k: int,
    *,
    self_index: np.ndarray | Tensor | None = None,
    distance: str | None = None,
    budget_mib: float | None = None,
    progress: OnProgress | None = None,
    metric: str | None = None,
) -> Neighbours:
    """The k nearest gallery items of every query, by exact search; of equal ones the lower index comes first.

    Parameters:
        query: (Q, D) tensor of embeddings.
        gallery: (G, D) tensor; if it is the same object as `query` and `self_index` is 0, 1, ..., Q - 1, half of the
            work can be saved.
        k: neighbours per query; at most G, or G - 1 if every query is in the gallery.
        self_index: (Q,), the index of each query in the gallery, which is never its own neighbour; -1 for a query that
            is not in the gallery. None: no query is in the gallery. If k = G and only some queries are in the gallery,
            these end with index -1 and similarity -inf, for they have one neighbour less.
        distance: "cosine", "euclid" (raw vectors) or "snr". None: cosine.
        budget_mib: working memory in MiB, without the embeddings and the result; it does not change the result. None:
            256, or more where the dimension needs more.
        progress: called after every tile with (tiles done, tiles in all).
        metric: the old name of distance.

    Example:
        nearest = nearkin.evaluation.neighbours(embeddings, embeddings, k=4, self_index=torch.arange(len(embeddings)))
        first = nearest.index[:, 0]             # (Q,)
    """
    distance = chosen_distance(distance, metric)
    blocks = list(
        search(query, gallery, k, self_index=self_index, distance=distance, budget_mib=budget_mib, progress=progress)
    )
    index, similarity = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return Neighbours(torch.from_numpy(index), torch.from_numpy(similarity))


def search(
    query: Tensor,
    gallery: Tensor,
    k: int,
    *,
    self_index: np.ndarray | Tensor | None = None,
    distance: str = "cosine",
    budget_mib: float | None = None,
    progress: OnProgress | None = None,
) -> Iterator[Block]:
    """`neighbours`, but one block of at most T queries at a time: the whole (Q, k) need not be in memory."""
    tiles = Tiles(query, gallery, distance, self_index)
    available = len(gallery) - int(tiles.self_index is not None and bool((tiles.self_index >= 0).all()))
    if not 1 <= k <= available:
        raise NearkinError(f"k={k}: the gallery offers 1 to {available} neighbours per query")
    least = tiles.bytes + max(BYTES_ALL_PASS, BYTES_PER_KEY * k)
    budget = max(PLAIN_BUDGET, least) if budget_mib is None else budget_mib * 2**20
    if budget < least:
        raise NearkinError(
            f"budget_mib={budget_mib}: at least {least / 2**20:.0f} MiB are needed for k={k}, D={query.shape[1]}"
        )
    best_bytes = Best.bytes_held(k) * len(query)
    if tiles.symmetric and best_bytes + tiles.bytes + max(BYTES_ALL_PASS, BYTES_PER_KEY * k * TILE) <= budget:
        return _both_ways(tiles, k, progress)
    rows = min(TILE, int((budget - tiles.bytes) // (BYTES_PER_KEY * k)))  # how many can be ranked at a time
    return _by_rows(tiles, k, rows, progress)


def _by_rows(tiles: Tiles, k: int, rows: int, progress: OnProgress | None) -> Iterator[Block]:
    """Block after block of rows; when k is large, a block in parts, for each of which its tiles are computed again."""
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


def _both_ways(tiles: Tiles, k: int, progress: OnProgress | None) -> Iterator[Block]:
    """Each tile is used for its rows and for its columns; every row still sees its columns in ascending order."""
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
    """The k best keys of each of R rows, in any order, and behind them the keys that are not merged yet.

    Parameters:
        k: how many are kept per row.
        rows: which rows of a block of queries; R of them.
    """

    def __init__(self, k: int, rows: slice):
        self.k, self.rows = k, rows
        size = rows.stop - rows.start
        self.table = np.full((size, k + max(k, WAIT)), WORST)  # (R, W) keys
        self.fill = np.zeros(size, np.int64)  # (R,) how many columns of the table are in use
        self.bar = np.full(size, -np.inf, np.float32)  # (R,) only entries above it can be among the k best

    @staticmethod
    def bytes_held(k: int) -> int:
        """The memory of one row of the table."""
        return 8 * (k + max(k, WAIT))

    def offer(self, tile: np.ndarray, first: int, axis: int) -> None:
        """Take from a (T, T) tile what may be among the k best.

        Parameters:
            tile: similarities; the rows of this block lie along `axis`, the gallery items along the other axis.
            first: the index of the tile's first gallery item.
            axis: 0 or 1.
        """
        similarity = tile[self.rows] if axis == 0 else tile[:, self.rows]
        if first == 0 and self.k < TILE:  # there is no bar yet: all entries would pass
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
        """Add one key per entry to the table; `row`, the row of each key, ascends."""
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
        """Keep the k best keys of every row, and raise its bar to the k-th best."""
        self.table.partition(self.k - 1, axis=1)
        if self.table.shape[1] > self.k + max(self.k, WAIT):  # widened for a tile with many candidates
            self.table = self.table[:, : self.k + max(self.k, WAIT)].copy()
        self.table[:, self.k :] = WORST
        self.fill[:] = self.k
        kth = self.table[:, self.k - 1]
        full = kth != WORST
        self.bar[full] = decode(kth[full])[1]

    def decode(self, tiles: Tiles, i: int) -> Block:
        """The result for these rows of query block i: index and similarity (R, k), the best first."""
        self._merge()
        keys = np.sort(self.table[:, : self.k], axis=1)
        index, similarity = decode(keys)
        if (keys[:, -1] == WORST).any():  # a query in the gallery has one neighbour less
            index, similarity = np.where(keys == WORST, -1, index), np.where(keys == WORST, -np.inf, similarity)
        return index, tiles.finish(i, self.rows, similarity)


def encode(similarity: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Keys: int64 numbers that sort by similarity (float32, descending), then by index (ascending)."""
    bits = (similarity + np.float32(0)).view(np.int32)  # + 0: makes -0.0 and 0.0 the same
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # sorts as the float does
    return (~ordered).astype(np.int64) << 32 | index


def decode(key: np.ndarray) -> Block:
    """The inverse of `encode`: index and similarity of each key."""
    ordered = ~(key >> 32).astype(np.int32)
    bits = ordered ^ ((ordered >> 31) & 0x7FFFFFFF)
    return key & 0xFFFFFFFF, bits.view(np.float32)
