"""The properties that neighbours share in all runs of a study, and ranking against classification losses."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

from nearkin.analysis._nr_precision import BAR
from nearkin.analysis._over_runs import OneMethod, several_data_sets
from nearkin.analysis.base import Analysis
from nearkin.analysis.properties import WHAT_IT_SAYS, Properties, marks
from nearkin.comparison.verdicts import FEW
from nearkin.present import Chart, Column, Heatmap, Table, pivot
from nearkin.statistics.groups import groups
from nearkin.statistics.paired import holm
from nearkin.statistics.unit import LEAST_SEEDS, Nothing, Row, common
from nearkin.units import COUNT, NUMBER, P, counted


class PropertiesOfStudy(Analysis):
    """The properties of all runs of a study.

    Parameters:
        methods: its methods.
        runs: run's hash -> its numbers.
    """

    name = "properties"
    version = Properties.version

    def __init__(self, methods: list[OneMethod], runs: Mapping[str, dict[str, Any]]):
        self.methods, self.runs = methods, runs
        self.names = list(dict.fromkeys(name for run in runs.values() for name in run["properties"]))

    def row(self, method: OneMethod, name: str) -> Row:
        """The normalised R-precision of a property in the runs of a method, on the unit of comparison."""
        return method.row(lambda m: self.runs[m.run.hash]["properties"].get(name, {}).get("nr_precision"))

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """Every method's mean and seeds, and the two kinds of losses against each other."""
        methods = {}
        for method in self.methods:
            seeds = {name: self.row(method, name).values for name in self.names}
            methods[method.name] = {
                "kind": method.kind,
                "properties": {
                    name: {
                        "mean": float(np.mean(list(values.values()))),
                        "seeds": {str(s): v for s, v in values.items()},
                        "significant": bool(np.mean(list(values.values())) >= BAR),
                        "beyond_class": self._all_beyond(method, name),
                    }
                    for name, values in seeds.items()
                    if values
                },
            }
        return {"bar": BAR, "methods": methods, "kinds": self._kinds()}

    def _all_beyond(self, method: OneMethod, name: str) -> bool:
        """Do neighbours share the property beyond what comes with the class, in every run of a method?"""
        runs = [self.runs[member.run.hash]["properties"].get(name, {}) for member in method.members]
        return all(bool(run.get("beyond_class")) for run in runs)

    def _kinds(self) -> dict[str, Any]:
        """Ranking against classification losses on the seeds and folds that all of them have: the Mann-Whitney test
        over losses, and, as published, over losses × seeds. No test over losses below three seeds."""
        if several_data_sets(self.methods):
            return {}
        kinds: dict[str, Any] = {}
        for name in self.names:
            sides = [
                [row for method in self.methods if method.kind == kind and (row := self.row(method, name)).members]
                for kind in ("ranking", "classification")
            ]
            if sides[0] and sides[1]:
                kinds[name] = _against(*sides)
        tested = [one for one in kinds.values() if one["p_losses"] is not None]
        for one, p in zip(tested, holm([one["p_losses"] for one in tested]).tolist(), strict=True):
            one["p_losses_holm"] = p
        return kinds

    @cached_property
    def tables(self) -> list[Table]:
        """Methods by properties; the kinds of losses; one row per method and property, and per seed."""
        rows, seeds = [], []
        for name, method in self.numbers["methods"].items():
            for label, one in method["properties"].items():
                about = [name, method["kind"], label]
                rows.append([*about, one["mean"], marks(one), one["significant"], one["beyond_class"]])
                seeds += [[*about, int(seed), value] for seed, value in one["seeds"].items()]
        about = ["method", "kind", "property"]
        value = Column("mean", "normalised R-precision", NUMBER, digits=2, star="marks")
        long = Table("means", [*about, value, "marks", "significant", "beyond_class"], rows, detail=True)
        by_seed = Table("all", [*about, "seed", Column("nr_precision", unit=NUMBER)], seeds, "Seeds", detail=True)
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
    numbers: dict[str, Any] = {
        "ranking": None,
        "classification": None,
        "losses": [len(first), len(second)],
        "seeds": 0,
        "p": None,
        "p_losses": None,
        "p_losses_holm": None,
        "why": None,
    }
    shared = common([*first, *second])
    if isinstance(shared, Nothing):
        return numbers | {"why": shared.reason}
    compared = groups(first, second)
    assert not isinstance(compared, Nothing)  # it takes what is shared, too
    a, b = np.split(shared.values, [len(first)])  # (k, S), (k', S)
    published = stats.mannwhitneyu(a.ravel(), b.ravel(), alternative="two-sided").pvalue
    enough = len(shared.seeds) >= LEAST_SEEDS
    return numbers | {
        "ranking": float(a.mean()),
        "classification": float(b.mean()),
        "seeds": len(shared.seeds),
        "p": float(published),
        "p_losses": compared.p_methods if enough else None,
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
    keys = ("seeds", "ranking", "classification", "p_losses", "p_losses_holm", "p")
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
    rows = [[name, *(one[key] for key in keys)] for name, one in kinds.items()]
    return Table("kinds", columns, rows, "Ranking against classification losses", notes)
