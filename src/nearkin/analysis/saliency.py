"""Do losses look at the same pixels? Agreement of their saliency maps, beside that of two seeds of one loss."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise, product
from typing import Any, ClassVar

import numpy as np

from nearkin.analysis import _saliency_tables as shown
from nearkin.analysis._agreement import Aggregate, correlations, divergences, fisher, image_means, plain, to_z
from nearkin.analysis._measures import Measure, measure_of
from nearkin.analysis._over_runs import OneMethod, methods_of, one_fold
from nearkin.analysis._saliency_maps import COPIES, NOISE, maps_of
from nearkin.analysis.base import Analysis
from nearkin.analysis.embedded import loaded, stratified, test_images
from nearkin.comparison.gather import Gathered
from nearkin.errors import NearkinError
from nearkin.present import Chart, Table
from nearkin.progress import track
from nearkin.registry import ANALYSES
from nearkin.runs.prepare import Data

KINDS = ("ranking", "classification", "own", "untrained")
SHOWN = 6  # images of the panel
GROUPS = (
    "two seeds of one loss",
    "two ranking losses",
    "two classification losses",
    "ranking and classification",
    "trained and untrained",
)


@ANALYSES.register("saliency")
@dataclass(frozen=True)
class Saliency(Analysis):
    """Saliency maps of test images, and how far the maps of different losses agree.

        map          SmoothGrad of measure(f(x), f(black image)), the loss's own measure (analysis/_saliency_maps.py)
        correlation  Pearson r of two maps of one image; mean over images by Fisher's z, ± = tanh(std z)
        divergence   Jensen-Shannon divergence of the maps divided by their sums, in nats; mean ± std over images

    A cell of the tables is the mean over pairs of runs of the two methods, image by image, then over images; the
    diagonal is that of two seeds of one method, the yardstick that the published tables lack. Everywhere the two runs
    of a pair have two seeds: runs of one seed begin with the same weights, which makes their maps alike whatever the
    loss. Intervals are over images, those of one class as one unit: what images of other classes would give, these
    models only.

    Source: Kobs et al. 2021 (tables 1 to 5). Shapes: M runs, N images, H x W pixels.

    Parameters:
        methods: the methods with their runs, ranking losses first.
        data: the name of the data set.
        image_rows: (N,) rows of the images in the data set.
        classes: (N,) their classes.
        r: (N, M, M) correlations, NaN where a map is constant.
        jsd: (N, M, M) divergences in nats, NaN where a map is constant.
        maps: (M, SHOWN, H, W) maps of the images of the panel.
        pixels: (SHOWN, H, W, 3) uint8, these images; None where they are gone.
        options: images and seed.
    """

    together: ClassVar[bool] = True
    needs_pixels: ClassVar[bool] = True

    methods: list[OneMethod]
    data: str
    image_rows: np.ndarray  # (N,)
    classes: np.ndarray  # (N,)
    r: np.ndarray  # (N, M, M)
    jsd: np.ndarray  # (N, M, M)
    maps: np.ndarray  # (M, SHOWN, H, W)
    pixels: np.ndarray | None  # (SHOWN, H, W, 3)
    options: dict[str, Any]

    @classmethod
    def between(cls, gathered: Gathered, *, images: int | None = 200, seed: int = 0) -> "Saliency":
        """The maps of all tested runs; of several folds those of the first that all methods have.

        Parameters:
            gathered: the runs.
            images: how many test images, stratified by class; None: all.
            seed: of the choice of images and of the noise.
        """
        methods = methods_in_order(gathered)
        members = [member for method in methods for member in method.members]
        check_alike(members)
        known: dict[str, Data] = {}
        tested, labels = test_images(members[0].run, known)
        chosen = stratified(labels, images, seed)
        rows = tested[chosen]
        maps = []
        for i, member in enumerate(members, start=1):
            title = f"Saliency of run {i} of {len(members)}"
            maps.append(maps_of(member.run, rows, seed=seed, known=known, title=title))  # (N, H, W)
        r, jsd = [], []
        for n in track(range(len(rows)), "Comparing maps", len(rows)):
            of_image = np.stack([run[n].ravel() for run in maps])  # (M, P)
            r.append(correlations(of_image))
            jsd.append(divergences(of_image))
        examples = np.linspace(0, len(rows) - 1, min(SHOWN, len(rows))).astype(int)
        pixels = None
        with suppress(NearkinError):  # all maps were stored, the images are gone
            pixels = loaded(members[0].run, known=known).pixels.test(rows[examples]).permute(0, 2, 3, 1).numpy()
        return cls(
            methods,
            members[0].settings["data.name"],
            rows,
            labels[chosen],
            np.array(r),
            np.array(jsd),
            np.stack([run[examples] for run in maps]),
            pixels,
            {"images": images, "seed": seed},
        )

    # -- who is whose ---------------------------------------------------------------------------------------

    @cached_property
    def places(self) -> list[list[int]]:
        """The numbers of the runs of each method."""
        ends = np.cumsum([0, *(len(method.members) for method in self.methods)])
        return [list(range(a, b)) for a, b in pairwise(ends)]

    def pairs(self, i: int, j: int) -> list[tuple[int, int]]:
        """The pairs of runs of methods i and j that have two seeds; of two methods with one seed alone, that pair."""
        if i == j:
            return list(combinations(self.places[i], 2))
        pairs = list(product(self.places[i], self.places[j]))
        return [(a, b) for a, b in pairs if self.seeds[a] != self.seeds[b]] or pairs

    @cached_property
    def seeds(self) -> list[int]:
        """The seed of each run."""
        return [member.seed for method in self.methods for member in method.members]

    @property
    def same_seed(self) -> bool:
        """Are there methods whose only runs have one seed, the same?"""
        cells = [pairs for (i, j), pairs in self._cells().items() if i != j]
        return any(self.seeds[a] == self.seeds[b] for pairs in cells for a, b in pairs)

    def _values(self, matrix: np.ndarray, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
        return np.stack([matrix[:, a, b] for a, b in pairs], 1)  # (N, K)

    @cached_property
    def correlation(self) -> dict[tuple[int, int], Aggregate]:
        """Of methods i <= j, where there is a pair of runs."""
        return {(i, j): fisher(self._values(self.r, pairs), self.classes) for (i, j), pairs in self._cells().items()}

    @cached_property
    def divergence(self) -> dict[tuple[int, int], Aggregate]:
        """Of methods i <= j, where there is a pair of runs."""
        return {(i, j): plain(self._values(self.jsd, pairs), self.classes) for (i, j), pairs in self._cells().items()}

    def _cells(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        count = range(len(self.methods))
        return {(i, j): pairs for i in count for j in count if i <= j and (pairs := self.pairs(i, j))}

    @cached_property
    def by_group(self) -> dict[str, tuple[Aggregate, Aggregate, int]]:
        """Correlation, divergence and number of pairs of runs: of two seeds, of two losses of one kind or of two."""
        by_name: dict[str, list[tuple[int, int]]] = {name: [] for name in GROUPS}
        for (i, j), pairs in self._cells().items():
            kinds = {self.methods[i].kind, self.methods[j].kind}
            if i == j and self.methods[i].kind == "untrained":
                continue
            if i == j:
                name = GROUPS[0]
            elif "untrained" in kinds:
                name = GROUPS[4]
            elif len(kinds) == 2:
                name = GROUPS[3]
            else:
                name = GROUPS[2] if kinds == {"classification"} else GROUPS[1]
            if name != GROUPS[4] or len(kinds) == 2:  # not two untrained ones
                by_name[name] += pairs
        return {
            name: (
                fisher(self._values(self.r, pairs), self.classes),
                plain(self._values(self.jsd, pairs), self.classes),
                len(pairs),
            )
            for name, pairs in by_name.items()
            if pairs
        }

    @cached_property
    def beyond_seeds(self) -> dict[tuple[int, int], Aggregate]:
        """How much lower z of two methods is than z of two seeds of them (the mean of both where both have seeds)."""
        beyond = {}
        for (i, j), pairs in self._cells().items():
            seeds = [image_means(to_z(self._values(self.r, self.pairs(k, k)))) for k in (i, j) if self.pairs(k, k)]
            if i != j and seeds:
                between = image_means(to_z(self._values(self.r, pairs)))  # (N,)
                beyond[i, j] = plain(np.mean(seeds, 0) - between, self.classes)
        return beyond

    # -- what is shown --------------------------------------------------------------------------------------

    @property
    def measures(self) -> list[Measure]:
        """The measure of each method."""
        return [measure_of(method.members[0].settings) for method in self.methods]

    @property
    def numbers(self) -> dict[str, Any]:
        """Means with intervals for every pair of methods and for groups of them."""
        names = [method.name for method in self.methods]
        return {
            "data": self.data,
            "images": len(self.image_rows),
            "copies": COPIES,
            "noise": NOISE,
            "methods": [
                {
                    "name": g.name,
                    "kind": g.kind,
                    "measure": m.name,
                    "source": m.source,
                    "runs": [x.run.hash for x in g.members],
                }
                for g, m in zip(self.methods, self.measures, strict=True)
            ],
            "groups": {
                name: {"correlation": r.numbers(), "divergence": d.numbers(), "pairs_of_runs": n}
                for name, (r, d, n) in self.by_group.items()
            },
            "pairs": [
                {
                    "first": names[i],
                    "second": names[j],
                    "correlation": self.correlation[i, j].numbers(),
                    "divergence": self.divergence[i, j].numbers(),
                    "z_below_seeds": self.beyond_seeds[i, j].numbers() if (i, j) in self.beyond_seeds else None,
                }
                for i, j in self.correlation
            ],
        }

    @cached_property
    def tables(self) -> list[Table]:
        """Methods against methods, groups of pairs, and the published values beside ours."""
        return shown.tables(self)

    @property
    def charts(self) -> list[Chart]:
        """A panel of maps, and the two tables of methods against methods."""
        return shown.charts(self, self.tables[-1])

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The values of all images and pairs of runs."""
        runs = [member.run.hash for method in self.methods for member in method.members]
        both = {"r": self.r.astype(np.float32), "jsd": self.jsd.astype(np.float32)}
        return {"rows": self.image_rows, "classes": self.classes, "runs": np.array(runs), **both}


