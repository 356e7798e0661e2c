from nearkin.metrics.base import Ranked, clusters, per_query, space
from nearkin.metrics.retrieval import map_at_1000, map_at_c, map_at_r, mrr, precision, r_precision, recall

__all__ = [
    "Ranked",
    "clusters",
    "map_at_1000",
    "map_at_c",
    "map_at_r",
    "mrr",
    "per_query",
    "precision",
    "r_precision",
    "recall",
    "space",
]
