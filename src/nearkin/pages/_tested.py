"""The test images of a stored run as the pictures of a page look at them: who they are, and who lies beside whom."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from nearkin.comparison.compare import Comparison, Method
from nearkin.comparison.gather import Member
from nearkin.errors import NearkinError
from nearkin.evaluation.inputs import Sets, make_sets
from nearkin.evaluation.search import neighbours
from nearkin.pages._members import untrained_words
from nearkin.progress import bar, note_once
from nearkin.runs.store import Run
from nearkin.runs.tested import TestSet, paths_of, values_per_query

NEAREST = 10  # neighbours of every query that are looked at


@dataclass(frozen=True)
class Nearest:
    """The k nearest images of Q queries, the nearest first."""

    place: np.ndarray  # (Q, k) places among the test images
    similarity: np.ndarray  # (Q, k) cosines


@dataclass(frozen=True, kw_only=True)
class Tested(TestSet):
    """The N test images of a stored run, and who lies beside whom. A place is a number below N.

    Parameters:
        run: the run.
        name: what the page calls it: its method.
        rows: (N,) rows of the data set.
        paths: (N,) the files below the root of the data; None where they were not kept.
    """

    run: Run
    name: str
    rows: np.ndarray
    paths: list[str] | None = None

    @classmethod
    def of(cls, run: Run, name: str = "") -> "Tested":
        """From the files of a run; a NearkinError where it holds no embeddings."""
        images = TestSet.of(run)
        z, labels, roles, rows = images.z, images.labels, images.roles, images.rows
        assert rows is not None  # it has those of every stored run
        return cls(z=z, labels=labels, roles=roles, rows=rows, run=run, name=name or run.hash, paths=paths_of(run))

    @cached_property
    def sets(self) -> Sets:
        """Queries and gallery, checked."""
        if self.plain:
            return make_sets(self.z, self.labels, None, None, "cosine")
        return make_sets(self.z, self.labels, self.query, self.gallery, "cosine")

    @cached_property
    def nearest(self) -> Nearest:
        """Of every query, at most NEAREST."""
        sets = self.sets
        with bar(f"Searching neighbours of {len(sets.query):,} images") as advance:
            return self._search(sets.query, sets.self_index, min(NEAREST, sets.available), progress=advance)

    def nearest_of(self, queries: np.ndarray, k: int) -> Nearest:
        """Of some queries, given as numbers below Q."""
        sets = self.sets
        if "nearest" in self.__dict__ and k <= self.nearest.place.shape[1]:
            return Nearest(self.nearest.place[queries, :k], self.nearest.similarity[queries, :k])
        itself = None if sets.self_index is None else sets.self_index[queries]
        return self._search(sets.query[torch.from_numpy(queries)], itself, min(k, sets.available))

    def _search(self, query: torch.Tensor, itself: np.ndarray | None, k: int, **options) -> Nearest:
        nearest = neighbours(query, self.sets.gallery, k, self_index=itself, **options)
        return Nearest(self.gallery[nearest.index.numpy()], nearest.similarity.numpy())

    @cached_property
    def precision(self) -> np.ndarray | None:
        """(Q,) MAP@R of every query, NaN where it is not defined; None where it is not stored: a report computes no
        metric."""
        stored = values_per_query(self.run, "map_at_r")
        return stored[1] if stored is not None and len(stored[1]) == len(self.query) else None

    @cached_property
    def place_of(self) -> dict[int, int]:
        """Row of the data set -> place."""
        return {int(row): place for place, row in enumerate(self.rows)}

    @cached_property
    def query_of(self) -> dict[int, int]:
        """Row of the data set -> number of the query."""
        return {int(self.rows[place]): q for q, place in enumerate(self.query)}

    def image(self, row: int) -> str:
        """What a page calls the image of a row: its file, where there is one."""
        return self.file(self.place_of[row]) or f"image {row}"

    def file(self, place: int) -> str:
        """The file of an image below the root of its data; of one that lies elsewhere only its name."""
        if self.paths is None:
            return ""
        path = self.paths[place]
        outside = path.startswith(("/", "\\", "~")) or path[1:2] == ":"
        return path.replace("\\", "/").rsplit("/", 1)[-1] if outside else path


def chosen(comparison: Comparison) -> tuple[Tested, Tested | None]:
    """The two runs that are looked at: the best method's, and that of the worst trained one, else of an untrained one;
    each the first fold of the first seed. None where no second one is tested on the same images."""
    best = (comparison.trained or comparison.methods)[0]
    first = Tested.of(first_member(best).run, best.name)
    worse = [method for method in reversed(comparison.trained) if method is not best]
    worse += [method for method in comparison.methods if not method.trained and method is not best]
    return first, _beside(first_member(best), worse[:1])


def untrained(comparison: Comparison) -> Tested | None:
    """The best untrained network on the same test images as the best method's run; None where there is none."""
    best = (comparison.trained or comparison.methods)[0]
    return _beside(first_member(best), [m for m in comparison.methods if not m.trained and m is not best])


def _beside(member: Member, methods: Sequence[Method]) -> Tested | None:
    """A run of the first of these methods that was tested on the same images; of the same seed where there is one."""
    for method in methods:
        other = next((m for m in _ordered(method) if (m.seed, m.fold) == (member.seed, member.fold)), None)
        other = other or first_member(method)
        if all(member.head[key] == other.head[key] for key in ("data_hash", "split_hash")):
            try:
                return Tested.of(other.run, row_name(method))
            except NearkinError as error:  # its embeddings are gone
                note_once(f"{error}; its pictures are left out")
    return None


def row_name(method: Method) -> str:
    """What a row is called beside pictures: a pretrained network is not called untrained."""
    if method.trained or method.members[0].settings.get("model.weights") is None:
        return method.name
    return f"{method.name.removesuffix(' (untrained)')}, {untrained_words(method.members[0])}"


def first_member(method: Method) -> Member:
    """The run of its first seed and fold."""
    return _ordered(method)[0]


def _ordered(method: Method) -> list[Member]:
    return sorted((m for m in method.members if m.done), key=lambda m: (m.seed, -1 if m.fold is None else m.fold))
