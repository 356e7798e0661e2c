"""Do two losses learn more different things than two seeds of one loss, and where in the network?"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from nearkin.analysis._alike import Alike, compared, jackknife, kept_features
from nearkin.analysis._over_runs import OVER_CLASSES, few_seeds, methods_of, one_fold
from nearkin.analysis.base import Analysis
from nearkin.analysis.embedded import embeddings_and_columns, rows_of, stratified, tested
from nearkin.comparison.gather import Gathered, Member
from nearkin.errors import NearkinError
from nearkin.numerics import unit
from nearkin.present import Chart, Column, Heatmap, Lines, Panels, Table, pivot
from nearkin.progress import track
from nearkin.registry import ANALYSES
from nearkin.statistics.intervals import cut, mean_interval
from nearkin.units import NUMBER

IMAGES = 1000
MOST = 3000  # images: every run has a matrix of images × images
K = 10
EMBEDDING = "embedding"
Cells = dict[tuple[str, str], list[tuple[int, int]]]  # two methods -> pairs of runs
MEASURES = {"cka": "linear CKA", "overlap": f"overlap@{K}"}
KINDS = {"seeds": "two seeds of one method", "losses": "two methods", "difference": "difference"}
NOTES = (
    "seeds: pairs of runs of one method with two seeds; losses: pairs of runs of two trained methods, with two seeds, "
    "too, so that the kinds of pairs differ in the method alone; every method counts once, however many seeds it has",
    "over losses: t interval of each method's own difference, three methods at least (they share runs: it is rough)",
)


@ANALYSES.register("similarity")
@dataclass(frozen=True)
class Similarity(Analysis):
    """Linear CKA and neighbour overlap of runs with each other, at the embedding and at each stage of the network.

    A stage is represented by its output averaged over the map, for test images of all classes alike; the embedding by
    the stored unit vectors. The measures, and what their interval means: `analysis/_alike.py`. Of several folds
    one is looked at, the first that all methods have.

    Parameters:
        runs: name, method, kind and seed of each of the R runs; the seed of a file is None: nothing is known of it.
        alike: level (a stage, embedding) -> all pairs of runs.
        images: how many were looked at.
        notes: what a reader must know.
        options: images (None: all) and seed.
    """

    together: ClassVar[bool] = True
    needs_pixels: ClassVar[bool] = True

    runs: list[dict[str, Any]]
    alike: dict[str, Alike]
    images: int
    notes: list[str] = field(default_factory=list)
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def between(cls, gathered: Gathered, *, images: int | None = IMAGES, seed: int = 0) -> "Similarity":
        """Of the tested runs of a study, or runs by name; features of the stages are kept with each run."""
        members = _of_one_fold(gathered)
        places, labels = _common_images(members, images, seed)
        levels: dict[str, list[np.ndarray]] = {}
        notes: list[str] = []
        stages = _common_stages(members, notes)
        for _, member in track(members, "Stages", len(members)):
            seen = tested(member.run)
            if stages:
                features = kept_features(member.run, rows_of(seen)[places])
                for stage in stages:
                    levels.setdefault(stage, []).append(features[stage])
            levels.setdefault(EMBEDDING, []).append(unit(seen.z[torch.from_numpy(places)].float()).numpy())
        runs = [
            {"name": f"{name}, seed {m.seed}", "method": name, "kind": kind, "seed": m.seed, "run": m.run.hash}
            for (name, kind), m in members
        ]
        return similarity(runs, levels, labels, notes=notes, options={"images": images, "seed": seed}, seed=seed)

    @classmethod
    def of_files(cls, paths: Sequence[str | Path]) -> "Similarity":
        """Of anyone's embeddings of the same images: one .npz or .parquet file per network."""
        files = {str(path): embeddings_and_columns(path) for path in paths}
        sizes = {path: len(z) for path, (z, _, _) in files.items()}
        first = next(iter(sizes), "")
        for other, size in sizes.items():
            if size != sizes[first]:
                raise NearkinError(
                    f"{first} has {sizes[first]} embeddings and {other} {size}: the same images are compared"
                )
        if len(files) < 2:
            raise NearkinError(f"similarity compares embeddings: {len(files)} file is not enough")
        labels = next((given for _, given, _ in files.values() if given is not None), None)
        notes = [] if labels is not None else ["the files have no labels: every image counts as a class of its own"]
        if labels is None:
            labels = np.arange(sizes[first])
        runs = [{"name": name, "method": name, "kind": "unknown", "seed": None} for name in short_names(list(files))]
        return similarity(runs, {EMBEDDING: [unit(z).numpy() for z, _, _ in files.values()]}, labels, notes=notes)

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """For each level and measure: all pairs, the two kinds of pairs, and their difference."""
        levels = {level: {measure: self._measured(level, measure) for measure in MEASURES} for level in self.alike}
        return {"images": self.images, "k": K, "runs": self.runs, "notes": self.notes, "levels": levels}

    def _measured(self, level: str, measure: str) -> dict[str, Any]:
        alike = self.alike[level]
        matrix, left = getattr(alike, measure), getattr(alike, f"{measure}_left")
        within, between = self._cells
        cell: dict[str, Any] = {
            "seeds": _mean(matrix, within),
            "losses": _mean(matrix, between),
            "pairs": [sum(map(len, cells.values())) for cells in (within, between)],
            "difference": None,
            "low": None,
            "high": None,
            "over_losses": None,
            "matrix": [[defined(v) for v in row] for row in matrix.tolist()],
        }
        if cell["seeds"] is not None and cell["losses"] is not None:
            cell["difference"] = cell["seeds"] - cell["losses"]
            without = np.array([[_mean(group, cells) for group in left] for cells in (within, between)], dtype=float)
            cell["low"], cell["high"] = jackknife(cell["difference"], without[0] - without[1])
            differences = self._differences(matrix)
            if len(differences) > 2:
                over = mean_interval(differences)
                cell["over_losses"] = {"mean": over.mean, "low": over.low, "high": over.high, "losses": over.n}
        return cell

    @property
    def of_runs(self) -> bool:
        """Is it of runs, whose seeds are known, and not of files?"""
        return self.runs[0]["seed"] is not None

    def two_seeds(self, i: int, j: int) -> bool:
        """Have two runs two seeds? Files have two origins."""
        return i != j and (not self.of_runs or self.runs[i]["seed"] != self.runs[j]["seed"])

    @cached_property
    def _cells(self) -> tuple[Cells, Cells]:
        """Pairs of trained runs with two seeds, by method: of one method, and of two. Once some methods have two seeds
        the others do not count, so that both kinds of pairs are of the same methods."""
        within: Cells = {}
        between: Cells = {}
        for i, first in enumerate(self.runs):
            for j, second in enumerate(self.runs[:i]):
                if "untrained" not in (first["kind"], second["kind"]) and self.two_seeds(i, j):
                    methods = (second["method"], first["method"])
                    cells = within if methods[0] == methods[1] else between
                    cells.setdefault(methods, []).append((i, j))
        seeded = {method for method, _ in within}
        if seeded:
            between = {methods: pairs for methods, pairs in between.items() if seeded.issuperset(methods)}
        return within, between

    def _differences(self, matrix: np.ndarray) -> list[float]:
        """Of each method: its pairs of seeds minus its pairs with other methods."""
        within, between = self._cells
        differences = []
        for method, _ in within:
            seeds = _mean(matrix, {(method, method): within[method, method]})
            others = _mean(matrix, {methods: pairs for methods, pairs in between.items() if method in methods})
            if seeds is not None and others is not None:
                differences.append(seeds - others)
        return differences

    @cached_property
    def tables(self) -> list[Table]:
        """Levels, and the methods at the embedding; of files every two of them. All pairs of runs."""
        first = [self._levels(), *(self._by_method(key) for key in MEASURES)] if self.of_runs else [self._files()]
        return [*first, self._pairs(), self._both_kinds()]

    def _levels(self) -> Table:
        rows = []
        for level, measures in self.numbers["levels"].items():
            for measure, words in MEASURES.items():
                cell, over = measures[measure], measures[measure]["over_losses"] or {"low": None, "high": None}
                values = [cell[key] for key in ("seeds", "losses", "difference", "low", "high")]
                rows.append([level, words, *values, over["low"], over["high"]])
        columns = [
            "level",
            "measure",
            *(Column(name, unit=NUMBER) for name in ("seeds", "losses")),
            Column("difference", unit=NUMBER, signed=True),
            Column("low", "95 % interval", NUMBER, signed=True, to="high"),
            Column("high", unit=NUMBER),
            Column("over_losses_low", "over losses", NUMBER, signed=True, to="over_losses_high"),
            Column("over_losses_high", unit=NUMBER),
        ]
        seeds = Counter(run["method"] for run in self.runs if run["kind"] != "untrained")
        notes = [f"{self.images:,} test images", *NOTES, OVER_CLASSES, *few_seeds(seeds.values()), *self.notes]
        return Table("levels", columns, rows, "Two seeds of one method against two methods", notes)

    def _by_method(self, measure: str) -> Table:
        """Methods by methods, at the embedding."""
        matrix = getattr(self.alike[EMBEDDING], measure)
        places: dict[str, list[int]] = {}
        for i, run in enumerate(self.runs):
            places.setdefault(run["method"], []).append(i)
        rows, same_seed = [], False
        for (first, here), (second, there) in product(places.items(), repeat=2):
            pairs = [(i, j) for i in here for j in there if self.two_seeds(i, j)]
            if not pairs and first != second:  # one seed alone, the same
                pairs, same_seed = list(product(here, there)), True
            rows.append([first, second, defined(float(np.mean([matrix[p] for p in pairs]))) if pairs else None])
        long = Table("", ["method", "against", Column(measure, unit=NUMBER)], rows)
        table = pivot(long, measure, down="method", across="against", value=measure)
        table.title = f"{MEASURES[measure]} at the embedding, mean over pairs of runs"
        table.notes = ["on the diagonal: two seeds of one method; a dash: there is one seed", _seeds_note(same_seed)]
        return table

    def _files(self) -> Table:
        """Every two files, with intervals over classes."""
        alike, rows = self.alike[EMBEDDING], []
        for (i, first), (j, second) in combinations(enumerate(self.runs), 2):
            cells = []
            for measure in MEASURES:
                value = defined(float(getattr(alike, measure)[i, j]))
                cells += [value, *_share_interval(value, getattr(alike, f"{measure}_left")[:, i, j])]
            rows.append([first["name"], second["name"], *cells])
        columns: list[Column | str] = ["file", "against"]
        for measure, words in MEASURES.items():
            ends: dict[str, Any] = {"to": f"{measure}_high", "star": f"{measure}_cut"}
            columns += [Column(measure, words, NUMBER), Column(f"{measure}_low", f"95 % of {words}", NUMBER, **ends)]
            columns += [Column(f"{measure}_high", unit=NUMBER), f"{measure}_cut"]
        notes = [f"{self.images:,} images", OVER_CLASSES, *self.notes]
        notes += ["* cut at the end of the range"] * any(row[5] or row[9] for row in rows)
        return Table("files", columns, rows, "Files of embeddings of the same images", notes)

    def _pairs(self) -> Table:
        """One row per level and ordered pair of runs, so that a matrix can be drawn of it."""
        count = range(len(self.runs))
        rows = [
            [level, self.runs[i]["name"], self.runs[j]["name"], self.runs[i]["method"] == self.runs[j]["method"]]
            + [defined(float(getattr(one, measure)[i, j])) for measure in MEASURES]
            for level, one in self.alike.items()
            for i in count
            for j in count
        ]
        values = [Column(measure, words, NUMBER) for measure, words in MEASURES.items()]
        return Table("pairs", ["level", "run", "against", "same_method", *values], rows, "Pairs of runs", detail=True)

    def _both_kinds(self) -> Table:
        """What the chart of the levels draws: one row per level, measure and kind of pairs."""
        rows: list[list[Any]] = []
        for level, measures in self.numbers["levels"].items():
            for measure, cell in measures.items():
                for key, words in KINDS.items():
                    ends = [cell["low"], cell["high"]] if key == "difference" else [None, None]
                    rows.append([level, measure, words, cell[key], *ends])
        ends = [Column(name, unit=NUMBER) for name in ("low", "high")]
        return Table("kinds", ["level", "measure", "pairs", Column("value", unit=NUMBER), *ends], rows, detail=True)

    @property
    def charts(self) -> list[Chart]:
        """The levels, and all pairs of runs at the embedding."""
        pairs, kinds = self.tables[-2:]
        difference: dict[str, Any] = {"only": {"pairs": KINDS["difference"]}, "low": "low", "high": "high", "line": 0.0}
        both: dict[str, Any] = {"only": {"pairs": [KINDS["seeds"], KINDS["losses"]]}, "by": "pairs"}
        panels: list[Chart] = []
        for what, title in ((both, "{}"), (difference, "{}: difference, 95 % interval over classes")):
            for measure, words in MEASURES.items():
                only = {**what["only"], "measure": measure}
                given = {**what, "only": only, "x": "level", "y": "value", "x_title": " ", "y_title": words}
                name = f"{measure}-{len(panels)}"
                panels.append(Lines(name=name, title=title.format(words), table=kinds, **given))
        values = [row["cka"] for row in pairs if row["level"] == EMBEDDING and row["cka"] is not None]
        matrix = Heatmap(
            name="matrix",
            title="Linear CKA at the embedding",
            table=pairs,
            x="against",
            y="run",
            value="cka",
            only={"level": EMBEDDING},
            band=[min(values, default=0.0), 1.0],
            alt="Linear CKA of every two runs at the embedding.",
        )
        alt = "How alike two seeds of one method are, and two methods, level by level, and the difference of the two."
        levels = Panels(name="levels", title="Two seeds against two methods", charts=panels, across=2, alt=alt)
        return [levels, matrix] if self.of_runs else [matrix]

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All matrices, also with groups of classes left out."""
        keys = ("cka", "overlap", "cka_left", "overlap_left")
        return {f"{level} {key}": getattr(one, key) for level, one in self.alike.items() for key in keys}


def similarity(
    runs: list[dict[str, Any]],
    levels: Mapping[str, Sequence[np.ndarray]],
    labels: np.ndarray,
    *,
    k: int = K,
    notes: list[str] | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Similarity:
    """Of representations in arrays.

    Parameters:
        runs: name, method, kind and seed of each of R runs; the seed of a file is None.
        levels: level -> R arrays (N, C).
        labels: (N,) classes.
        k: neighbours.
        notes, options: stored with the numbers.
        seed: deals the classes into groups.
    """
    alike = {
        level: compared(x, labels, k=min(k, len(labels) - 1), seed=seed)
        for level, x in track(levels.items(), "Similarity", len(levels))
    }
    return Similarity(runs, alike, len(labels), notes or [], options or {})


def short_names(paths: Sequence[str]) -> list[str]:
    """The ends of paths, without their suffixes, as long as they must be to differ; else the paths."""
    parts = [Path(path).with_suffix("").parts for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(path[-depth:]) for path in parts]
        if len(set(names)) == len(names):
            return names
    return list(paths)


def _of_one_fold(gathered: Gathered) -> list[tuple[tuple[str, str], Member]]:
    """Method's name and kind, and a run of it: all runs of one fold."""
    methods = one_fold(methods_of(gathered))
    members = [((method.name, method.kind), member) for method in methods for member in method.members]
    if len(members) < 2:
        raise NearkinError(f"similarity compares runs: {len(members)} is not enough")
    return members