def methods_in_order(gathered: Gathered) -> list[OneMethod]:
    """The methods of tested runs, ranking losses first, untrained networks last; of several folds one."""
    methods = [
        replace(method, members=tuple(sorted(method.members, key=lambda member: member.seed)))
        for method in one_fold(methods_of(gathered))
    ]
    return sorted(methods, key=lambda method: KINDS.index(method.kind))


def check_alike(members: Sequence[Any]) -> None:
    """Refuse runs whose maps cannot be compared: other data, or images of another size."""
    first = members[0]
    for other in members[1:]:
        sizes = [member.settings["data.size"] for member in (first, other)]
        if sizes[0] != sizes[1]:
            raise NearkinError(
                f"run {first.run.hash} sees images of {sizes[0]} pixels and run {other.run.hash} of {sizes[1]}: maps "
                "of different sizes cannot be compared"
            )
        for what in ("data_hash", "split_hash"):
            if first.head[what] != other.head[what] and not (what == "split_hash" and _same_test(first, other)):
                raise NearkinError(
                    f"runs {first.run.hash} and {other.run.hash} were tested on different images: nothing to compare"
                )


def _same_test(first: Any, other: Any) -> bool:
    """Have two runs the same test images, although their splits differ, as those of folds do?"""
    return np.array_equal(test_images(first.run)[0], test_images(other.run)[0])
