"""What else than the class do neighbours share? Properties of images in the embeddings of a run, and of all runs of a
study, ranking against classification losses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from nearkin.analysis._nr_precision import BAR, SHUFFLES, Categories, Shared, beyond, categories, nr_precision, shuffled
from nearkin.analysis._over_runs import OfStudy, OneMethod, methods_of, of_each_run, several_data_sets
from nearkin.analysis.base import Analysis, stored_with_run
from nearkin.analysis.embedded import one_file, table_of, tested
from nearkin.comparison.gather import Gathered
from nearkin.comparison.verdicts import FEW
from nearkin.errors import NearkinError
from nearkin.present import Bars, Chart, Column, Heatmap, Table, pivot
from nearkin.progress import bar
from nearkin.registry import ANALYSES
from nearkin.runs.store import Run
from nearkin.statistics.groups import groups
from nearkin.statistics.paired import holm
from nearkin.statistics.unit import LEAST_SEEDS, Nothing, Row, common
from nearkin.units import COUNT, NUMBER, SHARE, P, counted

CLASS = "class"
WHAT_IT_SAYS = (
    f"a normalised R-precision of at least {BAR} is marked *, as published: that is far beyond chance; it is no size "
    "of an effect, for it grows with the number of images of a value: R-precision beside p, what chance has, is one",
    f"by class: the same when the property is shuffled within each class ({SHUFFLES} times), what comes with the class "
    "alone; † marks a value outside the 99 % prediction interval of these: neighbours share the property, if only a "
    "little, these models only",
)


@ANALYSES.register("properties")
@dataclass(frozen=True)
class Properties(Analysis):
    """Normalised R-precision of every property of the test images: is it in the embeddings?

    Properties are the columns of the data set (for glyphs all that was drawn at random: face, size, rotation, ...; for
    csv every further column) and, as a yardstick, the class. Numbers are put into 10 bins of equally many images. What
    the figure means and what not: `nr_precision` of analysis/_nr_precision.py.

    Source: Kobs et al., section on the object level.

    Parameters:
        measured: the numbers of every property, the columns that are none and why.
        values: property -> (Q,) normalised R-precision of every query, NaN where it is undefined.
    """

    measured: dict[str, Any]
    values: dict[str, np.ndarray]

    @classmethod
    def of(cls, run: Run) -> "Properties":
        """Of the test images of a run, from its stored embeddings and the columns of its data set."""
        if (known := stored_with_run(cls, run, {})) is not None:
            return cls(*known)
        seen = tested(run)
        table, places = table_of(run, seen)
        columns = {name: column for name, column in table.columns.items() if name != "split"}
        if not columns:
            raise NearkinError(
                f"run {run.hash}: {table.name} tells nothing of its images but their class; properties are the further "
                "columns of a data set such as csv or glyphs"
            )
        return properties(seen.z, columns, seen.labels, roles=seen.roles, places=places)

    @classmethod
    def of_files(cls, paths: Sequence[str | Path]) -> "Properties":
        """Of anyone's embeddings: one .npz or .parquet file in which every further array of N values is a property."""
        z, labels, columns = one_file(cls.name, paths)
        if not columns:
            raise NearkinError(f"{paths[0]} has no property: no further column of {len(z)} values")
        return properties(z, columns, labels)

    @classmethod
    def between(cls, gathered: Gathered) -> "PropertiesOfStudy":
        """Of all tested runs of a study, and ranking against classification losses."""
        runs = of_each_run(cls, gathered)
        return PropertiesOfStudy(methods_of(gathered), {name: run.numbers for name, run in runs.items()})

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers of every property, and which columns are none."""
        return self.measured

    @cached_property
    def tables(self) -> list[Table]:
        """One row per property, the strongest first; beside it what the class alone gives."""
        measured = sorted(self.measured["properties"].items(), key=lambda item: -item[1]["nr_precision"])
        records = []
        for name, one in measured:
            has = f"{one['categories']} {'bins' if one['edges'] else 'values'}"
            records.append({"property": name, "has": has, "marks": marks(one), **one})
        columns = [
            *("property", "has"),
            Column("share", "p", SHARE, digits=1, about="what chance has"),
            Column("precision", "R-precision", SHARE, digits=1),
            Column("nr_precision", "normalised", NUMBER, digits=2, star="marks"),
            Column("by_class", "by class", NUMBER, digits=2, plus_minus="by_class_std"),
            Column("by_class_std", unit=NUMBER),
            Column("queries", unit=COUNT),
            Column("categories", unit=COUNT),
            "marks",
        ]
        notes = [*WHAT_IT_SAYS, *(f"{name} is left out: {why}" for name, why in self.measured["left_out"].items())]
        table = Table.of_records("all", columns, records, title="Properties that neighbours share", notes=notes)
        kinds = {"as they are": "nr_precision", "shuffled within classes": "by_class"}
        both = [[name, kind, one[key]] for name, one in measured for kind, key in kinds.items()]
        value = Column("value", "normalised R-precision", NUMBER, digits=2)
        return [table, Table("bars", ["property", "values", value], both, detail=True)]

    @property
    def charts(self) -> list[Chart]:
        """Every property beside what the class alone would bring; a line at the bar of significance."""
        alt = f"Normalised R-precision of every property: by chance 0, beyond the dotted line ({BAR}) no chance."
        axes: dict[str, Any] = {"x": "property", "y": "value", "by": "values", "lying": True, "line": BAR}
        title = "Normalised R-precision of properties"
        return [Bars(name="bars", title=title, table=self.tables[1], alt=alt, **axes)]

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The value of every query."""
        return self.values


