"""`evaluate`: embeddings and labels in, the numbers out.

Every query is ranked against the gallery by exact search; each retrieval metric gives one value a query (NaN where
undefined) and their mean. Query = gallery by default; a query that is itself in the gallery is left out by index.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from nearkin.evaluation.inputs import Sets, make_sets
from nearkin.evaluation.metrics.base import Metric, parse
from nearkin.evaluation.metrics.clustering import kmeans
from nearkin.evaluation.ranking import rank
from nearkin.evaluation.search import Neighbours, Progress, neighbours
from nearkin.numerics import unit

__all__ = ["Evaluation", "Neighbours", "bootstrap_over_classes", "evaluate", "neighbours"]

DEFAULT = ("recall", "p@1", "r_precision", "map_at_r", "map_at_c", "mrr")
DEFAULT_K = (1, 2, 4, 8)


@dataclass
class Evaluation:
    metrics: dict[str, float]
    per_query: dict[str, np.ndarray]                                # each (Q,), NaN where undefined
    labels: np.ndarray                                              # (Q,) of the queries, as they were given
    n: int                                                          # queries
    gallery: int
    metric: str
    excluded: dict[str, str | int] = field(default_factory=dict)    # what was left out, and why
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)     # bootstrap over classes

    def to_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "n": self.n,
            "gallery": self.gallery,
            "metric": self.metric,
            "metrics": self.metrics,
            "excluded": self.excluded,
        }
        if self.intervals:
            told["bootstrap_over_classes_95"] = {key: list(pair) for key, pair in self.intervals.items()}
        return told


def evaluate(
    embeddings: Any,
    labels: Any,
    *,
    query: Any = None,
    gallery: Any = None,
    k: Sequence[int] | int | None = None,
    metrics: Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    metric: str = "cosine",
    budget_mib: float = 256,
    bootstrap: int = 0,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """`embeddings` (N, D) and `labels` (N,): arrays or tensors; labels may be strings.

    `query`, `gallery`: masks or indices of the items that ask and are asked; all by default. `gallery` may also be a
    pair (embeddings, labels) of its own. `metrics`: names as in `nearkin list metrics`; recall, p and hubness without
    @k are computed for every k (1, 2, 4, 8 as far as the gallery reaches). `settings`: of single metrics, such as
    {"rho.drop": 0}. `budget_mib`: of the search, beside the embeddings; it never changes a result. `bootstrap`:
    resamples for the interval over classes. `seed`: of k-means and bootstrap.
    """
    sets = make_sets(embeddings, labels, query, gallery, metric)
    if k is None:
        k = [each for each in DEFAULT_K if each <= sets.available]
    ks = [k] if isinstance(k, int) else k
    asked = [m for key in dict.fromkeys(metrics or DEFAULT) for m in parse(key, ks, settings)]
    ranked = [m for m in asked if m.function.kind in ("query", "occurrence")]
    per_query: dict[str, np.ndarray] = {}
    numbers: dict[str, float] = {}
    if ranked:
        per_query, numbers = rank(sets, ranked, metric=metric, budget_mib=budget_mib, progress=progress)
    numbers |= {key: float(np.nanmean(value)) for key, value in per_query.items()}
    whole = [m for m in asked if m.function.kind in ("clusters", "space")]
    numbers |= _of_the_whole(whole, sets, metric, seed)
    return Evaluation(
        metrics={m.key: numbers[m.key] for m in asked},
        per_query=per_query,
        labels=sets.names[sets.labels],
        n=len(sets.query),
        gallery=len(sets.gallery),
        metric=metric,
        excluded=_excluded(sets, asked),
        intervals=bootstrap_over_classes(per_query, sets.labels, resamples=bootstrap, seed=seed) if bootstrap else {},
    )


def bootstrap_over_classes(
    per_query: dict[str, np.ndarray], labels: np.ndarray, *, resamples: int = 1000, level: float = 0.95, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """Percentile interval of each mean when the classes are drawn anew, with replacement.

    It tells how much the figure hangs on these test classes. It says nothing about other seeds of the training.
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


def _of_the_whole(asked: list[Metric], sets: Sets, metric: str, seed: int) -> dict[str, float]:
    """Clustering and space: numbers of all items together."""
    if not asked:
        return {}
    z, labels = sets.items
    numbers = {}
    with one_thread():
        if any(m.function.kind == "clusters" for m in asked):
            vectors = z.float() if metric == "euclid" else unit(z.float())
            cluster = kmeans(vectors.numpy(), len(np.unique(labels)), seed=seed)
        for m in asked:
            numbers[m.key] = m(labels, cluster) if m.function.kind == "clusters" else m(z, labels)
    return numbers


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums inside k-means and LAPACK depend on the number of threads; results must not."""
    threads = torch.get_num_threads()
    with threadpool_limits(limits=1):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def _excluded(sets: Sets, asked: list[Metric]) -> dict[str, str | int]:
    asked = [m for m in asked if m.function.kind == "query"]
    lone = int((sets.relevant == 0).sum())
    if not lone or not asked:
        return {}
    zero = ", ".join(m.key for m in asked if m.function.lone == 0)
    undefined = ", ".join(m.key for m in asked if np.isnan(m.function.lone))
    told = [zero and f"they count as 0 in {zero}", undefined and f"they are left out of {undefined}"]
    return {
        "lone_queries": lone,
        "reason": f"{lone} of {len(sets.query)} queries have no other item of their class in the gallery: "
        + "; ".join(part for part in told if part),
    }
