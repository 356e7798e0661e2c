"""The properties that neighbours share in all runs of a study, and ranking against classification losses."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from nearkin.analysis.base import Analysis, Table
from nearkin.analysis.nr_precision import BAR
from nearkin.analysis.over_runs import OneMethod, several_data_sets
from nearkin.analysis.properties import WHAT_IT_SAYS, Properties, marks
from nearkin.comparison.pages import Sheet
from nearkin.comparison.verdicts import FEW
from nearkin.statistics.groups import groups
from nearkin.statistics.paired import holm
from nearkin.statistics.unit import LEAST_SEEDS, Nothing, Row, common


class PropertiesOfStudy(Analysis):
    """The properties of all runs of a study.

    Parameters:
        methods: its methods.
        found: run's hash -> what its properties.json holds.
    """

    name = "properties"
    version = Properties.version
    options: Mapping[str, Any] = {}

    def __init__(self, methods: list[OneMethod], found: Mapping[str, dict[str, Any]]):
        self.methods, self.found = methods, found
        self.names = list(dict.fromkeys(name for own in found.values() for name in own["properties"]))

    def row(self, method: OneMethod, name: str) -> Row:
        """The normalised R-precision of a property in the runs of a method, on the unit of comparison."""
        return method.row(lambda m: self.found[m.run.hash]["properties"].get(name, {}).get("nr_precision"))

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Every method's mean and seeds, and the two kinds of losses against each other."""
        methods = {}
        for method in self.methods:
            own = {name: self.row(method, name).values for name in self.names}
            methods[method.name] = {
                "kind": method.kind,
                "properties": {
                    name: {
                        "mean": float(np.mean(list(values.values()))),
                        "seeds": {str(s): v for s, v in values.items()},
                        "significant": bool(np.mean(list(values.values())) >= BAR),
                        "beyond_class": self._all_beyond(method, name),
                    }
                    for name, values in own.items()
                    if values
                },
            }
        return {"bar": BAR, "methods": methods, "kinds": self._kinds()}

    def _all_beyond(self, method: OneMethod, name: str) -> bool:
        """Do neighbours share the property beyond what comes with the class, in every run of a method?"""
        own = [self.found[member.run.hash]["properties"].get(name, {}) for member in method.members]
        return all(bool(each.get("beyond_class")) for each in own)

    def _kinds(self) -> dict[str, Any]:
        """Ranking against classification losses on the seeds and folds that all of them have: the Mann-Whitney test
        over losses, and, as published, over losses × seeds. No test over losses below three seeds."""
        if several_data_sets(self.methods):
            return {}
        found: dict[str, Any] = {}
        for name in self.names:
            sides = [
                [row for method in self.methods if method.kind == kind and (row := self.row(method, name)).members]
                for kind in ("ranking", "classification")
            ]
            if sides[0] and sides[1]:
                found[name] = _against(*sides)
        tested = [own for own in found.values() if own["p_losses"] is not None]
        for own, p in zip(tested, holm([own["p_losses"] for own in tested]).tolist(), strict=True):
            own["p_losses_holm"] = p
        return found

    def sheets(self) -> dict[str, Sheet]:
        """Methods by properties, and the kinds of losses."""
        methods = self.summary["methods"]
        rows = []
        for name, own in methods.items():
            cells = [own["properties"].get(p) for p in self.names]
            texts = ["–" if c is None else f"{c['mean']:.2f}{marks(c)}" for c in cells]
            rows.append([name, own["kind"], *texts])
        title = "Normalised R-precision of properties, mean over seeds that have all folds"
        found = {
            "methods": Sheet(
                title,
                ["method", "kind", *self.names],
                rows,
                len(self.names),
                [*WHAT_IT_SAYS, "a method is marked † when all its runs are", *several_data_sets(self.methods)],
            )
        }
        kinds = self.summary["kinds"]
        if kinds:
            found["kinds"] = _kinds_sheet(kinds)
        return found

    def tables(self) -> dict[str, Table]:
        """One row per method, property and seed."""
        rows = [
            [name, own["kind"], p, int(seed), value]
            for name, own in self.summary["methods"].items()
            for p, told in own["properties"].items()
            for seed, value in told["seeds"].items()
        ]
        return {"all": (["method", "kind", "property", "seed", "nr_precision"], rows)}

    def files(self) -> dict[str, Callable[[Path], Any]]:
        """Methods by properties as a figure."""
        from nearkin.analysis import properties_figures as figures

        return {"properties.png": lambda path: figures.matrix(self.summary["methods"], self.names).savefig(path)}


def _against(first: Sequence[Row], second: Sequence[Row]) -> dict[str, Any]:
    """Two groups of rows on what all have in common."""
    told: dict[str, Any] = {
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
        return told | {"why": shared.reason}
    compared = groups(first, second)
    assert not isinstance(compared, Nothing)  # it takes what is shared, too
    a, b = np.split(shared.values, [len(first)])  # (k, S), (k', S)
    published = stats.mannwhitneyu(a.ravel(), b.ravel(), alternative="two-sided").pvalue
    enough = len(shared.seeds) >= LEAST_SEEDS
    return told | {
        "ranking": float(a.mean()),
        "classification": float(b.mean()),
        "seeds": len(shared.seeds),
        "p": float(published),
        "p_losses": compared.p_methods if enough else None,
    }


def _kinds_sheet(kinds: Mapping[str, Mapping[str, Any]]) -> Sheet:
    """Properties by kind of loss."""

    def number(value: float | None, digits: int) -> str:
        return "–" if value is None else f"{value:.{digits}f}"

    rows = [
        [
            name,
            str(own["seeds"]),
            number(own["ranking"], 2),
            number(own["classification"], 2),
            number(own["p_losses"], 3),
            number(own["p_losses_holm"], 3),
            number(own["p"], 3),
        ]
        for name, own in kinds.items()
    ]
    tested = sum(own["p_losses"] is not None for own in kinds.values())
    notes = [
        "p is that of the Mann-Whitney test over losses, each by its mean over common seeds: would other losses differ "
        f"too? One family of {tested} test{'s' * (tested != 1)}, Holm's correction over it",
        "as published: the same test over losses × seeds, which takes the seeds of one loss for independent losses; it "
        "decides nothing here",
    ]
    if any(0 < own["seeds"] < LEAST_SEEDS for own in kinds.values()):
        notes.append(f"no test over losses: {FEW}")
    notes += [f"{name}: {own['why']}; nothing to compare" for name, own in kinds.items() if own["why"]]
    header = ["property", "seeds", "ranking", "classification", "p (losses)", "p (Holm)", "as published: p"]
    return Sheet("Ranking against classification losses", header, rows, 6, notes)