def _common_images(
    members: list[tuple[tuple[str, str], Member]], images: int | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Places of the images among the test images, and their labels; all runs must have the same test images."""
    first = tested(members[0][1].run)
    for _, member in members[1:]:
        head, other = members[0][1].head, member.head
        if head["data_hash"] != other["data_hash"] or not first.same_images(tested(member.run)):
            raise NearkinError(
                f"runs {members[0][1].run.hash} and {member.run.hash} were tested on other images: representations of "
                "the same images are compared"
            )
    places = stratified(first.labels, images, seed)
    if len(places) > MOST:
        raise NearkinError(
            f"{len(places)} images: at most {MOST}, for every run has a matrix of images × images; "
            f"images={IMAGES} takes some of them"
        )
    return places, first.labels[places]


def _common_stages(members: list[tuple[tuple[str, str], Member]], notes: list[str]) -> tuple[str, ...]:
    """The stages of the network, when all runs have the same and see images of the same size."""
    networks = {m.settings["model.backbone"] for _, m in members}
    if len(networks) > 1:
        notes.append(f"stages are left out: the runs have different networks, {', '.join(sorted(networks))}")
        return ()
    sizes = {m.settings["data.size"]: m for _, m in members}
    if len(sizes) > 1:
        (a, first), (b, second) = list(sizes.items())[:2]
        raise NearkinError(
            f"run {first.run.hash} sees images of {a} pixels, run {second.run.hash} of {b}: the stages of their "
            "networks are not compared"
        )
    from nearkin.runs.embed import rebuild

    stages = list(rebuild(members[0][1].run.spec).backbone.stages)
    cuts = {str(m.settings["model.cut"]) for _, m in members}
    frozen = min(0 if cut == "none" else len(stages) if cut == "all" else 1 + stages.index(cut) for cut in cuts)
    if frozen:
        notes.append(f"stages up to {stages[frozen - 1]} are left out: they are frozen, the same in every run")
    return tuple(stages[frozen:])


def _mean(matrix: np.ndarray, cells: Cells) -> float | None:
    """The mean over pairs of runs of each cell, then over cells: a method counts once, however many seeds it has."""
    means = [np.mean([matrix[pair] for pair in pairs]) for pairs in cells.values()]
    return defined(float(np.mean(means))) if means else None


def defined(value: float | None) -> float | None:
    """A number; None where it is none."""
    return None if value is None or np.isnan(value) else value


def _share_interval(value: float | None, left: np.ndarray) -> tuple[float | None, float | None, bool]:
    """The interval of a share from those without each group of classes, and whether it is cut at 0 or 1."""
    low, high = (None, None) if value is None else jackknife(value, left)
    if low is None or high is None:
        return None, None, False
    ends = cut(low, high, (0.0, 1.0))
    return *ends, ends != (low, high)


def _seeds_note(same_seed: bool) -> str:
    if not same_seed:
        return "all pairs have two seeds"
    return (
        "some pairs have one seed, so the same first weights, which makes them alike; with several seeds all pairs "
        "have two"
    )