def properties(
    z: Tensor,
    columns: Mapping[str, np.ndarray],
    labels: np.ndarray | None,
    *,
    roles: np.ndarray | None = None,
    places: np.ndarray | None = None,
) -> Properties:
    """The properties in `columns` of N embeddings.

    Parameters:
        z: (N, D) embeddings.
        columns: name -> one value per image.
        labels: (N,) classes; None: not known.
        roles: (N,) query, gallery or both; None: all are both.
        places: (N,) where the embeddings stand in the columns, whose bins are those of all their values; None: columns
            have N values.
    """
    places = np.arange(len(z)) if places is None else places
    by_name: dict[str, Categories] = {}
    left_out: dict[str, str] = {}
    if labels is not None:
        classes = np.full(int(places.max()) + 1, "", dtype=np.asarray(labels).astype(str).dtype)
        classes[places] = np.asarray(labels).astype(str)  # empty where no embedding stands
        columns = {CLASS: classes, **columns}
    for name, column in columns.items():
        whole = categories(name, column)
        here = whole if isinstance(whole, str) else categories(name, np.asarray(column)[places])
        if isinstance(whole, str) or isinstance(here, str):
            left_out[name] = str(here)
        else:
            by_name[name] = Categories(whole.codes[places], whole.names, whole.edges)
    if not set(by_name) - {CLASS}:
        raise NearkinError(f"no property is left: {'; '.join(f'{name}: {why}' for name, why in left_out.items())}")
    random = np.random.default_rng(0)
    codes: dict[tuple[str, int], np.ndarray] = {(name, 0): one.codes for name, one in by_name.items()}
    for name, one in by_name.items():
        if labels is not None and name != CLASS:
            codes |= {(name, i): shuffled(one.codes, labels, random) for i in range(1, SHUFFLES + 1)}
    with bar("Neighbours") as advance:
        shared = nr_precision(z.to(torch.float32), codes, roles=roles, progress=advance)
    numbers = {}
    for name, one in by_name.items():
        means = [shared[name, i].mean for i in range(1, SHUFFLES + 1) if (name, i) in shared]
        numbers[name] = _numbers(shared[name, 0], one, means)
    values = {name: shared[name, 0].values.astype(np.float32) for name in by_name}
    return Properties({"bar": BAR, "properties": numbers, "left_out": left_out}, values)


def _numbers(shared: Shared, of: Categories, shuffles: list[float]) -> dict[str, Any]:
    mean, std = (float(np.mean(shuffles)), float(np.std(shuffles, ddof=1))) if shuffles else (None, None)
    return {
        "nr_precision": shared.mean,
        "significant": shared.mean >= BAR,
        "precision": shared.over_queries(shared.precisions),
        "share": shared.over_queries(shared.shares),
        "queries": shared.queries,
        "categories": len(of.names),
        "edges": None if of.edges is None else of.edges.tolist(),
        "by_class": mean,
        "by_class_std": std,
        "beyond_class": None if mean is None or std is None else beyond(shared.mean, mean, std),
    }


def marks(one: Mapping[str, Any]) -> str:
    """* above the published bar, † beyond what comes with the class."""
    return "*" * bool(one["significant"]) + "†" * bool(one.get("beyond_class"))


# -- of a study --------------------------------------------------------------------------------------------------------


