"""Retrieval metrics: one value per query; the figure of a set is the mean over its queries."""

import numpy as np

from nearkin.evaluation.metrics.base import Ranked, per_query


@per_query("recall", lambda sizes, k: k, takes_k=True, lone=0)
def recall(ranked: Ranked, k: int) -> np.ndarray:
    """Recall@k: 1 if any of the first k neighbours is of the query's class, else 0 (Jégou et al. 2011).

        max_{i≤k} rel_i

    rel_i is 1 if the i-th neighbour is of the query's class, else 0. The query itself is not among its neighbours.

    Lone queries, without another item of their class in the gallery, count as 0, as published.

    Range: 0 or 1 per query; the mean is the share of queries with a hit.

    Source: Jégou et al. 2011 (TPAMI); for retrieval of unseen classes Song et al. 2016 (CVPR).

    Parameters:
        ranked: the neighbours of Q queries.
        k: how many neighbours are looked at.
    """
    return ranked.hits[:, :k].any(1).astype(float)  # (Q,)


@per_query("p", lambda sizes, k: k, takes_k=True)
def precision(ranked: Ranked, k: int) -> np.ndarray:
    """Precision at k: the share of the first k neighbours that are of the query's class.

        P@k = (1/k) Σ_{i≤k} rel_i

    rel_i is 1 if the i-th neighbour is of the query's class, else 0. The query itself is not among its neighbours. P@1
    and Recall@1 differ in the lone queries only.

    Lone queries, without another item of their class in the gallery, are NaN and left out of the mean.

    Range: 0 to 1; at most R_q/k for a query with R_q < k relevant items.

    Source: as usual in the field; p@1 equals `precision_at_1` of pytorch-metric-learning 2.9.

    Parameters:
        ranked: the neighbours of Q queries.
        k: how many neighbours are looked at.
    """
    return _defined(ranked.hits[:, :k].sum(1) / k, ranked)  # (Q,)


@per_query("r_precision", lambda sizes, k: sizes.relevant)
def r_precision(ranked: Ranked) -> np.ndarray:
    """R-precision: the precision over as many neighbours as the query has relevant items.

        (1/R_q) Σ_{i≤R_q} rel_i

    rel_i is 1 if the i-th neighbour is of the query's class, else 0. R_q is the number of relevant items: the gallery
    items of the query's class, without the query itself. The order among the first R_q does not matter.

    Lone queries, without another item of their class in the gallery, are NaN and left out of the mean.

    Range: 0 to 1 (the R_q relevant items come first).

    Source: as in Musgrave et al. 2020 (ECCV).

    Parameters:
        ranked: the neighbours of Q queries.
    """
    hits = ranked.hits & _first(ranked, ranked.relevant)
    return _defined(hits.sum(1) / np.maximum(ranked.relevant, 1), ranked)


@per_query("map_at_r", lambda sizes, k: sizes.relevant)
def map_at_r(ranked: Ranked) -> np.ndarray:
    """MAP@R: average precision over as many neighbours as the query has relevant items (Musgrave et al. 2020).

        (1/R_q) Σ_{i≤R_q} P@i · rel_i,   P@i = (1/i) Σ_{j≤i} rel_j

    rel_i is 1 if the i-th neighbour is of the query's class, else 0. R_q is the number of relevant items: the gallery
    items of the query's class, without the query itself. Unlike R-precision, it rewards hits that come early.

    Lone queries, without another item of their class in the gallery, are NaN and left out of the mean.

    Range: 0 to 1 (the R_q relevant items come first); never above R-precision.

    Source: Musgrave et al. 2020 (ECCV).

    Parameters:
        ranked: the neighbours of Q queries.
    """
    return _defined(average_precision(ranked.hits & _first(ranked, ranked.relevant), ranked.relevant), ranked)


@per_query("map_at_c", lambda sizes, k: sizes.size, lone=0)
def map_at_c(ranked: Ranked) -> np.ndarray:
    """mAP@C: average precision over as many neighbours as the class has items (code of Roth et al. 2020).

        (1/k_c) Σ_{i≤k_c} P@i · rel_i,   P@i = (1/i) Σ_{j≤i} rel_j

    rel_i is 1 if the i-th neighbour is of the query's class, else 0. k_c is the number of gallery items of the query's
    class; the query itself counts if it is in the gallery, although it cannot be found.

    Lone queries, without another item of their class in the gallery, count as 0, as published.

    Range: 0 to (k_c - 1)/k_c if the query is in the gallery, to 1 if it is not.

    Source: the public code of Roth et al. 2020 (ICML), from which the published figures come. Their printed eq. 29 is
    another formula, a precision.

    Parameters:
        ranked: the neighbours of Q queries.
    """
    return average_precision(ranked.hits & _first(ranked, ranked.size), ranked.size)


@per_query("map_at_1000", lambda sizes, k: 1000, lone=0)
def map_at_1000(ranked: Ranked) -> np.ndarray:
    """mAP@1000: average precision over 1000 neighbours, divided by the class size (code of Roth et al. 2020).

        (1/k_c) Σ_{i≤1000} P@i · rel_i,   P@i = (1/i) Σ_{j≤i} rel_j

    rel_i is 1 if the i-th neighbour is of the query's class, else 0. k_c is the number of gallery items of the query's
    class; the query itself counts if it is in the gallery, although it cannot be found.

    Lone queries, without another item of their class in the gallery, count as 0, as published.

    Range: 0 to (k_c - 1)/k_c if the query is in the gallery, to 1 if it is not; at most 1000/k_c for larger classes.

    Source: the public code of Roth et al. 2020 (ICML). Their printed eq. 30 divides by 1000 instead of k_c.

    Parameters:
        ranked: the neighbours of Q queries.
    """
    return average_precision(ranked.hits[:, :1000], ranked.size)


@per_query("mrr", lambda sizes, k: 16, first=True)
def mrr(ranked: Ranked) -> np.ndarray:
    """Mean reciprocal rank: 1 / rank of the first neighbour of the query's class.

        1 / min {i : rel_i = 1}

    rel_i is 1 if the i-th neighbour is of the query's class, else 0. The rank is counted in the whole gallery, without
    the query itself, however deep it is.

    Lone queries, without another item of their class in the gallery, are NaN and left out of the mean.

    Range: above 0, to 1 (the nearest neighbour is a hit).

    Source: as usual in the field; equals `mean_reciprocal_rank` of pytorch-metric-learning 2.9 with its default k.

    Parameters:
        ranked: the neighbours of Q queries.
    """
    return _defined(1 / np.maximum(ranked.first, 1), ranked)


def average_precision(hits: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    """Σ_i P@i · rel_i / divisor for each query (Q,); a divisor of 0 counts as 1.

    The sum runs over the hits only: the m-th hit of a query, at rank i, adds m / i.

    Parameters:
        hits: (Q, K) bool.
        divisor: (Q,).
    """
    query, place = np.nonzero(hits)
    start = np.searchsorted(query, np.arange(len(hits)))
    nth = np.arange(len(query)) - start[query] + 1
    return np.bincount(query, nth / (place + 1), minlength=len(hits)) / np.maximum(divisor, 1)


def _first(ranked: Ranked, depth: np.ndarray) -> np.ndarray:
    return np.arange(ranked.hits.shape[1]) < depth[:, None]  # (Q, K) bool


def _defined(value: np.ndarray, ranked: Ranked) -> np.ndarray:
    return np.where(ranked.lone, np.nan, value)
