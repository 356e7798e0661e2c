"""Spectra and densities of all runs of a study beside their test, and regularised runs against their plain twins."""

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from nearkin.analysis.base import Analysis, Table
from nearkin.analysis.correlated import correlation_sheet, correlations
from nearkin.analysis.over_runs import OneMethod, interval_numbers, interval_of, several_data_sets
from nearkin.analysis.regularised import Regularised, regularised, regulariser, regulariser_sheet
from nearkin.analysis.spectrum import Spectrum
from nearkin.comparison.gather import Member
from nearkin.comparison.pages import Sheet
from nearkin.comparison.verdicts import span
from nearkin.evaluation.metrics.base import metric_of
from nearkin.statistics.unit import Row

SPACE = ("rho", "rho_all", "pi_intra", "pi_inter", "pi_ratio")
TESTED = ("recall@1", "map_at_r")
CORRELATED = tuple(product(("rho", "pi_intra", "pi_inter", "pi_ratio"), TESTED))
REGULARISED = ("rho", "pi_ratio", *TESTED)
NOTES = (
    "ρ is KL(U ‖ p) of the singular values of the training embeddings without the largest, “all” with it; low: a flat "
    "spectrum. π are mean cosine distances within classes and between class means",
    "means and intervals are over seeds that have all folds, folds averaged first",
)


class SpectrumOfStudy(Analysis):
    """Spectra and densities of all runs of a study, beside their test.

    Parameters:
        methods: its methods.
        spectra: run's hash -> its spectrum.
    """

    name = "spectrum"
    version = Spectrum.version
    options: Mapping[str, Any] = {}

    def __init__(self, methods: list[OneMethod], spectra: Mapping[str, Spectrum]):
        self.methods, self.spectra = methods, spectra

    def value(self, member: Member, key: str) -> float | None:
        """One number of a run: of its training embeddings, or of its test."""
        return self.spectra[member.run.hash].told[key] if key in SPACE else member.value(key)

    def row(self, method: OneMethod, key: str) -> Row:
        """The same of all runs of a method, on the unit of comparison."""
        return method.metric(key) if key in TESTED else method.row(lambda member: self.value(member, key))

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Every method's means with intervals, rank correlations with the test, and regularised against plain runs."""
        methods = {}
        for method in self.methods:
            numbers: dict[str, Any] = {"kind": method.kind, "regulariser": regulariser(method.members[0])}
            for key in (*SPACE, *TESTED):
                bounds = metric_of("rho" if key == "rho_all" else key).bounds
                if (interval := interval_of(self.row(method, key), bounds)) is not None:
                    numbers[key] = interval_numbers(interval)
            methods[method.name] = numbers
        asked = {} if several_data_sets(self.methods) else {names: self._rows(*names) for names in CORRELATED}
        return {
            "methods": methods,
            "correlations": correlations(asked),
            "regularisers": [method.numbers() for method in self.regularised],
        }

    def _rows(self, key: str, metric: str) -> list[tuple[Row, Row]]:
        """Two numbers of every trained method that has both."""
        rows = [(self.row(method, key), self.row(method, metric)) for method in self.methods if method.trained]
        return [(first, second) for first, second in rows if first.members and second.members]

    @cached_property
    def regularised(self) -> list[Regularised]:
        """Methods with a regulariser against those without that are alike otherwise."""
        return regularised(self.methods, REGULARISED, self.row)

    def sheets(self) -> dict[str, Sheet]:
        """Methods; correlations; regularised against plain."""
        summary = self.summary
        header = [
            "method",
            "kind",
            "seeds",
            "ρ",
            "95 % interval",
            "ρ all",
            "π intra",
            "π inter",
            "π ratio",
            "Recall@1 %",
            "MAP@R %",
        ]
        rows = []
        for name, cells in summary["methods"].items():
            score = [f"{100 * cells[key]['mean']:.1f}" if key in cells else "–" for key in TESTED]
            means = {key: f"{cells[key]['mean']:.3f}" if key in cells else "–" for key in SPACE}
            rho = cells.get("rho", {"seeds": 0, "low": None, "high": None, "cut": False})  # no seed has all folds
            rows.append(
                [
                    name,
                    cells["kind"],
                    str(rho["seeds"]),
                    means.pop("rho"),
                    span("rho", rho["low"], rho["high"], cut=rho["cut"]),
                    *means.values(),
                    *score,
                ]
            )
        notes = [*NOTES, *several_data_sets(self.methods)]
        notes += ["* cut at the end of the range"] * any(row[4].endswith("*") for row in rows)
        made = {"methods": Sheet("Training embeddings and test", header, rows, 9, notes)}
        if summary["correlations"]:
            made["correlations"] = correlation_sheet(summary["correlations"])
        if self.regularised:
            made["regularisers"] = regulariser_sheet(self.regularised)
        return made

    def tables(self) -> dict[str, Table]:
        """One row per run."""
        rows = [
            [
                method.name,
                method.kind,
                regulariser(m),
                m.seed,
                m.fold,
                m.run.hash,
                *(self.value(m, key) for key in (*SPACE, *TESTED)),
            ]
            for method in self.methods
            for m in method.members
        ]
        return {"runs": (["method", "kind", "regulariser", "seed", "fold", "run", *SPACE, *TESTED], rows)}

    def files(self) -> dict[str, Callable[[Path], Any]]:
        """Mean spectra of the methods, and ρ and densities against the test."""
        from nearkin.analysis import spectrum_figures as figures

        means = {}
        for method in self.methods:
            runs = [self.spectra[member.run.hash] for member in method.whole]
            if len({len(run.singular) for run in runs}) == 1:
                means[method.name] = (np.mean([r.singular for r in runs], 0), np.mean([r.classes for r in runs], 0))
        trained = [method.name for method in self.methods if method.trained and method.name in means]
        shown = {name: means[name] for name in trained} or means
        arrays = {
            f"{kind} {name}": value[i] for name, value in means.items() for i, kind in enumerate(("all", "class"))
        }
        return {
            "spectrum.npz": lambda path: np.savez(path, **arrays),
            "spectrum_curves.png": lambda path: figures.curves(shown).savefig(path),
            "spectrum_test.png": lambda path: figures.against_test(self.tables()["runs"]).savefig(path),
        }
