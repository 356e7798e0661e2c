"""How are training embeddings spread? Their spectrum and density, of a run and of all runs of a study."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nearkin.analysis._over_runs import (
    CUT,
    OVER_SEEDS,
    OfStudy,
    OneMethod,
    interval_columns,
    methods_of,
    of_each_run,
    several_data_sets,
)
from nearkin.analysis._relations import (
    Regularised,
    Twins,
    correlation_table,
    correlations,
    regularised,
    regulariser_table,
    twins_of,
)
from nearkin.analysis._spectrum_charts import SPACE, TEST, against_test, curves, singular_table, with_and_without
from nearkin.analysis.base import Analysis, stored_with_run
from nearkin.analysis.embedded import one_file, training_set
from nearkin.comparison.alike import NONE, regulariser
from nearkin.comparison.gather import Gathered, Member
from nearkin.errors import NearkinError
from nearkin.evaluation.metrics.base import metric_of
from nearkin.evaluation.metrics.space import class_spectra, pi_inter, pi_intra, rho, singular_values
from nearkin.present import Chart, Column, Table
from nearkin.registry import ANALYSES
from nearkin.runs.store import Run
from nearkin.statistics.unit import Row
from nearkin.units import COUNT, NUMBER

KEEP = 35  # singular values of a class that are kept, as Roth et al. show them
TESTED = [column.name for column in TEST]
MEASURED = [column.name for column in (*SPACE, *TEST)]
CORRELATED = tuple(product(("rho", "pi_intra", "pi_inter", "pi_ratio"), TESTED))
NOTES = (
    "ρ is KL(U ‖ p) of the singular values of the training embeddings without the largest, “all” with it; low: a flat "
    "spectrum. π are mean cosine distances within classes and between class means",
    OVER_SEEDS,
)


@ANALYSES.register("spectrum")
@dataclass(frozen=True)
class Spectrum(Analysis):
    """The spectrum of the training embeddings, of all and class by class, and their densities.

        p = σ/Σσ, ρ = (1/m) Σ_i -ln(m p_i)          σ without the largest (rho), or all of them (rho_all)
        classes: mean over classes of the first 35 singular values of a class, filled up with 0
        π_intra, π_inter, π_ratio                   `nearkin list metrics` defines them

    Embeddings are those of the chosen model, of the training images, not augmented; unit vectors, not centred.

    Source: Roth et al. 2020 (ICML), section 4 and supplement E.

    Parameters:
        measured: ρ and the densities.
        singular: (min(N, D),) singular values of all training embeddings, descending.
        classes: (35,) those of a class, averaged over classes.
    """

    measured: dict[str, Any]
    singular: np.ndarray
    classes: np.ndarray

    @classmethod
    def of(cls, run: Run) -> "Spectrum":
        """Of the training images of a finished run."""
        if (known := stored_with_run(cls, run, {})) is not None:
            return cls(known[0], **known[1])
        seen = training_set(run)
        return spectrum(torch.from_numpy(seen.x), seen.labels)

    @classmethod
    def of_files(cls, paths: Sequence[str | Path]) -> "Spectrum":
        """Of anyone's training embeddings with labels: one .npz or .parquet file."""
        z, labels, _ = one_file(cls.name, paths)
        if labels is None:
            raise NearkinError(f"{paths[0]} has no labels: the densities are those of classes")
        return spectrum(z, labels)

    @classmethod
    def between(cls, gathered: Gathered) -> "SpectrumOfStudy":
        """Of all tested runs of a study, beside their test, and regularised runs against their plain twins."""
        return SpectrumOfStudy(methods_of(gathered), of_each_run(cls, gathered))

    @property
    def numbers(self) -> dict[str, Any]:
        """ρ and the densities."""
        return self.measured

    @property
    def tables(self) -> list[Table]:
        """The numbers, and all singular values."""
        rows: list[list[Any]] = [
            [f"ρ, {c.about}" if c.name.startswith("rho") else c.about, self.numbers[c.name], NUMBER.name] for c in SPACE
        ]
        rows.append(["share of the largest singular value, %", float(self.singular[0] / self.singular.sum()), "share"])
        about = Table("numbers", ["what", Column("value", unit="unit"), "unit"], rows)
        return [about, singular_table({"this run": self.arrays})]

    @property
    def charts(self) -> list[Chart]:
        """The spectra."""
        return [curves(self.tables[1], ["this run"])]

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The spectra."""
        return {"singular": self.singular, "classes": self.classes}


def spectrum(z: Tensor, labels: np.ndarray) -> Spectrum:
    """Of any embeddings (N, D), raw or unit vectors, with labels (N,)."""
    intra, inter = pi_intra(z, labels), pi_inter(z, labels)
    space = {"rho": rho(z), "rho_all": rho(z, drop=0), "pi_intra": intra, "pi_inter": inter}
    numbers = {"images": len(z), "classes": len(np.unique(labels)), **space, "pi_ratio": intra / max(inter, 1e-8)}
    return Spectrum(numbers, singular_values(z), class_spectra(z, labels, keep=KEEP))


class SpectrumOfStudy(OfStudy):
    """Spectra and densities of all runs of a study, beside their test."""

    name = "spectrum"
    version = Spectrum.version

    def value(self, member: Member, key: str) -> float | None:
        """One number of a run: of its training embeddings, or of its test."""
        return member.value(key) if key in TESTED else self.runs[member.run.hash].numbers[key]

    def row(self, method: OneMethod, key: str) -> Row:
        """The same of all runs of a method, on the unit of comparison."""
        return method.metric(key) if key in TESTED else method.row(lambda member: self.value(member, key))

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """Every method's means with intervals, rank correlations with the test, and regularised against plain runs."""
        methods = {}
        for method in self.methods:
            numbers: dict[str, Any] = {"kind": method.kind, "regulariser": regulariser(method.members[0])}
            for key in MEASURED:
                bounds = metric_of("rho" if key == "rho_all" else key).bounds
                if (interval := self.interval(self.row(method, key), bounds)) is not None:
                    numbers[key] = interval
            methods[method.name] = numbers
        compared = [] if several_data_sets(self.methods) else [method for method in self.methods if method.trained]
        rows = {names: [(self.row(m, names[0]), self.row(m, names[1])) for m in compared] for names in CORRELATED}
        return {
            "methods": methods,
            "correlations": correlations(rows),
            "regularisers": [method.numbers() for method in self.regularised],
        }

    @cached_property
    def regularised(self) -> list[Regularised]:
        """Methods with a regulariser against those without that are alike otherwise."""
        return regularised(self.twins, ("rho", "pi_ratio", *TESTED), self.row)

    @cached_property
    def twins(self) -> list[Twins]:
        """Methods that are there with a regulariser and without."""
        return twins_of(self.methods)

    @cached_property
    def means(self) -> dict[str, Spectrum]:
        """The mean spectra of every method, over the runs that its values are means of."""
        means = {}
        for method in self.methods:
            runs = [self.runs[member.run.hash].arrays for member in method.whole]
            if len({len(run["singular"]) for run in runs}) == 1:
                means[method.name] = Spectrum({}, *(np.mean([run[key] for run in runs], 0) for key in runs[0]))
        return means

    @cached_property
    def places(self) -> dict[str, tuple[str, str]]:
        """Trained method -> what it is without its regulariser, and this regulariser: its name alone, unless a method
        is there with several settings of it."""
        objectives = {one.name: twin.name for twin in self.twins for one in (twin.plain, *twin.acting)}
        trained = {method.name: regulariser(method.members[0]) for method in self.methods if method.trained}
        places = {name: (objectives.get(name, name), words.partition(" ")[0]) for name, words in trained.items()}
        if len(set(places.values())) < len(places):
            return {name: (objectives.get(name, name), words) for name, words in trained.items()}
        return places

    @cached_property
    def tables(self) -> list[Table]:
        """Methods; correlations; regularised against plain; the runs, the means and mean spectra of the methods."""
        tables = [self._methods_table()]
        if self.numbers["correlations"]:
            tables.append(correlation_table(self.numbers["correlations"]))
        if self.regularised:
            tables.append(regulariser_table(self.regularised))
        return [
            *tables,
            self._runs_table(),
            self._means_table(),
            singular_table({name: one.arrays for name, one in self.means.items()}, self.places),
        ]

    def _methods_table(self) -> Table:
        records = []
        for name, numbers in self.numbers["methods"].items():
            means = {key: numbers[key]["mean"] for key in MEASURED if key in numbers}
            ends = numbers.get("rho", {"seeds": 0, "cut": False})  # no seed has all folds
            records.append({"method": name, "kind": numbers["kind"], **ends, **means})
        columns = ["method", "kind", Column("seeds", unit=COUNT), SPACE[0], *interval_columns(NUMBER, cut=True)]
        notes = [*NOTES, *several_data_sets(self.methods), *[CUT] * any(record["cut"] for record in records)]
        columns += [*SPACE[1:], *TEST]
        return Table.of_records("methods", columns, records, title="Training embeddings and test", notes=notes)

    def _runs_table(self) -> Table:
        rows = [
            [m.name, m.kind, regulariser(run), run.seed, run.fold, run.run.hash]
            + [self.value(run, key) for key in MEASURED]
            for m in self.methods
            for run in m.members
        ]
        columns = ["method", "kind", "regulariser", "seed", "fold", "run", *SPACE, *TEST]
        return Table("runs", columns, rows, "Runs", detail=True)

    def _means_table(self) -> Table:
        """What the charts of means draw: every trained method, or, where there is none, the untrained ones."""
        records = []
        for method in self.drawn:
            objective, switched = self.places.get(method, (method, NONE))
            record = {"method": method, "objective": objective, "regulariser": switched}
            for key in MEASURED:
                value = self.numbers["methods"][method].get(key, dict.fromkeys(("mean", "low", "high")))
                record |= {key: value["mean"], f"{key}_low": value["low"], f"{key}_high": value["high"]}
            records.append(record)
        spans = [
            part for column in (*SPACE, *TEST) for part in (column, *interval_columns(column.unit, f"{column.name}_"))
        ]
        return Table.of_records("means", ["method", "objective", "regulariser", *spans], records, detail=True)

    @property
    def drawn(self) -> list[str]:
        """The methods that are drawn: untrained networks lie far away from all others."""
        names = [method.name for method in self.methods if method.trained]
        return names or [method.name for method in self.methods]

    @property
    def charts(self) -> list[Chart]:
        """Mean spectra of the methods; ρ and densities against the test; with and without a regulariser."""
        means, singular = self.tables[-2:]
        spectra = [name for name in self.drawn if name in self.means]
        charts = [*([curves(singular, spectra)] if spectra else []), against_test(means)]
        if self.twins:
            charts += with_and_without(means, singular, [twin.name for twin in self.twins])
        return charts

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The mean spectra of the methods."""
        both = {"all": "singular", "class": "classes"}
        return {f"{of} {name}": one.arrays[key] for name, one in self.means.items() for of, key in both.items()}
