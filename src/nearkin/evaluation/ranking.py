"""From ranked neighbours to one value per query, block by block: the table of all neighbours is never in memory."""

import numpy as np
import torch

from nearkin.errors import NearkinError
from nearkin.evaluation.inputs import Sets
from nearkin.evaluation.metrics.base import Metric, Ranked, Sizes
from nearkin.evaluation.search import WORST, OnProgress, decode, encode, search
from nearkin.evaluation.tiles import TILE, Tiles


def rank(
    sets: Sets, metrics: list[Metric], *, distance: str, budget_mib: float | None, progress: OnProgress | None
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """The metrics that need a ranking: values (Q,) of each per-query metric, and one number per occurrence metric.

    Parameters:
        sets: queries and gallery.
        metrics: those of these two kinds.
        distance: "cosine", "euclid" or "snr".
        budget_mib: working memory of the search.
        progress: called after every tile with (tiles done, tiles in all).
    """
    relevant, size = sets.relevant, sets.size
    depth = _depth(sets, metrics, Sizes(int(relevant.max()), int(size.max())))
    from_hits = [m for m in metrics if m.function.kind == "query" and not m.function.first]
    from_first = [m for m in metrics if m.function.kind == "query" and m.function.first]
    values: dict[str, list[np.ndarray]] = {m.key: [] for m in from_hits}
    first = np.zeros(len(sets.query), np.int64)  # (Q,) rank of the first hit
    from_counts = [m for m in metrics if m.function.kind == "occurrence"]
    counts = [np.zeros(len(sets.gallery), np.int64) for _ in from_counts]
    blocks = search(
        sets.query,
        sets.gallery,
        depth,
        self_index=sets.self_index,
        distance=distance,
        budget_mib=budget_mib,
        progress=progress,
    )
    stop = 0
    for index, _ in blocks:
        start, stop = stop, stop + len(index)
        rows = slice(start, stop)
        hits = (sets.gallery_labels[index] == sets.labels[rows, None]) & (index >= 0)  # (T, K)
        first[rows] = np.where(hits.any(1), hits.argmax(1) + 1, 0)
        ranked = Ranked(hits, relevant[rows], size[rows], first[rows])
        for m in from_hits:
            values[m.key].append(m(ranked))
        for m, count in zip(from_counts, counts, strict=True):
            count += np.bincount(index[:, : m.k].ravel(), minlength=len(count))
    per_query = {key: np.concatenate(parts) for key, parts in values.items()}
    if from_first:
        missed = np.flatnonzero((first == 0) & (relevant > 0))
        first[missed] = np.maximum(first_hit(sets, missed, distance), depth + 1)
        whole = Ranked(np.zeros((len(first), 0), bool), relevant, size, first)
        per_query |= {m.key: m(whole) for m in from_first}
    return per_query, {m.key: m.function(count) for m, count in zip(from_counts, counts, strict=True)}


def _depth(sets: Sets, metrics: list[Metric], sizes: Sizes) -> int:
    for m in metrics:
        if m.k is not None and m.k > sets.available:
            raise NearkinError(f"{m.key}: k={m.k}, but the gallery offers {sets.available} neighbours per query")
    return min(sets.deepest, max(m.function.depth(sizes, m.k) for m in metrics))


def first_hit(sets: Sets, rows: np.ndarray, distance: str) -> np.ndarray:
    """The rank of the first relevant item in the whole gallery, for each of the queries `rows` (each has one)."""
    parts = [rows[start : start + TILE] for start in range(0, len(rows), TILE)]
    return np.concatenate([_first_hit(sets, block, distance) for block in parts] or [np.zeros(0, np.int64)])


def _first_hit(sets: Sets, rows: np.ndarray, distance: str) -> np.ndarray:
    """For up to T queries: find the best relevant item, then count the items that rank before it."""
    self_index = None if sets.self_index is None else sets.self_index[rows]
    tiles = Tiles(sets.query[torch.from_numpy(rows)], sets.gallery, distance, self_index)
    best = np.full(len(rows), WORST)  # (T,) key of the best relevant item
    for j in range(tiles.columns):
        start = j * TILE
        same = sets.labels[rows, None] == sets.gallery_labels[start : start + TILE]
        query, item = same.nonzero()
        if self_index is not None:
            other = self_index[query] != item + start
            query, item = query[other], item[other]
        if len(query):
            np.minimum.at(best, query, encode(tiles(0, j)[query, item], item + start))
    index, similarity = decode(best)
    rank = np.ones(len(rows), np.int64)
    for j in range(tiles.columns):
        s = tiles(0, j)[: len(rows)]  # (T, T)
        place = index - j * TILE  # of the best item, from the tile's first column on
        # An item that ties with the best one ranks before it if its index is lower, after it if it is higher.
        bar = np.where(place >= TILE, np.nextafter(similarity, np.float32(-np.inf)), similarity)
        rank += (s > bar[:, None]).sum(1)
        for row in np.flatnonzero((place > 0) & (place < TILE)):
            rank[row] += (s[row, : place[row]] == similarity[row]).sum()
    return rank  # (T,)
