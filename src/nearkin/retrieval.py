"""`evaluate`: embeddings and labels in, the numbers out.

Every query is ranked against the gallery by exact search; each metric gives one value a query (NaN where undefined) and
their mean. Query = gallery by default; a query that is itself in the gallery is left out by index.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from nearkin.checks import as_classes, as_embeddings, as_index, check_vectors
from nearkin.errors import NearkinError
from nearkin.metrics.base import Metric, Ranked, Sizes, parse
from nearkin.search import WORST, Neighbours, Progress, decode, encode, neighbours, search
from nearkin.tiles import TILE, Tiles

__all__ = ["Evaluation", "Neighbours", "evaluate", "neighbours"]

DEFAULT = ("recall", "p@1", "r_precision", "map_at_r", "map_at_c", "mrr")


@dataclass
class Evaluation:
    metrics: dict[str, float]
    per_query: dict[str, np.ndarray]                                # each (Q,), NaN where undefined
    n: int                                                          # queries
    gallery: int
    metric: str
    excluded: dict[str, str | int] = field(default_factory=dict)    # what was left out, and why

    def to_dict(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "gallery": self.gallery,
            "metric": self.metric,
            "metrics": self.metrics,
            "excluded": self.excluded,
        }


@dataclass(frozen=True)
class Sets:
    """Queries and gallery, checked; `own` is -1 for a query that is not in the gallery."""

    query: Tensor                                                   # (Q, D)
    gallery: Tensor                                                 # (G, D), the same object where query = gallery
    labels: np.ndarray                                              # (Q,)
    gallery_labels: np.ndarray                                      # (G,)
    own: np.ndarray | None                                          # (Q,)

    @property
    def size(self) -> np.ndarray:
        return np.bincount(self.gallery_labels, minlength=self.labels.max() + 1)[self.labels]       # (Q,)

    @property
    def relevant(self) -> np.ndarray:
        return self.size - (0 if self.own is None else (self.own >= 0))                             # (Q,)


def evaluate(
    embeddings: Any,
    labels: Any,
    *,
    query: Any = None,
    gallery: Any = None,
    k: Sequence[int] | int = (1, 2, 4, 8),
    metrics: Sequence[str] | None = None,
    metric: str = "cosine",
    budget_mib: float = 256,
    progress: Progress | None = None,
) -> Evaluation:
    """`embeddings` (N, D) and `labels` (N,): arrays or tensors; labels may be strings.

    `query`, `gallery`: masks or indices of the items that ask and are asked; all by default. `gallery` may also be a
    pair (embeddings, labels) of its own. `metrics`: names as in `nearkin list metrics`; recall and p without @k are
    computed for every k. `budget_mib`: working memory beside the embeddings; it never changes a result.
    """
    ks = (k,) if isinstance(k, int) else tuple(k)
    asked = [m for key in dict.fromkeys(metrics or DEFAULT) for m in parse(key, ks)]
    sets = _sets(embeddings, labels, query, gallery, metric)
    ranked_metrics = [m for m in asked if m.function.kind == "query"]
    per_query = _per_query(sets, ranked_metrics, metric, budget_mib, progress) if ranked_metrics else {}
    means = {m.key: float(np.nanmean(per_query[m.key])) for m in ranked_metrics}
    return Evaluation(
        metrics={m.key: means[m.key] for m in asked},
        per_query=per_query,
        n=len(sets.query),
        gallery=len(sets.gallery),
        metric=metric,
        excluded=_excluded(sets, ranked_metrics),
    )


def _per_query(
    sets: Sets, asked: list[Metric], metric: str, budget_mib: float, progress: Progress | None
) -> dict[str, np.ndarray]:
    available = len(sets.gallery) - (sets.own is not None)
    for m in asked:
        if m.k is not None and m.k > available:
            raise NearkinError(f"{m.key}: k={m.k}, but the gallery offers {available} neighbours a query")
    relevant, size = sets.relevant, sets.size
    sizes = Sizes(int(relevant.max()), int(size.max()))
    depth = min(available, max(m.function.depth(sizes, m.k) for m in asked))
    values: dict[str, list[np.ndarray]] = {m.key: [] for m in asked if not m.function.first}
    first = np.zeros(len(sets.query), np.int64)                     # (Q,) rank of the first hit
    found = search(
        sets.query, sets.gallery, depth, own=sets.own, metric=metric, budget_mib=budget_mib, progress=progress
    )
    for start, (index, _) in zip(range(0, len(first), TILE), found, strict=True):
        rows = slice(start, start + TILE)
        hits = sets.gallery_labels[index] == sets.labels[rows, None]
        first[rows] = np.where(hits.any(1), hits.argmax(1) + 1, 0)
        ranked = Ranked(hits, relevant[rows], size[rows], first[rows])
        for m in asked:
            if not m.function.first:
                values[m.key].append(m.function(ranked) if m.k is None else m.function(ranked, m.k))
    result = {key: np.concatenate(parts) for key, parts in values.items()}
    if len(result) < len(asked):
        missed = np.flatnonzero((first == 0) & (relevant > 0))
        first[missed] = np.maximum(first_hit(sets, missed, metric), depth + 1)
        whole = Ranked(np.zeros((len(first), 0), bool), relevant, size, first)
        result |= {m.key: m.function(whole) for m in asked if m.function.first}
    return result


def first_hit(sets: Sets, rows: np.ndarray, metric: str) -> np.ndarray:
    """Rank of the first relevant item of these queries, over the whole gallery: find the best relevant item, then
    count what stands before it."""
    own = None if sets.own is None else sets.own[rows]
    tiles = Tiles(sets.query[rows], sets.gallery, metric, own)
    rank = np.ones(len(rows), np.int64)
    for i in range(tiles.rows):
        block = slice(i * TILE, (i + 1) * TILE)
        label = sets.labels[rows[block], None]                      # (T, 1)
        best = np.full(len(label), WORST)                           # (T,) key of the best relevant item
        for j in range(tiles.columns):
            same = label == sets.gallery_labels[j * TILE : (j + 1) * TILE]
            if own is not None:
                same &= own[block, None] != np.arange(same.shape[1]) + j * TILE
            query, item = same.nonzero()
            if len(query):
                keys = encode(tiles(i, j)[query, item], item + j * TILE)
                np.minimum.at(best, query, keys)
        index, similarity = decode(best)
        for j in range(tiles.columns):
            s = tiles(i, j)[: len(label)]                           # (T, T)
            before = np.arange(TILE) + j * TILE < index[:, None]
            above = (s > similarity[:, None]) | ((s == similarity[:, None]) & before)
            rank[block] += above.sum(1)
    return rank


def _excluded(sets: Sets, asked: list[Metric]) -> dict[str, str | int]:
    lone = int((sets.relevant == 0).sum())
    if not lone or not asked:
        return {}
    zero = ", ".join(m.key for m in asked if m.function.lone == 0)
    undefined = ", ".join(m.key for m in asked if np.isnan(m.function.lone))
    told = "; ".join(
        part for part in (zero and f"they count as 0 in {zero}", undefined and f"left out of {undefined}") if part
    )
    return {
        "lone_queries": lone,
        "reason": f"{lone} of {len(sets.query)} queries have no other item of their class in the gallery: {told}",
    }


def _sets(embeddings: Any, labels: Any, query: Any, gallery: Any, metric: str) -> Sets:
    z = as_embeddings(embeddings, "embeddings")
    if isinstance(gallery, tuple):
        other = as_embeddings(gallery[0], "gallery embeddings")
        y, gallery_y = as_classes([(labels, len(z), "labels"), (gallery[1], len(other), "gallery labels")])
        if query is not None:
            rows = as_index(query, len(z), "query")
            z, y = z[rows], y[rows]
        sets = Sets(z, other, y, gallery_y, None)
    else:
        (y,) = as_classes([(labels, len(z), "labels")])
        if query is None and gallery is None:
            sets = Sets(z, z, y, y, np.arange(len(z)))
        else:
            asks, asked = as_index(query, len(z), "query"), as_index(gallery, len(z), "gallery")
            place = np.full(len(z), -1)
            place[asked] = np.arange(len(asked))
            own = place[asks]
            sets = Sets(z[asks], z[asked], y[asks], y[asked], own if (own >= 0).any() else None)
    check_vectors(sets.query, metric, "query" if sets.gallery is not sets.query else "embedding")
    if sets.gallery is not sets.query:
        check_vectors(sets.gallery, metric, "gallery")
    check_classes(sets)
    return sets


def check_classes(sets: Sets) -> None:
    if len(sets.query) == 0 or len(sets.gallery) < 2:
        raise NearkinError(f"{len(sets.query)} queries and {len(sets.gallery)} gallery items: nothing to rank")
    if len(np.unique(np.concatenate([sets.labels, sets.gallery_labels]))) == 1:
        raise NearkinError("the labels hold one class only: every neighbour is a hit; at least 2 classes are needed")
    if not sets.relevant.any():
        raise NearkinError(
            "no query has another item of its class in the gallery (all classes have one item, or the queries' classes "
            "are absent from the gallery): nothing can be found"
        )
