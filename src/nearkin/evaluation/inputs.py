"""`Sets`: the queries and the gallery of one evaluation, checked."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nearkin.errors import NearkinError
from nearkin.evaluation.arrays import as_classes, as_embeddings, as_index, check_vectors


@dataclass(frozen=True)
class Sets:
    query: Tensor                   # (Q, D)
    gallery: Tensor                 # (G, D), the same object where query = gallery
    labels: np.ndarray              # (Q,) class indices, common to both
    gallery_labels: np.ndarray      # (G,)
    own: np.ndarray | None          # (Q,) place of each query in the gallery, -1: not there; None: none is there
    names: np.ndarray               # the labels as they were given, by class index

    @property
    def available(self) -> int:
        """Neighbours that every query has."""
        return len(self.gallery) - (self.own is not None)

    @property
    def deepest(self) -> int:
        """Neighbours that some query has."""
        return len(self.gallery) - int(self.own is not None and bool((self.own >= 0).all()))

    @property
    def size(self) -> np.ndarray:
        """k_c: gallery items of the query's class, itself counted if it is one of them."""
        return np.bincount(self.gallery_labels, minlength=len(self.names))[self.labels]             # (Q,)

    @property
    def relevant(self) -> np.ndarray:
        """R_q: gallery items of the query's class but itself."""
        return self.size - (0 if self.own is None else self.own >= 0)                               # (Q,)

    @property
    def items(self) -> tuple[Tensor, np.ndarray]:
        """Every item once, for what does not ask who queries whom."""
        if self.query is self.gallery:
            return self.gallery, self.gallery_labels
        extra = np.arange(len(self.query)) if self.own is None else np.flatnonzero(self.own < 0)
        z = torch.cat([self.gallery, self.query[torch.from_numpy(extra)].to(self.gallery.dtype)])
        return z, np.concatenate([self.gallery_labels, self.labels[extra]])


def make_sets(embeddings: Any, labels: Any, query: Any, gallery: Any, metric: str) -> Sets:
    """`query`, `gallery`: None, masks or indices; `gallery` also a pair (embeddings, labels)."""
    z = as_embeddings(embeddings, "embeddings")
    if isinstance(gallery, tuple):
        other = as_embeddings(gallery[0], "gallery embeddings")
        (y, other_y), names = as_classes([(labels, len(z), "labels"), (gallery[1], len(other), "gallery labels")])
        if query is not None:
            asks = as_index(query, len(z), "query")
            z, y = z[torch.from_numpy(asks)], y[asks]
        sets = Sets(z, other, y, other_y, None, names)
    else:
        (y,), names = as_classes([(labels, len(z), "labels")])
        sets = _select(z, y, names, query, gallery)
    if sets.query.shape[1] != sets.gallery.shape[1]:
        raise NearkinError(
            f"queries have {sets.query.shape[1]} dimensions, the gallery {sets.gallery.shape[1]}: one model makes both"
        )
    _check_classes(sets)
    if sets.gallery is sets.query:
        check_vectors(sets.query, metric, "embedding")
    else:
        check_vectors(sets.query, metric, "query")
        check_vectors(sets.gallery, metric, "gallery")
    return sets


def _select(z: Tensor, y: np.ndarray, names: np.ndarray, query: Any, gallery: Any) -> Sets:
    if query is None and gallery is None:
        return Sets(z, z, y, y, np.arange(len(z)), names)
    asks, asked = as_index(query, len(z), "query"), as_index(gallery, len(z), "gallery")
    place = np.full(len(z), -1)
    place[asked] = np.arange(len(asked))
    own = place[asks] if (place[asks] >= 0).any() else None
    return Sets(z[torch.from_numpy(asks)], z[torch.from_numpy(asked)], y[asks], y[asked], own, names)


def _check_classes(sets: Sets) -> None:
    if len(sets.query) == 0 or sets.available < 1:
        raise NearkinError(f"{len(sets.query)} queries and {len(sets.gallery)} gallery items: nothing to rank")
    if len(np.unique(np.concatenate([sets.labels, sets.gallery_labels]))) == 1:
        raise NearkinError("the labels hold one class only, so every neighbour is a hit; at least 2 classes are needed")
    if not sets.relevant.any():
        reason = "every class has one item" if sets.own is not None else "the queries' classes are absent from it"
        raise NearkinError(f"no query has another item of its class in the gallery ({reason}): nothing can be found")
