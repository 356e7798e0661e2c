"""`evaluate`: from embeddings and labels to the metrics."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from nearkin.config.bounds import at_least
from nearkin.evaluation.identical import identical_note
from nearkin.evaluation.inputs import Sets, make_sets
from nearkin.evaluation.metrics.base import Metric, parse, unit_of
from nearkin.evaluation.metrics.clustering import kmeans
from nearkin.evaluation.ranking import rank
from nearkin.evaluation.search import Neighbours, OnProgress, neighbours
from nearkin.evaluation.tiles import chosen_distance
from nearkin.numerics import unit
from nearkin.present import Column, Shown, Table
from nearkin.units import COUNT

__all__ = ["Evaluation", "Neighbours", "bootstrap_over_classes", "evaluate", "neighbours"]

VERSION = 1  # raise it when the same embeddings give different figures: tests are then repeated
DEFAULT = ("recall", "p@1", "r_precision", "map_at_r", "map_at_c", "mrr")
DEFAULT_K = (1, 2, 4, 8)


@dataclass
class Evaluation(Shown):
    """What `evaluate` returns: the value of each metric, its values per query, and which queries were left out.

    The attributes have the names of the parameters; there are Q queries.

    Parameters:
        metrics: metric -> value, as in {"recall@1": 0.91, "map_at_r": 0.54}, in the order in which they were asked for.
            A retrieval metric is the mean over the queries for which it is defined.
        per_query: retrieval metric -> array (Q,), one value per query, NaN where it is not defined.
        labels: (Q,) array, the labels of the queries as the user gave them.
        n: Q, the number of queries.
        gallery: the number of gallery items.
        distance: what the neighbours were ranked by: "cosine", "euclid" or "snr".
        excluded: {} or {"lone_queries": their number, "reason": in words}. A lone query has no other item of its class
            in the gallery.
        intervals: retrieval metric -> (low, high), the 95 % interval over test classes; {} without bootstrap.
        notes: sentences about the input: identical embeddings, images that were left out.
        rows: (Q,) array, the row of each query in the file that it was read from; None: its number.

    Example:
        result = nearkin.evaluate(embeddings, labels)
        worst = result.per_query["map_at_r"].argsort()[:10]
    """

    metrics: dict[str, float]
    per_query: dict[str, np.ndarray]  # each (Q,)
    labels: np.ndarray  # (Q,)
    n: int
    gallery: int
    distance: str
    excluded: dict[str, str | int] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    rows: np.ndarray | None = None  # (Q,)

    @property
    def metric(self) -> str:
        """The old name of `distance`."""
        return self.distance

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values per query, ready for JSON. "metric" is the old name of "distance"."""
        fields: dict[str, Any] = {
            "n": self.n,
            "gallery": self.gallery,
            "distance": self.distance,
            "metric": self.distance,
            "metrics": self.metrics,
            "excluded": self.excluded,
        }
        if self.notes:
            fields["notes"] = self.notes
        if self.intervals:
            fields["bootstrap_over_classes_95"] = {key: list(pair) for key, pair in self.intervals.items()}
        return fields

    @property
    def tables(self) -> list[Table]:
        """Every metric with its value, its interval over test classes, and the number of queries it is the mean of."""
        rows = []
        for key, value in self.metrics.items():
            low, high = self.intervals.get(key, (None, None))
            defined = int(np.isfinite(self.per_query[key]).sum()) if key in self.per_query else None
            rows.append([key, value, low, high, defined, unit_of(key).name])
        interval = Column("low", "95 % over test classes (not\u00a0seeds)", "unit", to="high")
        columns = ["metric", Column("value", unit="unit"), interval, "high", Column("queries", unit=COUNT), "unit"]
        title = f"{self.n:,} queries, gallery of {self.gallery:,}, {self.distance}"
        notes = [*self.notes, *([str(self.excluded["reason"])] if self.excluded else [])]
        return [Table("evaluation", columns, rows, title, notes).without_gaps()]


