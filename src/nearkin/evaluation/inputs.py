"""`Sets`: the checked queries and gallery of one evaluation."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nearkin.errors import NearkinError
from nearkin.evaluation.arrays import as_classes, as_embeddings, as_index, check_vectors


@dataclass(frozen=True)
class Sets:
    """The queries and the gallery of one evaluation. `make_sets` builds it from what a user hands over.

    The attributes have the names of the parameters; there are Q queries, G gallery items and D dimensions.

    Parameters:
        query: (Q, D) tensor, the raw embeddings of the queries.
        gallery: (G, D) tensor; the same object as `query` if every item is both query and gallery item.
        labels: (Q,) array, the class index of each query.
        gallery_labels: (G,) array, the class index of each gallery item; the indices are common to both sets.
        self_index: (Q,) array, the index of each query in the gallery, -1 for a query that is not in it; None if no
            query is.
        names: the labels as the user gave them; class index i stands for the label names[i].

    Example:
        sets = make_sets(embeddings, labels, query=None, gallery=None, distance="cosine")
        alone = sets.relevant == 0              # (Q,) queries without another item of their class
    """

    query: Tensor  # (Q, D)
    gallery: Tensor  # (G, D)
    labels: np.ndarray  # (Q,)
    gallery_labels: np.ndarray  # (G,)
    self_index: np.ndarray | None  # (Q,)
    names: np.ndarray  # (C,)

    @property
    def available(self) -> int:
        """How many neighbours every query has: the largest k that is defined for all of them."""
        return len(self.gallery) - (self.self_index is not None)

    @property
    def deepest(self) -> int:
        """How many neighbours the query with the most neighbours has; a query in the gallery has one less."""
        return len(self.gallery) - int(self.self_index is not None and bool((self.self_index >= 0).all()))

    @property
    def size(self) -> np.ndarray:
        """(Q,) k_c: the gallery items of each query's class; the query itself counts if it is in the gallery."""
        return np.bincount(self.gallery_labels, minlength=len(self.names))[self.labels]  # (Q,)

    @property
    def relevant(self) -> np.ndarray:
        """(Q,) R_q: the gallery items of each query's class, without the query itself."""
        return self.size - (0 if self.self_index is None else self.self_index >= 0)  # (Q,)

    @property
    def items(self) -> tuple[Tensor, np.ndarray]:
        """All embeddings (N, D) and class indices (N,), each item once, for metrics that do not rank."""
        if self.query is self.gallery:
            return self.gallery, self.gallery_labels
        extra = np.arange(len(self.query)) if self.self_index is None else np.flatnonzero(self.self_index < 0)
        z = torch.cat([self.gallery, self.query[torch.from_numpy(extra)].to(self.gallery.dtype)])
        return z, np.concatenate([self.gallery_labels, self.labels[extra]])


def make_sets(embeddings: Any, labels: Any, query: Any, gallery: Any, distance: str) -> Sets:
    """Check the input of `evaluate` and make `Sets` of it.

    Parameters:
        embeddings: (N, D), anything like an array.
        labels: (N,), numbers or strings.
        query: a mask or indices of the items that are queries; None: all.
        gallery: the same for the gallery, or a tuple (embeddings, labels) of its own.
        distance: "cosine", "euclid" or "snr"; it decides which vectors are refused.
    """
    z = as_embeddings(embeddings, "embeddings")
    if isinstance(gallery, tuple):
        other = as_embeddings(gallery[0], "gallery embeddings")
        (y, other_y), names = as_classes([(labels, len(z), "labels"), (gallery[1], len(other), "gallery labels")])
        if query is not None:
            query_rows = as_index(query, len(z), "query")
            z, y = z[torch.from_numpy(query_rows)], y[query_rows]
        sets = Sets(z, other, y, other_y, None, names)
    else:
        (y,), names = as_classes([(labels, len(z), "labels")])
        sets = _select(z, y, names, query, gallery)
    if sets.query.shape[1] != sets.gallery.shape[1]:
        raise NearkinError(
            f"queries have {sets.query.shape[1]} dimensions, the gallery {sets.gallery.shape[1]}; "
            "the same model must make both"
        )
    _check_classes(sets)
    if sets.gallery is sets.query:
        check_vectors(sets.query, distance, "embedding")
    else:
        check_vectors(sets.query, distance, "query")
        check_vectors(sets.gallery, distance, "gallery")
    return sets


def _select(z: Tensor, y: np.ndarray, names: np.ndarray, query: Any, gallery: Any) -> Sets:
    if query is None and gallery is None:
        return Sets(z, z, y, y, np.arange(len(z)), names)
    query_rows, gallery_rows = as_index(query, len(z), "query"), as_index(gallery, len(z), "gallery")
    place = np.full(len(z), -1)
    place[gallery_rows] = np.arange(len(gallery_rows))
    self_index = place[query_rows] if (place[query_rows] >= 0).any() else None
    return Sets(
        z[torch.from_numpy(query_rows)],
        z[torch.from_numpy(gallery_rows)],
        y[query_rows],
        y[gallery_rows],
        self_index,
        names,
    )


def _check_classes(sets: Sets) -> None:
    if len(sets.query) == 0 or sets.available < 1:
        raise NearkinError(f"{len(sets.query)} queries and {len(sets.gallery)} gallery items: nothing to rank")
    if len(np.unique(np.concatenate([sets.labels, sets.gallery_labels]))) == 1:
        raise NearkinError("there is one class only, so every neighbour is a hit; at least 2 classes are needed")
    if not sets.relevant.any():
        reason = (
            "every class has one item" if sets.self_index is not None else "the queries' classes are absent from it"
        )
        raise NearkinError(
            f"no query has another item of its class in the gallery ({reason}): no query has a match to find"
        )
