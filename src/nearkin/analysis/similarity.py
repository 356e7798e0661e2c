"""Do two losses learn more different things than two seeds of one loss, and where in the network?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from nearkin.analysis.alike import Alike, compared, jackknife
from nearkin.analysis.base import Analysis, Table
from nearkin.analysis.embedded import stratified
from nearkin.analysis.over_runs import methods_of, one_fold
from nearkin.analysis.stages import kept_features
from nearkin.analysis.tested import embeddings_and_columns, rows_of, tested
from nearkin.comparison.gather import Gathered, Member
from nearkin.comparison.pages import Sheet
from nearkin.errors import NearkinError
from nearkin.numerics import unit
from nearkin.progress import track
from nearkin.registry import ANALYSES
from nearkin.statistics.intervals import mean_interval

IMAGES = 1000
MOST = 3000  # images: every run has a matrix of images × images
K = 10
EMBEDDING = "embedding"
Cells = dict[tuple[str, str], list[tuple[int, int]]]  # two methods -> pairs of runs
MEASURES = {"cka": "linear CKA", "overlap": f"overlap@{K}"}


@ANALYSES.register("similarity")
@dataclass(frozen=True)
class Similarity(Analysis):
    """Linear CKA and neighbour overlap of runs with each other, at the embedding and at each stage of the network.

    A stage is represented by its output averaged over the map, for test images of all classes alike; the embedding by
    the stored unit vectors. The measures, and what their interval means: `nearkin.analysis.alike`. Of several folds
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
        found = {str(path): embeddings_and_columns(path) for path in paths}
        sizes = {path: len(z) for path, (z, _, _) in found.items()}
        if len(set(sizes.values())) > 1:
            (first, n), (other, m) = (
                next(iter(sizes.items())),
                next(s for s in sizes.items() if s[1] != next(iter(sizes.values()))),
            )
            raise NearkinError(f"{first} has {n} embeddings and {other} {m}: the same images are compared")
        if len(found) < 2:
            raise NearkinError(f"similarity compares embeddings: {len(found)} file is not enough")
        labels = next((own for _, own, _ in found.values() if own is not None), None)
        notes = [] if labels is not None else ["the files have no labels: every image counts as a class of its own"]
        if labels is None:
            labels = np.arange(next(iter(sizes.values())))
        runs = [{"name": name, "method": name, "kind": "unknown", "seed": None} for name in short_names(list(found))]
        return similarity(runs, {EMBEDDING: [unit(z).numpy() for z, _, _ in found.values()]}, labels, notes=notes)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """For each level and measure: all pairs, the two kinds of pairs, and their difference."""
        levels = {level: {measure: self._told(level, measure) for measure in MEASURES} for level in self.alike}
        return {"images": self.images, "k": K, "runs": self.runs, "notes": self.notes, "levels": levels}

    def _told(self, level: str, measure: str) -> dict[str, Any]:
        alike = self.alike[level]
        matrix, left = getattr(alike, measure), getattr(alike, f"{measure}_left")
        within, between = self._cells
        told: dict[str, Any] = {
            "seeds": _mean(matrix, within),
            "losses": _mean(matrix, between),
            "pairs": [sum(map(len, cells.values())) for cells in (within, between)],
            "difference": None,
            "low": None,
            "high": None,
            "over_losses": None,
            "matrix": [[defined(v) for v in row] for row in matrix.tolist()],
        }
        if told["seeds"] is not None and told["losses"] is not None:
            told["difference"] = told["seeds"] - told["losses"]
            without = np.array([[_mean(group, cells) for group in left] for cells in (within, between)], dtype=float)
            told["low"], told["high"] = jackknife(told["difference"], without[0] - without[1])
            each = self._own_differences(matrix)
            if len(each) > 2:
                over = mean_interval(each)
                told["over_losses"] = {"mean": over.mean, "low": over.low, "high": over.high, "losses": over.n}
        return told

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

    def _own_differences(self, matrix: np.ndarray) -> list[float]:
        """Of each method: its pairs of seeds minus its pairs with other methods."""
        within, between = self._cells
        differences = []
        for method, _ in within:
            own = _mean(matrix, {(method, method): within[method, method]})
            other = _mean(matrix, {methods: pairs for methods, pairs in between.items() if method in methods})
            if own is not None and other is not None:
                differences.append(own - other)
        return differences

    def sheets(self) -> dict[str, Sheet]:
        """Levels, and the methods at the embedding; of files every two of them."""
        from nearkin.analysis import similarity_sheets as sheets

        return sheets.sheets(self)

    def tables(self) -> dict[str, Table]:
        """One row per level and pair of runs."""
        rows = [
            [
                level,
                self.runs[i]["name"],
                self.runs[j]["name"],
                self.runs[i]["method"] == self.runs[j]["method"],
                defined(float(own.cka[i, j])),
                defined(float(own.overlap[i, j])),
            ]
            for level, own in self.alike.items()
            for i in range(len(self.runs))
            for j in range(i)
        ]
        return {"pairs": (["level", "run", "against", "same_method", "cka", "overlap"], rows)}

    def files(self) -> dict[str, Callable[[Path], Any]]:
        """All matrices, with groups left out; the levels, and the pairs at the embedding, as figures."""
        from nearkin.analysis import similarity_figures as figures

        arrays = {
            f"{level} {what}": getattr(own, what)
            for level, own in self.alike.items()
            for what in ("cka", "overlap", "cka_left", "overlap_left")
        }
        names = [run["name"] for run in self.runs]
        return {
            "similarity.npz": lambda path: np.savez(path, **arrays),
            "similarity.png": lambda path: figures.levels(self.summary["levels"], MEASURES).savefig(path),
            "similarity_matrix.png": lambda path: figures.matrix(self.alike[EMBEDDING].cka, names).savefig(path),
        }


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
    found = {
        level: compared(x, labels, k=min(k, len(labels) - 1), seed=seed)
        for level, x in track(levels.items(), "Similarity", len(levels))
    }
    return Similarity(runs, found, len(labels), notes or [], options or {})


def short_names(paths: Sequence[str]) -> list[str]:
    """The ends of paths, without their suffixes, as long as they must be to differ; else the paths."""
    parts = [Path(path).with_suffix("").parts for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(each[-depth:]) for each in parts]
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
