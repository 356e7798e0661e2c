"""What a metric is: a pure function, registered by a decorator that says what the function is called with.

    @per_query(...)     f(ranked) or f(ranked, k) -> one value per query, NaN where it is not defined
    @occurrence(...)    f(count) -> one number, from how often each gallery item is among the k nearest
    @clusters(...)      f(labels, cluster) -> one number
    @space(...)         f(embeddings, labels) -> one number

A name may come with a k: `recall@10` is the metric `recall` with k = 10.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from nearkin.consent import is_path
from nearkin.errors import NearkinError, choices
from nearkin.registry import METRICS, hyperparameters
from nearkin.units import NUMBER, POINTS, SHARE, Unit

PAPERS = {"map@r": "map_at_r", "map@c": "map_at_c", "map@1000": "map_at_1000"}  # as papers write them


@dataclass(frozen=True)
class Ranked:
    """What a per-query metric sees: for Q queries, which of their K nearest neighbours are of their class.

    A query is never its own neighbour. K is large enough for every metric that was asked for. The attributes have the
    names of the parameters.

    Parameters:
        hits: (Q, K) bool, True where the i-th neighbour is of the query's class.
        relevant: (Q,) R_q, the gallery items of the query's class, without the query itself.
        size: (Q,) k_c, the gallery items of the query's class; the query itself counts if it is in the gallery.
        first: (Q,) the rank, from 1 on, of the first hit in the whole gallery; 0 if there is none.

    Example:
        ranked = Ranked(np.array([[True, False]]), relevant=np.array([1]), size=np.array([2]), first=np.array([1]))
        value = nearkin.metrics.map_at_r(ranked)            # (Q,)
    """

    hits: np.ndarray  # (Q, K)
    relevant: np.ndarray  # (Q,)
    size: np.ndarray  # (Q,)
    first: np.ndarray  # (Q,)

    @property
    def lone(self) -> np.ndarray:
        """(Q,) bool: the gallery has no other item of the query's class."""
        return self.relevant == 0


class Sizes(NamedTuple):
    """What is known before the search and determines how many neighbours it must find."""

    relevant: int  # the largest R_q
    size: int  # the largest k_c


class Metric(NamedTuple):
    """A metric as a user asks for it: `recall@10` is the function recall with k = 10."""

    key: str
    function: Any
    k: int | None = None
    settings: Mapping[str, Any] = MappingProxyType({})

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments, **self.settings) if self.k is None else self.function(*arguments, self.k)


def per_query(
    name: str, depth: Callable[[Sizes, int], int], *, takes_k: bool = False, lone: float = math.nan, first: bool = False
) -> Callable[[Any], Any]:
    """Register a function f(ranked), or f(ranked, k), that gives one value (Q,) per query.

    Parameters:
        name: its name in `evaluate(metrics=...)`.
        depth: depth(sizes, k) is the number of neighbours that the function reads.
        takes_k: the name comes with a k, as in recall@10.
        lone: the value that the function gives to a lone query, which has no relevant items; NaN is left out of means.
        first: the function reads `ranked.first` and no hits. This costs a second search for the queries that have no
            hit among the first K.

    Example:
        @nearkin.metrics.per_query("hit", depth=lambda sizes, k: k, takes_k=True, lone=0)
        def hit(ranked, k):
            return ranked.hits[:, k - 1].astype(float)
    """
    traits = {"depth": depth, "takes_k": takes_k, "lone": lone, "first": first}
    return _register(name, kind="query", better="high", bounds=(0.0, 1.0), **traits)


def occurrence(name: str) -> Callable[[Any], Any]:
    """Register a function f(count) -> number; count (G,) is how often each gallery item is among the k nearest."""
    return _register(name, kind="occurrence", depth=lambda sizes, k: k, takes_k=True, better="low")


def clusters(name: str, *, bounds: tuple[float | None, float | None] = (0.0, 1.0)) -> Callable[[Any], Any]:
    """Register a function f(labels, cluster) -> number; both (N,): the class and the k-means cluster of each item.

    `bounds` is its range; an index that is adjusted for chance may fall below 0.
    """
    return _register(name, kind="clusters", takes_k=False, better="high", bounds=bounds)


