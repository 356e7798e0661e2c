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
from nearkin.analysis.over_runs import methods_of
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
MOST = 3000                         # images: every run has a matrix of images × images
K = 10
EMBEDDING = "embedding"
MEASURES = {"cka": "linear CKA", "overlap": f"overlap@{K}"}
NOTES = (
    "seeds: mean over pairs of runs of one method with two seeds; losses: mean over pairs of runs of two trained "
    "methods, with two seeds as well, so that the kinds of pairs differ in the method alone",
    "the interval of the difference is over test images, by leaving out groups of classes: what other images would "
    "give with these models; over losses: t interval of each method's own difference (they share runs: it is rough)",
)


@ANALYSES.register("similarity")
@dataclass(frozen=True)
class Similarity(Analysis):
    """Linear CKA and neighbour overlap of runs with each other, at the embedding and at each stage of the network.

    A stage is represented by its output averaged over the map, for test images of all classes alike; the embedding by
    the stored unit vectors. The measures, and what their interval means: `nearkin.analysis.alike`. Folds were tested on
    different images; the first is looked at.

    Parameters:
        runs: name, method, kind and seed of each of the R runs.
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
        members = _first_fold(gathered)
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
        runs = [{"name": f"{name}, seed {m.seed}", "method": name, "kind": kind, "seed": m.seed, "run": m.run.hash}
                for (name, kind), m in members]  # fmt: skip
        return similarity(runs, levels, labels, notes=notes, options={"images": images, "seed": seed}, seed=seed)

    @classmethod
    def of_files(cls, paths: Sequence[str | Path]) -> "Similarity":
        """Of anyone's embeddings of the same images: one .npz or .parquet file per network."""
        found = {str(path): embeddings_and_columns(path) for path in paths}
        sizes = {path: len(z) for path, (z, _, _) in found.items()}
        if len(set(sizes.values())) > 1:
            (first, n), (other, m) = next(iter(sizes.items())), next(s for s in sizes.items()
                                                                     if s[1] != next(iter(sizes.values())))  # fmt: skip
            raise NearkinError(f"{first} has {n} embeddings and {other} {m}: the same images are compared")
        if len(found) < 2:
            raise NearkinError(f"similarity compares embeddings: {len(found)} file is not enough")
        labels = next((own for _, own, _ in found.values() if own is not None), np.arange(next(iter(sizes.values()))))
        runs = [{"name": Path(path).stem, "method": Path(path).stem, "kind": "unknown", "seed": 0} for path in found]
        return similarity(runs, {EMBEDDING: [unit(z).numpy() for z, _, _ in found.values()]}, labels)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """For each level and measure: all pairs, the two kinds of pairs, and their difference."""
        levels = {level: {measure: self._told(level, measure) for measure in MEASURES} for level in self.alike}
        return {"images": self.images, "k": K, "runs": self.runs, "notes": self.notes, "levels": levels}

    def _told(self, level: str, measure: str) -> dict[str, Any]:
        alike = self.alike[level]
        matrix, left = getattr(alike, measure), getattr(alike, f"{measure}_left")
        within, between = self._pairs(True), self._pairs(False)
        means = [float(np.mean([matrix[p] for p in pairs])) if pairs else None for pairs in (within, between)]
        told: dict[str, Any] = {
            "seeds": _plain(means[0]), "losses": _plain(means[1]), "pairs": [len(within), len(between)],
            "difference": None, "low": None, "high": None, "over_losses": None,
            "matrix": [[_plain(v) for v in row] for row in matrix.tolist()],
        }  # fmt: skip
        if told["seeds"] is not None and told["losses"] is not None:
            told["difference"] = told["seeds"] - told["losses"]
            without = np.array([np.mean([g[p] for p in within]) - np.mean([g[p] for p in between]) for g in left])
            told["low"], told["high"] = jackknife(told["difference"], without)
            own = self._own_differences(matrix, within, between)
            if len(own) > 1:
                over = mean_interval(own)
                told["over_losses"] = {"mean": over.mean, "low": over.low, "high": over.high, "losses": over.n}
        return told

    def _pairs(self, same: bool) -> list[tuple[int, int]]:
        """Pairs of trained runs with two seeds: of one method, or of two."""
        runs = self.runs
        return [(i, j) for i in range(len(runs)) for j in range(i)
                if "untrained" not in (runs[i]["kind"], runs[j]["kind"]) and runs[i]["seed"] != runs[j]["seed"]
                and (runs[i]["method"] == runs[j]["method"]) == same]  # fmt: skip

    def _own_differences(self, matrix: np.ndarray, within: list[tuple[int, int]], between: list[tuple[int, int]]
                         ) -> list[float]:  # fmt: skip
        """Of each method: its pairs of seeds minus its pairs with other methods."""
        found = []
        for method in dict.fromkeys(run["method"] for run in self.runs):
            own, other = ([matrix[p] for p in pairs if method in (self.runs[p[0]]["method"], self.runs[p[1]]["method"])]
                          for pairs in (within, between))  # fmt: skip
            if own and other:
                found.append(float(np.mean(own) - np.mean(other)))
        return found

    def sheets(self) -> dict[str, Sheet]:
        """Levels; and the methods at the embedding."""
        header = ["level", "measure", "seeds", "losses", "difference", "95 % interval", "over losses"]
        rows = []
        for level, measures in self.summary["levels"].items():
            for measure, words in MEASURES.items():
                own = measures[measure]
                over = own["over_losses"]
                rows.append([level, words, _number(own["seeds"]), _number(own["losses"]), _number(own["difference"]),
                             _span(own["low"], own["high"]), "–" if over is None else _span(over["low"], over["high"])])
        notes = [f"{self.images:,} test images", *NOTES, *self.notes]
        found = {"levels": Sheet("Two seeds of one method against two methods", header, rows, 5, notes)}
        for measure, words in MEASURES.items():
            found[measure] = self._by_method(measure, f"{words} at the embedding, mean over pairs of runs")
        return found

    def _by_method(self, measure: str, title: str) -> Sheet:
        matrix = getattr(self.alike[EMBEDDING], measure)
        names = list(dict.fromkeys(run["method"] for run in self.runs))
        rows = []
        for a in names:
            cells = []
            for b in names:
                pairs = [matrix[i, j] for i, x in enumerate(self.runs) for j, y in enumerate(self.runs)
                         if x["seed"] != y["seed"] and x["method"] == a and y["method"] == b]  # fmt: skip
                cells.append(_number(_plain(float(np.mean(pairs))) if pairs else None))
            rows.append([a, *cells])
        notes = ["all pairs have two seeds; on the diagonal: of one method"]
        return Sheet(title, ["method", *names], rows, len(names), notes)

    def tables(self) -> dict[str, Table]:
        """One row per level and pair of runs."""
        rows = [[level, self.runs[i]["name"], self.runs[j]["name"], self.runs[i]["method"] == self.runs[j]["method"],
                 _plain(float(own.cka[i, j])), _plain(float(own.overlap[i, j]))]
                for level, own in self.alike.items() for i in range(len(self.runs)) for j in range(i)]  # fmt: skip
        return {"pairs": (["level", "run", "against", "same_method", "cka", "overlap"], rows)}

    def files(self) -> dict[str, Callable[[Path], Any]]:
        """All matrices, with groups left out; the levels, and the pairs at the embedding, as figures."""
        from nearkin.analysis import similarity_figures as figures

        arrays = {f"{level} {what}": getattr(own, what) for level, own in self.alike.items()
                  for what in ("cka", "overlap", "cka_left", "overlap_left")}  # fmt: skip
        names = [run["name"] for run in self.runs]
        return {
            "similarity.npz": lambda path: np.savez(path, **arrays),
            "similarity.png": lambda path: figures.levels(self.summary["levels"], MEASURES).savefig(path),
            "similarity_matrix.png": lambda path: figures.matrix(self.alike[EMBEDDING].cka, names).savefig(path),
        }