class PropertiesOfStudy(OfStudy):
    """The properties of all runs of a study; `runs` are their numbers."""

    name = "properties"
    version = Properties.version

    def in_run(self, run: str, name: str) -> Mapping[str, Any]:
        """The numbers of a property in a run; empty where it has none."""
        return self.runs[run]["properties"].get(name, {})

    def row(self, method: OneMethod, name: str) -> Row:
        """The normalised R-precision of a property in the runs of a method, on the unit of comparison."""
        return method.row(lambda member: self.in_run(member.run.hash, name).get("nr_precision"))

    @cached_property
    def names(self) -> list[str]:
        """All properties."""
        return list(dict.fromkeys(name for run in self.runs.values() for name in run["properties"]))

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """Every method's mean and seeds, and the two kinds of losses against each other."""
        methods: dict[str, Any] = {m.name: {"kind": m.kind, "properties": {}} for m in self.methods}
        for method in self.methods:
            for name in self.names:
                if seeds := self.row(method, name).values:
                    mean = float(np.mean(list(seeds.values())))
                    beyond_class = (self.in_run(m.run.hash, name).get("beyond_class") for m in method.members)
                    methods[method.name]["properties"][name] = {
                        "mean": mean,
                        "seeds": {str(seed): value for seed, value in seeds.items()},
                        "significant": mean >= BAR,
                        "beyond_class": all(map(bool, beyond_class)),
                    }
        return {"bar": BAR, "methods": methods, "kinds": self._kinds()}

    def _kinds(self) -> dict[str, Any]:
        """Ranking against classification losses on the seeds and folds that all of them have: the Mann-Whitney test
        over losses, and, as published, over losses × seeds. No test over losses below three seeds."""
        if several_data_sets(self.methods):
            return {}
        kinds: dict[str, Any] = {}
        for name in self.names:
            rows = [(method.kind, self.row(method, name)) for method in self.methods]
            first, second = (
                [row for of, row in rows if of == kind and row.members] for kind in ("ranking", "classification")
            )
            if first and second:
                kinds[name] = _against(first, second)
        tested = [one for one in kinds.values() if one["p_losses"] is not None]
        for one, p in zip(tested, holm([one["p_losses"] for one in tested]).tolist(), strict=True):
            one["p_losses_holm"] = p
        return kinds

    @cached_property
    def tables(self) -> list[Table]:
        """Methods by properties; the kinds of losses; one row per method and property, and per seed."""
        means, seeds = [], []
        for name, method in self.numbers["methods"].items():
            for label, one in method["properties"].items():
                about = {"method": name, "kind": method["kind"], "property": label, "marks": marks(one)}
                means.append(about | one)
                seeds += [about | {"seed": int(s), "nr_precision": value} for s, value in one["seeds"].items()]
        columns: list[Column | str] = ["method", "kind", "property"]
        value = Column("mean", "normalised R-precision", NUMBER, digits=2, star="marks")
        long = Table.of_records("means", [*columns, value, "marks", "significant", "beyond_class"], means, detail=True)
        columns = [*columns, "seed", Column("nr_precision", unit=NUMBER)]
        by_seed = Table.of_records("all", columns, seeds, title="Seeds", detail=True)
        table = pivot(long, "methods", down="method", across="property", value="mean", along=["kind"])
        table.title = "Normalised R-precision of properties, mean over seeds that have all folds"
        table.notes = [*WHAT_IT_SAYS, "a method is marked † when all its runs are", *several_data_sets(self.methods)]
        kinds = self.numbers["kinds"]
        return [table, *([_kinds_table(kinds)] if kinds else []), long, by_seed]

    @property
    def charts(self) -> list[Chart]:
        """Methods by properties."""
        axes: dict[str, Any] = {"x": "property", "y": "method", "value": "mean", "band": [-4 * BAR, 4 * BAR]}
        alt = f"Normalised R-precision, methods by properties; chance is 0, beyond {BAR} it is not chance."
        title = "Normalised R-precision of properties"
        return [Heatmap(name="methods", title=title, table=self.tables[-2], alt=alt, **axes)]


def _against(first: Sequence[Row], second: Sequence[Row]) -> dict[str, Any]:
    """Two groups of rows on what all have in common."""
    numbers: dict[str, Any] = {"ranking": None, "classification": None, "losses": [len(first), len(second)], "seeds": 0}
    numbers |= {"p": None, "p_losses": None, "p_losses_holm": None, "why": None}
    shared, compared = common([*first, *second]), groups(first, second)
    if isinstance(shared, Nothing) or isinstance(compared, Nothing):
        return numbers | {"why": shared.reason if isinstance(shared, Nothing) else None}
    a, b = np.split(shared.values, [len(first)])  # (k, S), (k', S)
    return numbers | {
        "ranking": float(a.mean()),
        "classification": float(b.mean()),
        "seeds": len(shared.seeds),
        "p": float(stats.mannwhitneyu(a.ravel(), b.ravel(), alternative="two-sided").pvalue),
        "p_losses": compared.p_methods if len(shared.seeds) >= LEAST_SEEDS else None,
    }


def _kinds_table(kinds: Mapping[str, Mapping[str, Any]]) -> Table:
    """Properties by kind of loss."""
    columns = [
        "property",
        Column("seeds", unit=COUNT),
        Column("ranking", unit=NUMBER, digits=2),
        Column("classification", unit=NUMBER, digits=2),
        Column("p_losses", "p (losses)", P),
        Column("p_losses_holm", "p (Holm)", P),
        Column("p", "as published: p", P),
    ]
    tested = sum(one["p_losses"] is not None for one in kinds.values())
    notes = [
        "p is that of the Mann-Whitney test over losses, each by its mean over common seeds: would other losses differ "
        f"too? One family of {counted(tested, 'test')}, Holm's correction over it",
        "as published: the same test over losses × seeds, which takes the seeds of one loss for independent losses; it "
        "decides nothing here",
    ]
    if any(0 < one["seeds"] < LEAST_SEEDS for one in kinds.values()):
        notes.append(f"no test over losses: {FEW}")
    notes += [f"{name}: {one['why']}; nothing to compare" for name, one in kinds.items() if one["why"]]
    records = [{"property": name, **one} for name, one in kinds.items()]
    title = "Ranking against classification losses"
    return Table.of_records("kinds", columns, records, title=title, notes=notes)
