"""What a metric is: a pure function, registered with what it needs.

    per query    f(ranked, k)               -> one value a query, NaN where undefined
    occurrence   f(count)                   -> one number; how often each gallery item is among the k nearest
    clusters     f(labels, clusters)        -> one number
    space        f(embeddings, labels)      -> one number

A name may carry its k: `recall@10` is the metric `recall` with k = 10.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from nearkin.errors import NearkinError, choices
from nearkin.registry import METRICS, hyperparameters


@dataclass(frozen=True)
class Ranked:
    """Queries against a ranked gallery, the query itself left out. K columns are enough for every metric asked."""

    hits: np.ndarray            # (Q, K) bool: the i-th neighbour is of the query's class
    relevant: np.ndarray        # (Q,) R_q: gallery items of its class, the query itself not counted
    size: np.ndarray            # (Q,) k_c: gallery items of its class, the query itself counted if it is one of them
    first: np.ndarray           # (Q,) rank of the first hit, counted over the whole gallery; 0: there is none

    @property
    def lone(self) -> np.ndarray:
        return self.relevant == 0                                   # (Q,) bool


class Sizes(NamedTuple):
    """Known before the search, to say how deep it must go."""

    relevant: int               # the largest R_q
    size: int                   # the largest k_c


class Metric(NamedTuple):
    """A metric as asked for: `recall@10` -> recall, k = 10."""

    key: str
    function: Any
    k: int | None = None
    settings: Mapping[str, Any] = MappingProxyType({})

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments, **self.settings) if self.k is None else self.function(*arguments, self.k)


def per_query(
    name: str, depth: Callable[[Sizes, int], int], *, takes_k: bool = False, lone: float = math.nan, first: bool = False
) -> Callable[[Any], Any]:
    """`depth(sizes, k)`: how many neighbours it reads. `lone`: the value of a query without relevant items. `first`: it
    reads `ranked.first` alone, which may cost a second look at the queries without a hit in the first K."""
    return _register(name, kind="query", depth=depth, takes_k=takes_k, lone=lone, first=first)


def occurrence(name: str) -> Callable[[Any], Any]:
    return _register(name, kind="occurrence", depth=lambda sizes, k: k, takes_k=True)


def clusters(name: str) -> Callable[[Any], Any]:
    return _register(name, kind="clusters", takes_k=False)


def space(name: str) -> Callable[[Any], Any]:
    return _register(name, kind="space", takes_k=False)


def _register(name: str, **traits: Any) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        for trait, value in traits.items():
            setattr(function, trait, value)
        METRICS.register(name)(function)
        return function

    return add


def parse(key: str, ks: Sequence[int] = (), settings: Mapping[str, Any] | None = None) -> list[Metric]:
    """`recall@10` -> recall with k = 10; `recall` -> one for each k of `ks`."""
    name, at, k = key.partition("@")
    function = METRICS[name]
    if not function.takes_k:
        if at:
            raise NearkinError(f"metric {key!r} takes no k: write {name!r}")
        return [Metric(key, function, settings=_settings(name, function, settings or {}))]
    wanted = [k] if at else [str(k) for k in ks]
    for k in wanted:
        if not (k.isdecimal() and int(k) >= 1):
            raise NearkinError(f"metric {name}@{k}: k={k}; a whole number from 1 on is needed, as in {name}@1")
    return [Metric(f"{name}@{k}", function, int(k)) for k in wanted]


def _settings(name: str, function: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Of {"rho.drop": 0} what belongs to rho: {"drop": 0}."""
    own = {key.partition(".")[2]: value for key, value in settings.items() if key.partition(".")[0] == name}
    known = hyperparameters(function)
    for key in own:
        if key not in known:
            raise NearkinError(f"unknown setting {name}.{key}: {choices(key, known)}")
    return own
