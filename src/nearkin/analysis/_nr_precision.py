"""Normalised R-precision: do neighbours share a property more often than chance has it?"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from scipy import stats
from torch import Tensor

from nearkin.errors import NearkinError
from nearkin.evaluation.search import OnProgress, search

BAR = 2.576  # the published mark: 99 % of a normal distribution lie within ± 2.576
BINS = 10  # of a property that is a number
FEW = 20  # whole numbers with at most so many values are categories
SHUFFLES = 10  # how often a property is shuffled within classes, to see what the class alone gives
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Categories:
    """A property of N images as categories.

    Parameters:
        codes: (N,) 0..C-1, -1 for an image without a value.
        names: C names; of bins their bounds in words.
        edges: the C + 1 edges of the bins of a number; None for a property that has categories of its own.
    """

    codes: np.ndarray
    names: tuple[str, ...]
    edges: np.ndarray | None = None


@dataclass(frozen=True)
class Shared:
    """How often neighbours share a property with their query.

    Parameters:
        values: (Q,) normalised R-precision of every query, NaN where it is undefined.
        precisions: (Q,) R-precision of every query: the share of its R nearest that have its value.
        shares: (Q,) p: the share of the gallery that has its value.
    """

    values: np.ndarray
    precisions: np.ndarray
    shares: np.ndarray

    @property
    def mean(self) -> float:
        """The normalised R-precision of the property: the mean over queries."""
        return float(np.nanmean(self.values))

    @property
    def queries(self) -> int:
        """For how many queries it is defined."""
        return int(np.isfinite(self.values).sum())

    def over_queries(self, values: np.ndarray) -> float:
        """The mean of further values (Q,) over the queries for which it is defined."""
        return float(values[np.isfinite(self.values)].mean())


def categories(name: str, values: np.ndarray) -> Categories | str:
    """A column of a data set as categories, or the reason why it cannot be one.

    Words are categories, and so are whole numbers of at most 20 different values. Other numbers are put into 10 bins
    that hold equally many images each (quantiles). An empty word and NaN are no value.
    """
    values = np.asarray(values)
    if values.dtype.kind in "OS":  # words, as a .parquet file has them
        values = values.astype(str)
    missing = values == "" if values.dtype.kind == "U" else ~np.isfinite(values.astype(float))
    different, inverse = np.unique(values[~missing], return_inverse=True)
    if len(different) < 2:
        return f"all images have the value {different[0]}" if len(different) else "no image has a value"
    codes = np.full(len(values), -1)
    fractions = values.dtype.kind == "f" and bool((different != np.rint(different)).any())
    if fractions or (values.dtype.kind in "fiu" and len(different) > FEW):
        edges = np.unique(np.quantile(values[~missing], np.linspace(0, 1, BINS + 1)))
        codes[~missing] = np.searchsorted(edges[1:-1], values[~missing], side="right")
        return Categories(codes, tuple(f"{a:.4g} to {b:.4g}" for a, b in pairwise(edges)), edges)
    if len(different) == (~missing).sum():
        return "every image has another value"
    codes[~missing] = inverse
    return Categories(codes, tuple(str(value) for value in different))


def shuffled(codes: np.ndarray, labels: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The values of a property (N,), shuffled among the images of each class."""
    number = np.unique(labels, return_inverse=True)[1]
    out = np.empty_like(codes)
    out[np.argsort(number, kind="stable")] = codes[np.lexsort((random.random(len(codes)), number))]
    return out


def beyond(value: float, mean: float, std: float) -> bool:
    """Does a value lie outside the 99 % prediction interval of SHUFFLES values with this mean and deviation?"""
    return bool(abs(value - mean) > stats.t.ppf(0.995, SHUFFLES - 1) * std * np.sqrt(1 + 1 / SHUFFLES))


