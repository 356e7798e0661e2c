"""Retrieval metrics, one value a query.

rel_i = 1 if the i-th neighbour is of the query's class, else 0; P@i = Σ_{j<=i} rel_j / i.

    recall@k       1 if any of the first k is relevant (Jégou, Song)
    p@k            relevant among the first k / k
    r_precision    relevant among the first R_q / R_q
    map_at_r       (1/R_q) Σ_{i<=R_q} P@i · rel_i                     (Musgrave et al. 2020)
    map_at_c       (1/k_c) Σ_{i<=k_c} P@i · rel_i                     (the code of Roth et al. 2020)
    map_at_1000    (1/k_c) Σ_{i<=1000} P@i · rel_i                    (same)
    mrr            1 / rank of the first relevant item

R_q relevant items; k_c = R_q + 1 where the query is itself an item of the gallery, R_q where it is not. A query without
relevant items counts as 0 in recall@k, map_at_c and map_at_1000, as published; it is NaN, left out of the mean,
in the others.
"""

import numpy as np

from nearkin.evaluation.metrics.base import Ranked, per_query


@per_query("recall", lambda sizes, k: k, takes_k=True, lone=0)
def recall(ranked: Ranked, k: int) -> np.ndarray:
    return ranked.hits[:, :k].any(1).astype(float)                  # (Q,)


@per_query("p", lambda sizes, k: k, takes_k=True)
def precision(ranked: Ranked, k: int) -> np.ndarray:
    return _defined(ranked.hits[:, :k].sum(1) / k, ranked)          # (Q,)


@per_query("r_precision", lambda sizes, k: sizes.relevant)
def r_precision(ranked: Ranked) -> np.ndarray:
    hits = ranked.hits & _first(ranked, ranked.relevant)
    return _defined(hits.sum(1) / np.maximum(ranked.relevant, 1), ranked)


@per_query("map_at_r", lambda sizes, k: sizes.relevant)
def map_at_r(ranked: Ranked) -> np.ndarray:
    return _defined(average_precision(ranked.hits & _first(ranked, ranked.relevant), ranked.relevant), ranked)


@per_query("map_at_c", lambda sizes, k: sizes.size, lone=0)
def map_at_c(ranked: Ranked) -> np.ndarray:
    return average_precision(ranked.hits & _first(ranked, ranked.size), ranked.size)


@per_query("map_at_1000", lambda sizes, k: 1000, lone=0)
def map_at_1000(ranked: Ranked) -> np.ndarray:
    return average_precision(ranked.hits[:, :1000], ranked.size)


@per_query("mrr", lambda sizes, k: 16, first=True)
def mrr(ranked: Ranked) -> np.ndarray:
    return _defined(1 / np.maximum(ranked.first, 1), ranked)


def average_precision(hits: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    """Σ_i P@i · rel_i / divisor, summed over the hits alone: the m-th hit of a query, at rank i, adds m / i."""
    query, place = np.nonzero(hits)
    start = np.searchsorted(query, np.arange(len(hits)))
    nth = np.arange(len(query)) - start[query] + 1
    return np.bincount(query, nth / (place + 1), minlength=len(hits)) / np.maximum(divisor, 1)


def _first(ranked: Ranked, depth: np.ndarray) -> np.ndarray:
    return np.arange(ranked.hits.shape[1]) < depth[:, None]         # (Q, K) bool


def _defined(value: np.ndarray, ranked: Ranked) -> np.ndarray:
    return np.where(ranked.lone, np.nan, value)
