"""Retrieval, clustering and space metrics of any embeddings, by exact search in bounded memory."""

from nearkin.evaluation.per_query import write_per_query
from nearkin.evaluation.readers import evaluate_files
from nearkin.evaluation.retrieval import Evaluation, bootstrap_over_classes, evaluate
from nearkin.evaluation.search import Neighbours, neighbours

__all__ = [
    "Evaluation",
    "Neighbours",
    "bootstrap_over_classes",
    "evaluate",
    "evaluate_files",
    "neighbours",
    "write_per_query",
]