def space(
    name: str, *, better: Literal["high", "low"] | None = None, bounds: tuple[float | None, float | None] = (None, None)
) -> Callable[[Any], Any]:
    """Register a function f(z, labels) -> number; z (N, D) are the raw embeddings, labels (N,) their classes.

    Keyword-only arguments of the function are settings: `evaluate(settings={"rho.drop": 0})` sets `drop` of rho.
    `better`: which side is better, where one is; a metric without it cannot choose an epoch (train.select). `bounds` is
    its range.
    """
    return _register(name, kind="space", takes_k=False, better=better, bounds=bounds)


def _register(
    name: str,
    *,
    kind: str,
    better: Literal["high", "low"] | None,
    bounds: tuple[float | None, float | None] = (None, None),
    **traits: Any,
) -> Callable[[Any], Any]:
    """What a metric is, as attributes of its function. `sign` is 1 where high is better, -1 where low is, 0 where
    neither is; `is_share`: is it shown in per cent? `bounds` is the range that its values cannot leave."""
    traits |= {
        "kind": kind,
        "better": better,
        "sign": {"high": 1, "low": -1, None: 0}[better],
        "is_share": kind in ("query", "clusters"),
        "bounds": bounds,
    }

    def add(function: Any) -> Any:
        for trait, value in traits.items():
            setattr(function, trait, value)
        METRICS.register(name)(function)
        return function

    return add


EPOCH = "epoch of best "  # of a run: `epoch of best recall@1`
OF_RUNS = ("validation ", "train.", EPOCH)  # how names of values begin that a run has without a test


class Epoch(NamedTuple):
    """What is known of the epoch at which a metric was best: the earlier, the faster a loss converges."""

    kind: str = "epoch"
    better: str | None = "low"
    sign: int = -1
    is_share: bool = False
    bounds: tuple[float | None, float | None] = (0.0, None)


class Unknown(NamedTuple):
    """What is known of a metric by an import path that was not imported: it is shown as a plain number."""

    kind: str = "unknown"
    better: str | None = None
    sign: int = 0
    is_share: bool = False
    bounds: tuple[float | None, float | None] = (None, None)


def metric_of(key: str) -> Any:
    """The metric that a value has by its name in results and tables: `recall@1`, `train.rho`, `validation map_at_r`,
    `epoch of best recall@1`. Results may come from a stranger: nothing is imported."""
    if key.startswith(EPOCH):
        return Epoch()
    name = key.removeprefix("validation ").removeprefix("train.").partition("@")[0]
    return METRICS.known(name) or (Unknown() if is_path(name) else METRICS[name])


def parse(key: str, ks: Sequence[int] = (), settings: Mapping[str, Any] | None = None) -> list[Metric]:
    """`recall@10` -> recall with k = 10; `recall` -> one metric for each k of `ks`."""
    key = PAPERS.get(key.lower(), key)
    name, at, k = key.partition("@")
    function = METRICS[name]
    if not function.takes_k:
        if at:
            raise NearkinError(f"metric {key!r} takes no k: write {name!r}")
        return [Metric(key, function, settings=_settings(name, function, settings or {}))]
    wanted = [k] if at else [str(k) for k in ks]
    for k in wanted:
        if not (k.isdecimal() and int(k) >= 1):
            raise NearkinError(f"metric {name}@{k}: k={k}; a whole number of at least 1 is needed, as in {name}@1")
    return [Metric(f"{name}@{k}", function, int(k)) for k in wanted]


def _settings(name: str, function: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of one metric: for rho, {"rho.drop": 0} -> {"drop": 0}."""
    chosen = {key.partition(".")[2]: value for key, value in settings.items() if key.partition(".")[0] == name}
    known = hyperparameters(function)
    for key in chosen:
        if key not in known:
            raise NearkinError(f"unknown setting {name}.{key}: {choices(key, known)}")
    return chosen


METRICS.takes(
    words="a function with a decorator of nearkin.metrics, such as per_query",
    form=lambda part: inspect.isfunction(part) and {"kind", "takes_k"} <= vars(part).keys(),
)


def unit_of(key: str) -> Unit:
    """How values of a metric are written: shares in per cent, others as numbers."""
    return SHARE if metric_of(key).is_share else NUMBER


def difference_unit(key: str) -> Unit:
    """How differences of a metric are written: those of shares in points."""
    return POINTS if metric_of(key).is_share else NUMBER
