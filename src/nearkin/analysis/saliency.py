"""Do losses look at the same pixels? Agreement of their saliency maps, beside that of two seeds of one loss."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import fill
from typing import Any, ClassVar

import numpy as np

from nearkin.analysis import _saliency_tables as sheets
from nearkin.analysis._alike import Aggregate, correlations, divergences, fisher, image_means, plain, to_z
from nearkin.analysis._over_runs import OneMethod, RunPairs, check_same_images, check_same_size, methods_of, one_fold
from nearkin.analysis._saliency_maps import COPIES, NOISE, Measure, maps_of, measure_of
from nearkin.analysis.base import Analysis
from nearkin.analysis.embedded import loaded, stratified, test_images
from nearkin.comparison.gather import Gathered
from nearkin.errors import NearkinError
from nearkin.present import Chart, Heatmap, Pictures, Table, coloured
from nearkin.progress import track
from nearkin.registry import ANALYSES
from nearkin.runs.prepare import Data

KINDS = ("ranking", "classification", "own", "untrained")
SHOWN = 6  # images of the panel
SIDE_BY_SIDE = 16  # methods in a row of the panel; further ones stand in rows below
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
    image_rows: np.ndarray
    classes: np.ndarray
    r: np.ndarray
    jsd: np.ndarray
    maps: np.ndarray
    pixels: np.ndarray | None
    options: dict[str, Any]

    @classmethod
    def between(cls, gathered: Gathered, *, images: int | None = 200, seed: int = 0) -> "Saliency":
        """The maps of all tested runs; of several folds those of the first that all methods have.

        Parameters:
            gathered: the runs.
            images: how many test images, stratified by class; None: all.
            seed: of the choice of images and of the noise.
        """
        methods = [
            replace(method, members=tuple(sorted(method.members, key=lambda member: member.seed)))
            for method in sorted(one_fold(methods_of(gathered)), key=lambda method: KINDS.index(method.kind))
        ]
        members = [member for method in methods for member in method.members]
        check_same_size(members, "maps")
        check_same_images(members)
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
        data, examples_of = members[0].settings["data.name"], np.stack([run[examples] for run in maps])
        options = {"images": images, "seed": seed}
        return cls(methods, data, rows, labels[chosen], np.array(r), np.array(jsd), examples_of, pixels, options)

    @cached_property
    def pairs(self) -> RunPairs:
        """Which runs are compared."""
        runs = [(method.name, member.seed) for method in self.methods for member in method.members]
        return RunPairs([name for name, _ in runs], [seed for _, seed in runs])

    def _of(self, matrix: np.ndarray, pairs: list[tuple[int, int]]) -> np.ndarray:
        """(N, K) values of K pairs of runs."""
        return np.stack([matrix[:, a, b] for a, b in pairs], 1)

    def _correlation(self, pairs: list[tuple[int, int]]) -> Aggregate:
        return fisher(self._of(self.r, pairs), self.classes)

    def _divergence(self, pairs: list[tuple[int, int]]) -> Aggregate:
        return plain(self._of(self.jsd, pairs), self.classes)

    @cached_property
    def correlation(self) -> dict[tuple[str, str], Aggregate]:
        """Of every two methods, and of each with itself, where there is a pair of runs."""
        return {names: self._correlation(pairs) for names, pairs in self.pairs.cells.items()}

    @cached_property
    def divergence(self) -> dict[tuple[str, str], Aggregate]:
        """The same."""
        return {names: self._divergence(pairs) for names, pairs in self.pairs.cells.items()}

    @cached_property
    def by_group(self) -> dict[str, tuple[Aggregate, Aggregate, int]]:
        """Correlation, divergence and number of pairs of runs: of two seeds, of two losses of one kind or of two."""
        groups: dict[str, list[tuple[int, int]]] = {name: [] for name in GROUPS}
        kinds = {method.name: method.kind for method in self.methods}
        for (first, second), pairs in self.pairs.cells.items():
            both = {kinds[first], kinds[second]}
            if both != {"untrained"}:
                groups[_group(both, first == second)] += pairs
        return {
            name: (self._correlation(pairs), self._divergence(pairs), len(pairs))
            for name, pairs in groups.items()
            if pairs
        }

    @cached_property
    def beyond_seeds(self) -> dict[tuple[str, str], Aggregate]:
        """How much lower z of two methods is than z of two seeds of them (the mean of both where both have seeds)."""
        z = {names: image_means(to_z(self._of(self.r, pairs))) for names, pairs in self.pairs.cells.items()}  # (N,)
        beyond = {}
        for names, between in z.items():
            seeds = [z[name, name] for name in names if (name, name) in z]
            if names[0] != names[1] and seeds:
                beyond[names] = plain(np.mean(seeds, 0) - between, self.classes)
        return beyond

    @property
    def measures(self) -> list[Measure]:
        """The measure of each method."""
        return [measure_of(method.members[0].settings) for method in self.methods]

    @property
    def numbers(self) -> dict[str, Any]:
        """Means with intervals for every pair of methods and for groups of them."""
        return {
            "data": self.data,
            "images": len(self.image_rows),
            "copies": COPIES,
            "noise": NOISE,
            "methods": [
                {"name": method.name, "kind": method.kind, "measure": measure.name, "source": measure.source}
                | {"runs": [member.run.hash for member in method.members]}
                for method, measure in zip(self.methods, self.measures, strict=True)
            ],
            "groups": {
                name: {"correlation": r.numbers(), "divergence": d.numbers(), "pairs_of_runs": n}
                for name, (r, d, n) in self.by_group.items()
            },
            "pairs": [
                {"first": names[0], "second": names[1], "correlation": one.numbers()}
                | {"divergence": self.divergence[names].numbers()}
                | {"z_below_seeds": self.beyond_seeds[names].numbers() if names in self.beyond_seeds else None}
                for names, one in self.correlation.items()
            ],
        }

    @cached_property
    def tables(self) -> list[Table]:
        """Methods against methods, groups of pairs, and the published values beside ours."""
        return sheets.tables(self)

    @property
    def charts(self) -> list[Chart]:
        """A panel of maps, and, of several runs, correlation and divergence of methods against methods."""
        cells, charts = self.tables[-1], [self._panel()]
        axes: dict[str, Any] = {"table": cells, "x": "second", "y": "first"}
        for name, value, title in (
            ("correlation", "r", "Pearson correlation of saliency maps, %"),
            ("divergence", "jsd", "Jensen-Shannon divergence of saliency maps, nats x 100"),
        ):
            values = [row[value] for row in cells if row[value] is not None]
            if len(self.pairs.seeds) > 1 and values:
                low, high = (
                    (min(values), max(values)) if min(values) >= 0 else (-max(map(abs, values)), max(map(abs, values)))
                )
                alt = f"{title}, methods against methods; the diagonal is that of two seeds of one method."
                charts.append(Heatmap(name=name, title=title, value=value, band=[low, high], alt=alt, **axes))
        return charts

    def _panel(self) -> Chart:
        """Some images, and the maps of the first run of every method."""
        first = [(name, runs[0]) for name, runs in self.pairs.places.items()]
        images: list[list[Any]] = []
        captions: list[list[str]] = []
        for methods in (first[at : at + SIDE_BY_SIDE] for at in range(0, len(first), SIDE_BY_SIDE)):
            for image in range(self.maps.shape[1]):
                pixels = [] if self.pixels is None else [self.pixels[image]]
                maps = [coloured(self.maps[run, image], "magma", 0, 1) for _, run in methods]
                names = ["image"] * len(pixels) + [fill(name.replace("_", " "), 12) for name, _ in methods]
                images.append([*pixels, *maps])
                captions.append(names if image == 0 else [])
        alt = "Test images, and what moves their embedding, for the first run of every method: bright pixels move it."
        return Pictures(name="panel", title="Saliency maps", images=images, captions=captions, alt=alt)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The values of all images and pairs of runs."""
        runs = [member.run.hash for method in self.methods for member in method.members]
        both = {"r": self.r.astype(np.float32), "jsd": self.jsd.astype(np.float32)}
        return {"rows": self.image_rows, "classes": self.classes, "runs": np.array(runs), **both}


def _group(kinds: set[str], one_method: bool) -> str:
    """Which of GROUPS a pair of methods of these kinds belongs to."""
    if one_method:
        return GROUPS[0]
    if "untrained" in kinds:
        return GROUPS[4]
    return GROUPS[3] if len(kinds) == 2 else GROUPS[2] if kinds == {"classification"} else GROUPS[1]