def evaluate(
    embeddings: Any,
    labels: Any,
    *,
    query: Any = None,
    gallery: Any = None,
    k: Sequence[int] | int | None = None,
    metrics: Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    distance: str | None = None,
    budget_mib: float | None = None,
    bootstrap: int = 0,
    seed: int = 0,
    progress: OnProgress | None = None,
    metric: str | None = None,
) -> Evaluation:
    """Retrieval, clustering and space metrics of embeddings, by exact search in bounded memory.

    Every query is ranked against the gallery. By default every item is a query and the gallery is all other items; a
    query that is in the gallery is not its own neighbour, but a duplicate of it is a neighbour like any other. Each
    retrieval metric has one value per query; its figure is their mean. Bad input is refused with a `NearkinError`.

    Parameters:
        embeddings: (N, D), an array, a tensor or nested lists; raw or normalised, cosine and snr normalise them.
        labels: (N,), numbers or strings.
        query: which items are queries: a mask (N,) or indices. None: all.
        gallery: which items are the gallery: a mask (N,) or indices, or a tuple (embeddings, labels) of its own,
            which shares no item with the queries. None: all.
        k: one k or several, for recall, p and hubness when they are named without @k. None: 1, 2, 4 and 8, as far as
            the gallery is large enough.
        metrics: names as in `nearkin list metrics`, such as ["recall@1", "map_at_r"]. None: recall, p@1, r_precision,
            map_at_r, map_at_c and mrr.
        settings: settings of single metrics, such as {"rho.drop": 0}.
        distance: what the neighbours are ranked by: "cosine", "euclid" (raw vectors) or "snr". None: cosine.
        budget_mib: working memory of the search in MiB, without the embeddings; it does not change any
            result. None: 256, or more where the dimension needs more.
        bootstrap: number of resamples for the interval over test classes (`bootstrap_over_classes`); 0: no interval.
        seed: seed of k-means and of the bootstrap.
        progress: called after every tile of the search with (tiles done, tiles in all).
        metric: the old name of distance.

    Example:
        result = nearkin.evaluate(embeddings, labels, metrics=["recall@1", "map_at_r"])
        print(result.metrics["map_at_r"])
    """
    distance = chosen_distance(distance, metric)
    at_least(0, bootstrap=bootstrap)
    sets = make_sets(embeddings, labels, query, gallery, distance)
    if k is None:
        k = [number for number in DEFAULT_K if number <= sets.available]
    ks = [k] if isinstance(k, int) else k
    requested = [m for key in dict.fromkeys(metrics or DEFAULT) for m in parse(key, ks, settings)]
    ranked = [m for m in requested if m.function.kind in ("query", "occurrence")]
    per_query: dict[str, np.ndarray] = {}
    numbers: dict[str, float] = {}
    if ranked:
        per_query, numbers = rank(sets, ranked, distance=distance, budget_mib=budget_mib, progress=progress)
    numbers |= {key: float(np.nanmean(value)) for key, value in per_query.items()}
    of_all_items = [m for m in requested if m.function.kind in ("clusters", "space")]
    numbers |= _values_of_all_items(of_all_items, sets, distance, seed)
    identical = identical_note(sets)
    return Evaluation(
        metrics={m.key: numbers[m.key] for m in requested},
        per_query=per_query,
        labels=sets.names[sets.labels],
        n=len(sets.query),
        gallery=len(sets.gallery),
        distance=distance,
        excluded=_excluded(sets, requested),
        intervals=bootstrap_over_classes(per_query, sets.labels, resamples=bootstrap, seed=seed) if bootstrap else {},
        notes=[identical] if identical else [],
    )


def bootstrap_over_classes(
    per_query: dict[str, np.ndarray], labels: np.ndarray, *, resamples: int = 1000, level: float = 0.95, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """A percentile interval of each metric's mean, from drawing the test classes again, with replacement.

    It tells how much a figure depends on which test classes there are. It says nothing about how much it would change
    with another training seed.

    Parameters:
        per_query: metric -> values (Q,), one per query; NaN is left out.
        labels: (Q,), the label of each query.
        resamples: how often the classes are drawn.
        level: share of the drawn means that lie in the interval.
        seed: seed of the draws.

    Example:
        result = nearkin.evaluate(embeddings, labels)
        low, high = nearkin.evaluation.bootstrap_over_classes(result.per_query, result.labels)["map_at_r"]
    """
    _, index = np.unique(labels, return_inverse=True)
    c = int(index.max()) + 1
    random = np.random.default_rng(seed)
    defined = {key: np.isfinite(value) for key, value in per_query.items()}
    counts = {key: np.bincount(index[mask], minlength=c) for key, mask in defined.items()}
    sums = {key: np.bincount(index[defined[key]], value[defined[key]], minlength=c) for key, value in per_query.items()}
    means: dict[str, list[float]] = {key: [] for key in per_query}
    for _ in range(resamples):
        times = np.bincount(random.integers(0, c, c), minlength=c)  # (C,) how often each class is drawn
        for key in per_query:
            drawn = int(times @ counts[key])
            means[key].append(float(times @ sums[key]) / drawn if drawn else np.nan)
    tails = [(1 - level) / 2, (1 + level) / 2]
    return {key: tuple(np.nanquantile(value, tails).tolist()) for key, value in means.items()}


def _values_of_all_items(metrics: list[Metric], sets: Sets, distance: str, seed: int) -> dict[str, float]:
    """Clustering and space metrics: one number for all items together."""
    if not metrics:
        return {}
    z, labels = sets.items
    numbers = {}
    with one_thread():
        if any(m.function.kind == "clusters" for m in metrics):
            vectors = z.float() if distance == "euclid" else unit(z.float())
            cluster = kmeans(vectors.numpy(), len(np.unique(labels)), seed=seed)
        for m in metrics:
            numbers[m.key] = m(labels, cluster) if m.function.kind == "clusters" else m(z, labels)
    return numbers


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, k-means and LAPACK use one thread: the last bits of their sums depend on the number of threads."""
    threads = torch.get_num_threads()
    with threadpool_limits(limits=1):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def _excluded(sets: Sets, metrics: list[Metric]) -> dict[str, str | int]:
    metrics = [m for m in metrics if m.function.kind == "query"]
    lone = int((sets.relevant == 0).sum())
    if not lone or not metrics:
        return {}
    zero = ", ".join(m.key for m in metrics if m.function.lone == 0)
    undefined = ", ".join(m.key for m in metrics if np.isnan(m.function.lone))
    sentences = [zero and f"they count as 0 in {zero}", undefined and f"they are left out of {undefined}"]
    return {
        "lone_queries": lone,
        "reason": f"{lone} of {len(sets.query)} queries have no other item of their class in the gallery: "
        + "; ".join(part for part in sentences if part),
    }