def nr_precision(
    z: Tensor,
    codes: Mapping[Name, np.ndarray],
    *,
    roles: np.ndarray | None = None,
    budget_mib: float | None = None,
    progress: OnProgress | None = None,
) -> dict[Name, Shared]:
    """Normalised R-precision of properties, from one search for neighbours (cosine).

        (X - R p) / √(R p (1 - p))     X of the R nearest have the query's value; count of the gallery's N have it;
                                       p = count / N, R = count - 1 (count, where the query is not in the gallery)

    Undefined (NaN) for a query without a value, the only one of its value, or when all have its value.

    Of a property that has nothing to do with the embeddings a query's value has a mean of about 0 and a variance of
    about 1 - p, because the R nearest are drawn without replacement: 99 % of the queries lie within ± 2.576, unless a
    value is so rare that less than about one hit is expected (R p). The mean over queries is spread far less. Beyond
    ± 2.576 it is not chance; below, it may still not be. It is no test at the level of 1 %, and no size of an effect:
    for the same share of hits it grows with √R, so test sets of different sizes cannot be compared. A property that
    goes along with the class is found because the class is.

    Source: Kobs et al., section on the object level.

    Parameters:
        z: (N, D) embeddings.
        codes: property -> (N,) number of its category for every image, -1 for none.
        roles: (N,) query, gallery or both; None: all are both.
        budget_mib: working memory of the search.
        progress: called after every tile with (tiles done, tiles in all).
    """
    for name, values in codes.items():
        if len(values) != len(z):
            raise NearkinError(f"property {name!r}: {len(values)} values for {len(z)} embeddings")
    queries, searched, place = _parts(len(z), roles)
    counted = {name: _Counted(np.asarray(values), queries, searched, place) for name, values in codes.items()}
    depth = max((one.relevant.max() for one in counted.values()), default=0)
    query = z if roles is None else z[queries]
    gallery = z if roles is None else z[searched]
    stop = 0
    for index, _ in search(
        query, gallery, max(1, int(depth)), self_index=place, budget_mib=budget_mib, progress=progress
    ):
        start, stop = stop, stop + len(index)
        for one in counted.values():
            one.count(index, slice(start, stop))
    return {name: one.shared() for name, one in counted.items()}


def _parts(n: int, roles: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Queries (Q,), gallery (G,) and the place of each query in the gallery (Q,), -1 for none; None: for no query."""
    if roles is None:
        return np.arange(n), np.arange(n), np.arange(n)
    queries, searched = (np.flatnonzero(np.isin(roles, [role, "both"])) for role in ("query", "gallery"))
    place = np.full(n, -1)
    place[searched] = np.arange(len(searched))
    return queries, searched, place[queries] if (place[queries] >= 0).any() else None


class _Counted:
    """The hits of one property, block after block of queries."""

    def __init__(self, codes: np.ndarray, queries: np.ndarray, searched: np.ndarray, place: np.ndarray | None):
        codes = codes.astype(np.int8 if codes.max(initial=0) < 127 else np.int32)  # the smaller, the faster
        self.query, self.gallery = codes[queries], codes[searched]
        has = np.bincount(self.gallery[self.gallery >= 0], minlength=int(codes.max(initial=0)) + 1)
        size = np.where(self.query >= 0, has[self.query], 0)  # (Q,) those with the query's value
        self.relevant = np.maximum(size - (0 if place is None else place >= 0), 0) * (size < len(searched))
        self.share = size / len(searched)  # (Q,)
        self.hits = np.zeros(len(queries), np.int64)

    def count(self, index: np.ndarray, rows: slice) -> None:
        """Neighbours (T, K) of some queries."""
        r = self.relevant[rows]
        near = self.gallery.take(index[:, : r.max(initial=0)], mode="wrap")  # (T, R)
        hits = near == self.query[rows, None]
        for row, end in enumerate(r):  # R differs from query to query
            self.hits[rows.start + row] = np.count_nonzero(hits[row, :end])

    def shared(self) -> Shared:
        """Undefined values are NaN."""
        r, p = np.where(self.relevant > 0, self.relevant, np.nan), self.share
        with np.errstate(invalid="ignore", divide="ignore"):
            return Shared((self.hits - r * p) / np.sqrt(r * p * (1 - p)), self.hits / r, p)
