"""The metrics: pure functions, registered by name; `nearkin list metrics` lists them."""

from nearkin.evaluation.metrics.base import Ranked, clusters, metric_of, occurrence, per_query, space
from nearkin.evaluation.metrics.clustering import ami, kmeans, nmi, pair_f1
from nearkin.evaluation.metrics.retrieval import map_at_1000, map_at_c, map_at_r, mrr, precision, r_precision, recall
from nearkin.evaluation.metrics.space import (
    class_spectra,
    hubness,
    pi_inter,
    pi_intra,
    pi_ratio,
    rho,
    singular_values,
    uniformity,
)

__all__ = [
    "Ranked",
    "ami",
    "class_spectra",
    "clusters",
    "hubness",
    "kmeans",
    "map_at_1000",
    "map_at_c",
    "map_at_r",
    "metric_of",
    "mrr",
    "nmi",
    "occurrence",
    "pair_f1",
    "per_query",
    "pi_inter",
    "pi_intra",
    "pi_ratio",
    "precision",
    "r_precision",
    "recall",
    "rho",
    "singular_values",
    "space",
    "uniformity",
]
