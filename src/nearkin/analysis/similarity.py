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

from nearkin.analysis._alike import Alike, compared, defined, jackknife, share_interval
from nearkin.analysis._over_runs import (
    CUT,
    OVER_CLASSES,
    RunPairs,
    check_same_images,
    check_same_size,
    few_seeds,
    interval_columns,
    methods_of,
    one_fold,
)
from nearkin.analysis.base import Analysis
from nearkin.analysis.embedded import (
    embeddings_and_columns,
    rows_of,
    short_names,
    stored_stage_features,
    stratified,
    tested,
)
from nearkin.comparison.gather import Gathered, Member
from nearkin.comparison.method import UNTRAINED
from nearkin.errors import NearkinError
from nearkin.numerics import unit
from nearkin.present import Chart, Column, Heatmap, Lines, Panels, Table, pivot
from nearkin.progress import track
from nearkin.registry import ANALYSES
from nearkin.statistics.intervals import mean_interval
from nearkin.units import NUMBER

IMAGES = 1000
MOST = 3000  # images: every run has a matrix of images × images
K = 10
EMBEDDING = "embedding"
Cells = dict[tuple[str, str], list[tuple[int, int]]]  # two methods -> pairs of runs
MEASURES = {"cka": "linear CKA", "overlap": f"overlap@{K}"}
VALUES = [Column(measure, words, NUMBER) for measure, words in MEASURES.items()]
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
        methods = one_fold(methods_of(gathered))
        members = [member for method in methods for member in method.members]
        if len(members) < 2:
            raise NearkinError(f"similarity compares runs: {len(members)} is not enough")
        check_same_images(members)
        places, labels = _places(members[0], images, seed)
        levels: dict[str, list[np.ndarray]] = {}
        notes: list[str] = []
        stages = _common_stages(members, notes)
        for member in track(members, "Stages", len(members)):
            seen = tested(member.run)
            if stages:
                features = stored_stage_features(member.run, rows_of(seen)[places])
                for stage in stages:
                    levels.setdefault(stage, []).append(features[stage])
            levels.setdefault(EMBEDDING, []).append(unit(seen.z[torch.from_numpy(places)].float()).numpy())
        runs = [
            {
                "name": f"{one.name}, seed {m.seed}",
                "method": one.name,
                "kind": one.kind,
                "seed": m.seed,
                "run": m.run.hash,
            }
            for one in methods
            for m in one.members
        ]
        return similarity(runs, levels, labels, notes=notes, options={"images": images, "seed": seed}, seed=seed)

    @classmethod
    def of_files(cls, paths: Sequence[str | Path]) -> "Similarity":
        """Of anyone's embeddings of the same images: one .npz or .parquet file per network."""
        files = {str(path): embeddings_and_columns(path) for path in paths}
        if len(files) < 2:
            raise NearkinError(f"similarity compares embeddings: {len(files)} file is not enough")
        (first, (z, _, _)), *others = files.items()
        for other, (further, _, _) in others:
            if len(further) != len(z):
                raise NearkinError(
                    f"{first} has {len(z)} embeddings and {other} {len(further)}: the same images are compared"
                )
        labels = next((given for _, given, _ in files.values() if given is not None), None)
        notes = [] if labels is not None else ["the files have no labels: every image counts as a class of its own"]
        labels = np.arange(len(z)) if labels is None else labels
        runs = [{"name": name, "method": name, "kind": "unknown", "seed": None} for name in short_names(list(files))]
        return similarity(runs, {EMBEDDING: [unit(z).numpy() for z, _, _ in files.values()]}, labels, notes=notes)

    @cached_property
    def pairs(self) -> RunPairs:
        """Which runs are compared."""
        return RunPairs([run["method"] for run in self.runs], [run["seed"] for run in self.runs])

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """For each level and measure: all pairs, the two kinds of pairs, and their difference."""
        levels = {level: {measure: self._measured(level, measure) for measure in MEASURES} for level in self.alike}
        return {"images": self.images, "k": K, "runs": self.runs, "notes": self.notes, "levels": levels}

    def _measured(self, level: str, measure: str) -> dict[str, Any]:
        matrix, left = (getattr(self.alike[level], name) for name in (measure, f"{measure}_left"))
        seeds, losses = (_mean(matrix, cells) for cells in self._cells)
        cell: dict[str, Any] = {
            "seeds": seeds,
            "losses": losses,
            "pairs": [sum(map(len, cells.values())) for cells in self._cells],
            **dict.fromkeys(("difference", "low", "high", "over_losses")),
            "matrix": [[defined(v) for v in row] for row in matrix.tolist()],
        }
        if seeds is not None and losses is not None:
            cell["difference"] = seeds - losses
            without = np.array([[_mean(group, cells) for group in left] for cells in self._cells], dtype=float)
            cell["low"], cell["high"] = jackknife(cell["difference"], without[0] - without[1])
            differences = self._differences(matrix)
            if len(differences) > 2:
                over = mean_interval(differences)
                cell["over_losses"] = {"mean": over.mean, "low": over.low, "high": over.high, "losses": over.n}
        return cell

    @cached_property
    def _cells(self) -> tuple[Cells, Cells]:
        """Pairs of trained runs with two seeds, by method: of one method, and of two. Once some methods have two seeds
        the others do not count, so that both kinds of pairs are of the same methods."""
        trained = dict.fromkeys(run["method"] for run in self.runs if run["kind"] != UNTRAINED)
        within = {(m, m): pairs for m in trained if (pairs := self.pairs.with_two_seeds(m, m))}
        several = [method for method, _ in within] or list(trained)
        between = {both: self.pairs.with_two_seeds(*both) for both in combinations(several, 2)}
        return within, {both: pairs for both, pairs in between.items() if pairs}

    def _differences(self, matrix: np.ndarray) -> list[float]:
        """Of each method: its pairs of seeds minus its pairs with other methods."""
        within, between = self._cells
        differences = []
        for both, pairs in within.items():
            seeds = _mean(matrix, {both: pairs})
            others = _mean(matrix, {names: pairs for names, pairs in between.items() if both[0] in names})
            if seeds is not None and others is not None:
                differences.append(seeds - others)
        return differences

    @property
    def of_runs(self) -> bool:
        """Is it of runs, whose seeds are known, and not of files?"""
        return self.runs[0]["seed"] is not None

    @cached_property
    def tables(self) -> list[Table]:
        """Levels, and the methods at the embedding; of files every two of them. All pairs of runs."""
        first = [self._levels(), *(self._by_method(value) for value in VALUES)] if self.of_runs else [self._files()]
        return [*first, self._pairs(), self._both_kinds()]

    def _levels(self) -> Table:
        records = []
        for level, measures in self.numbers["levels"].items():
            for measure, cell in measures.items():
                over = {f"over_losses_{end}": (cell["over_losses"] or {}).get(end) for end in ("low", "high")}
                records.append({**cell, **over, "level": level, "measure": MEASURES[measure]})
        columns = [
            *("level", "measure"),
            *(Column(name, unit=NUMBER) for name in ("seeds", "losses")),
            Column("difference", unit=NUMBER, signed=True),
            *interval_columns(NUMBER, signed=True),
            *interval_columns(NUMBER, "over_losses_", "over losses", signed=True),
        ]
        seeds = Counter(run["method"] for run in self.runs if run["kind"] != UNTRAINED)
        notes = [f"{self.images:,} test images", *NOTES, OVER_CLASSES, *few_seeds(seeds.values()), *self.notes]
        return Table.of_records(
            "levels", columns, records, title="Two seeds of one method against two methods", notes=notes
        )

    def _by_method(self, value: Column) -> Table:
        """Methods by methods, at the embedding."""
        matrix = getattr(self.alike[EMBEDDING], value.name)
        rows = []
        for first, second in product(self.pairs.places, repeat=2):
            pairs = self.pairs.of(first, second)
            rows.append([first, second, _mean(matrix, {(first, second): pairs}) if pairs else None])
        long = Table("", ["method", "against", Column(value.name, unit=NUMBER)], rows)
        title = f"{value.heading} at the embedding, mean over pairs of runs"
        about: dict[str, Any] = {"title": title, "notes": self.pairs.notes}
        return pivot(long, value.name, down="method", across="against", value=value.name, **about)

    def _files(self) -> Table:
        """Every two files, with intervals over classes."""
        alike, records = self.alike[EMBEDDING], []
        for (i, first), (j, second) in combinations(enumerate(self.runs), 2):
            record = {"file": first["name"], "against": second["name"]}
            for measure in MEASURES:
                value = defined(float(getattr(alike, measure)[i, j]))
                ends = share_interval(value, getattr(alike, f"{measure}_left")[:, i, j])
                record |= {measure: value} | {f"{measure}_{key}": end for key, end in ends.items()}
            records.append(record)
        columns: list[Column | str] = ["file", "against"]
        for column in VALUES:
            columns += [column, *interval_columns(NUMBER, f"{column.name}_", f"95 % of {column.heading}", cut=True)]
        notes = [f"{self.images:,} images", OVER_CLASSES, *self.notes]
        notes += [CUT] * any(record[f"{measure}_cut"] for record in records for measure in MEASURES)
        return Table.of_records("files", columns, records, title="Files of embeddings of the same images", notes=notes)

    def _pairs(self) -> Table:
        """One row per level and ordered pair of runs, so that a matrix can be drawn of it."""
        rows = [
            [level, first["name"], second["name"], first["method"] == second["method"]]
            + [defined(float(getattr(alike, measure)[i, j])) for measure in MEASURES]
            for level, alike in self.alike.items()
            for (i, first), (j, second) in product(enumerate(self.runs), repeat=2)
        ]
        return Table("pairs", ["level", "run", "against", "same_method", *VALUES], rows, "Pairs of runs", detail=True)

    def _both_kinds(self) -> Table:
        """What the chart of the levels draws: one row per level, measure and kind of pairs."""
        rows = [
            [level, measure, words, cell[key], *([cell["low"], cell["high"]] if key == "difference" else [None, None])]
            for level, measures in self.numbers["levels"].items()
            for measure, cell in measures.items()
            for key, words in KINDS.items()
        ]
        numbers = [Column(name, unit=NUMBER) for name in ("value", "low", "high")]
        return Table("kinds", ["level", "measure", "pairs", *numbers], rows, detail=True)

    @property
    def charts(self) -> list[Chart]:
        """The levels, and all pairs of runs at the embedding."""
        pairs, kinds = self.tables[-2:]
        values = [row["cka"] for row in pairs if row["level"] == EMBEDDING and row["cka"] is not None]
        axes: dict[str, Any] = {"x": "against", "y": "run", "value": "cka", "band": [min(values, default=0.0), 1.0]}
        axes |= {"title": "Linear CKA at the embedding", "alt": "Linear CKA of every two runs at the embedding."}
        matrix = Heatmap(name="matrix", table=pairs, only={"level": EMBEDDING}, **axes)
        if not self.of_runs:
            return [matrix]
        both: dict[str, Any] = {"by": "pairs"}
        difference: dict[str, Any] = {"low": "low", "high": "high", "line": 0.0}
        panels: list[Chart] = []
        for names, more, title in (
            (("seeds", "losses"), both, "{}"),
            (("difference",), difference, "{}: difference, 95 % interval over classes"),
        ):
            for measure, words in MEASURES.items():
                only = {"pairs": [KINDS[name] for name in names], "measure": measure}
                axes = {"x": "level", "y": "value", "x_title": " ", "y_title": words, "only": only, **more}
                name = f"{measure}-{len(panels)}"
                panels.append(Lines(name=name, title=title.format(words), table=kinds, **axes))
        alt = "How alike two seeds of one method are, and two methods, level by level, and the difference of the two."
        return [Panels(name="levels", title="Two seeds against two methods", charts=panels, across=2, alt=alt), matrix]

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All matrices, also with groups of classes left out."""
        keys = ("cka", "overlap", "cka_left", "overlap_left")
        return {f"{level} {key}": getattr(alike, key) for level, alike in self.alike.items() for key in keys}


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
    """Of representations in arrays: level -> R arrays (N, C), with the N classes of the images, which `seed` deals into
    groups. `k` neighbours are looked at; runs, notes and options are those of `Similarity`."""
    alike = {
        level: compared(x, labels, k=min(k, len(labels) - 1), seed=seed)
        for level, x in track(levels.items(), "Similarity", len(levels))
    }
    return Similarity(runs, alike, len(labels), notes or [], options or {})


def _places(member: Member, images: int | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of the images among the test images, and their labels."""
    labels = tested(member.run).labels
    places = stratified(labels, images, seed)
    if len(places) > MOST:
        raise NearkinError(
            f"{len(places)} images: at most {MOST}, for every run has a matrix of images × images; "
            f"images={IMAGES} takes some of them"
        )
    return places, labels[places]


def _common_stages(members: list[Member], notes: list[str]) -> tuple[str, ...]:
    """The stages of the network, when all runs have the same and see images of the same size."""
    networks = sorted({member.settings["model.backbone"] for member in members})
    if len(networks) > 1:
        notes.append(f"stages are left out: the runs have different networks, {', '.join(networks)}")
        return ()
    check_same_size(members, "stages of networks")
    from nearkin.runs.embed import rebuild

    stages = list(rebuild(members[0].run.spec).backbone.stages)
    cuts = {str(member.settings["model.cut"]) for member in members}
    frozen = min(0 if cut == "none" else len(stages) if cut == "all" else 1 + stages.index(cut) for cut in cuts)
    if frozen:
        notes.append(f"stages up to {stages[frozen - 1]} are left out: they are frozen, the same in every run")
    return tuple(stages[frozen:])


def _mean(matrix: np.ndarray, cells: Cells) -> float | None:
    """The mean over pairs of runs of each cell, then over cells: a method counts once, however many seeds it has."""
    means = [np.mean([matrix[pair] for pair in pairs]) for pairs in cells.values()]
    return defined(float(np.mean(means))) if means else None