def similarity(
    runs: list[dict[str, Any]], levels: Mapping[str, Sequence[np.ndarray]], labels: np.ndarray, *, k: int = K,
    notes: list[str] | None = None, options: Mapping[str, Any] | None = None, seed: int = 0,
) -> Similarity:  # fmt: skip
    """Of representations in arrays.

    Parameters:
        runs: name, method, kind and seed of each of R runs.
        levels: level -> R arrays (N, C).
        labels: (N,) classes.
        k: neighbours.
        notes, options: stored with the numbers.
        seed: deals the classes into groups.
    """
    found = {level: compared(x, labels, k=min(k, len(labels) - 1), seed=seed)
             for level, x in track(levels.items(), "Similarity", len(levels))}  # fmt: skip
    return Similarity(runs, found, len(labels), notes or [], options or {})


def _first_fold(gathered: Gathered) -> list[tuple[tuple[str, str], Member]]:
    """Method's name and kind, and a run of it: all runs of the first fold."""
    members = [((method.name, method.kind), member) for method in methods_of(gathered) for member in method.members]
    if len(members) < 2:
        raise NearkinError(f"similarity compares runs: {len(members)} is not enough")
    fold = min((m.fold for _, m in members if m.fold is not None), default=None)
    return [(name, m) for name, m in members if m.fold == fold]


def _common_images(members: list[tuple[tuple[str, str], Member]], images: int | None, seed: int
                   ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
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
        raise NearkinError(f"{len(places)} images: at most {MOST}, for every run has a matrix of images × images; "
                           f"--images {IMAGES} takes some")  # fmt: skip
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


def _plain(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else value


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _span(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:+.3f} to {high:+.3f}"
