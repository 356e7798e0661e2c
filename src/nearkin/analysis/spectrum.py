"""How are training embeddings spread? Their spectrum and density, of a run and of a study, beside the test."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from nearkin.analysis.base import Analysis, Table
from nearkin.analysis.embedded import training_set
from nearkin.analysis.over_runs import OneMethod, found_in, methods_of, stored, stored_arrays
from nearkin.analysis.tested import embeddings_and_columns
from nearkin.comparison.gather import Gathered, Member
from nearkin.comparison.pages import Sheet
from nearkin.config.parse import flatten
from nearkin.errors import NearkinError
from nearkin.evaluation.metrics.space import class_spectra, pi_inter, pi_intra, rho, singular_values
from nearkin.registry import ANALYSES
from nearkin.runs.store import Run
from nearkin.statistics.paired import paired

KEEP = 35                           # singular values of a class that are kept, as Roth et al. show them
SPACE = ("rho", "rho_all", "pi_intra", "pi_inter", "pi_ratio")
TESTED = ("recall@1", "map_at_r")
NOTES = (
    "ρ is KL(U ‖ p) of the singular values of the training embeddings without the largest, “all” with it; low: a flat "
    "spectrum. π are mean cosine distances within classes and between class means",
    "intervals and differences are over seeds, folds averaged first",
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
        told: ρ and the densities.
        singular: (min(N, D),) singular values of all training embeddings, descending.
        classes: (35,) those of a class, averaged over classes.
        options: there are none.
    """

    told: dict[str, Any]
    singular: np.ndarray
    classes: np.ndarray
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> "Spectrum":
        """Of the training images of a finished run."""
        if (told := stored(cls, run, {})) and (arrays := stored_arrays(cls, run)) is not None:
            return cls(told, arrays["singular"], arrays["classes"])
        seen = training_set(run)
        return spectrum(torch.from_numpy(seen.x), seen.labels)

    @classmethod
    def of_files(cls, paths: Sequence[str | Path]) -> "Spectrum":
        """Of anyone's training embeddings with labels: one .npz or .parquet file."""
        if len(paths) != 1:
            raise NearkinError(f"spectrum looks at one file of embeddings, not at {len(paths)}")
        z, labels, _ = embeddings_and_columns(paths[0])
        if labels is None:
            raise NearkinError(f"{paths[0]} has no labels: the densities are those of classes")
        return spectrum(z, labels)

    @classmethod
    def between(cls, gathered: Gathered) -> "SpectrumOfStudy":
        """Of all tested runs of a study, beside their test, and regularised runs against their plain twins."""
        return SpectrumOfStudy(methods_of(gathered), found_in(cls, gathered))

    @property
    def summary(self) -> dict[str, Any]:
        """ρ and densities."""
        return self.told

    def rows(self) -> list[list[str]]:
        """The numbers in words."""
        names = {"rho": "ρ, without the largest singular value", "rho_all": "ρ, all singular values",
                 "pi_intra": "mean distance within a class", "pi_inter": "mean distance between class means",
                 "pi_ratio": "their ratio"}  # fmt: skip
        first = self.singular / self.singular.sum()
        return [*([words, f"{self.told[key]:.4f}"] for key, words in names.items()),
                ["share of the largest singular value", f"{100 * first[0]:.1f} %"]]  # fmt: skip

    def tables(self) -> dict[str, Table]:
        """All singular values."""
        both = [["all", i + 1, float(v)] for i, v in enumerate(self.singular)]
        both += [["class", i + 1, float(v)] for i, v in enumerate(self.classes)]
        return {"singular": (["of", "number", "value"], both)}

    def files(self) -> dict[str, Callable[[Path], Any]]:
        """The spectra, as arrays and as a figure."""
        from nearkin.analysis import spectrum_figures as figures

        return {
            "spectrum.npz": lambda path: np.savez(path, singular=self.singular, classes=self.classes),
            "spectrum.png": lambda path: figures.curves({"this run": (self.singular, self.classes)}).savefig(path),
        }


def spectrum(z: Tensor, labels: np.ndarray) -> Spectrum:
    """Of any embeddings (N, D), raw or unit vectors, with labels (N,)."""
    intra, inter = pi_intra(z, labels), pi_inter(z, labels)
    told = {"images": len(z), "classes": len(np.unique(labels)), "rho": rho(z), "rho_all": rho(z, drop=0),
            "pi_intra": intra, "pi_inter": inter, "pi_ratio": intra / max(inter, 1e-8)}  # fmt: skip
    return Spectrum(told, singular_values(z), class_spectra(z, labels, keep=KEEP))


class SpectrumOfStudy(Analysis):
    """Spectra and densities of all runs of a study, beside their test.

    Parameters:
        methods: its methods.
        found: run's hash -> its spectrum.
    """

    name = "spectrum"
    version = Spectrum.version
    options: Mapping[str, Any] = {}

    def __init__(self, methods: list[OneMethod], found: Mapping[str, Spectrum]):
        self.methods, self.found = methods, found

    def value(self, member: Member, key: str) -> float | None:
        """One number of a run: of its training embeddings, or of its test."""
        if key in SPACE:
            return self.found[member.run.hash].told[key]
        return member.run.metrics().get(key)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Every method's means with intervals, rank correlations with the test, and regularised against plain runs."""
        methods = {}
        for method in self.methods:
            own: dict[str, Any] = {"kind": method.kind, "regulariser": regulariser(method.members[0])}
            for key in (*SPACE, *TESTED):
                value = method.interval(lambda member, key=key: self.value(member, key))  # type: ignore[misc]
                if value is not None:
                    own[key] = {"mean": value.mean, "low": value.low, "high": value.high, "seeds": value.n}
            methods[method.name] = own
        return {"methods": methods, "correlations": correlations(methods), "regularisers": self._regularisers()}

    def _regularisers(self) -> list[dict[str, Any]]:
        """Runs with a regulariser minus those without that are alike otherwise, seed by seed."""
        members = [member for method in self.methods for member in method.members]
        plain: dict[tuple[Any, ...], Member] = {}
        for member in members:
            if regulariser(member) == "none" and not member.untrained:
                plain.setdefault((_twin(member), member.seed, member.fold), member)
        pairs: dict[tuple[str, str, str], list[tuple[Member, Member]]] = {}
        for member in members:
            other = plain.get((_twin(member), member.seed, member.fold))
            if other is not None and regulariser(member) != "none":
                which = (_twin(member), str(member.settings["loss.name"]), regulariser(member))
                pairs.setdefault(which, []).append((member, other))
        rows = []
        for (_, loss, name), own in pairs.items():
            row: dict[str, Any] = {"loss": loss, "regulariser": name}
            for key in ("rho", "pi_ratio", *TESTED):
                seeds: dict[int, list[tuple[float, float]]] = {}
                for member, other in own:
                    a, b = self.value(member, key), self.value(other, key)
                    if a is not None and b is not None:
                        seeds.setdefault(member.seed, []).append((a, b))
                if seeds:
                    means = np.array([np.mean(values, axis=0) for values in seeds.values()])        # (S, 2)
                    d = paired(means[:, 0], means[:, 1])
                    row[key] = {"mean": d.mean, "low": d.low, "high": d.high, "p": d.p, "n": d.n}
            rows.append(row)
        return rows

    def sheets(self) -> dict[str, Sheet]:
        """Methods; correlations; regularised against plain."""
        told = self.summary
        header = ["method", "kind", "seeds", "ρ", "95 % interval", "ρ all", "π intra", "π inter", "π ratio",
                  "Recall@1 %", "MAP@R %"]  # fmt: skip
        rows = []
        for name, own in told["methods"].items():
            score = [f"{100 * own[key]['mean']:.1f}" if key in own else "–" for key in TESTED]
            rows.append([name, own["kind"], str(own["rho"]["seeds"]), _number(own["rho"]["mean"]), _span(own["rho"]),
                         *(_number(own[key]["mean"]) for key in SPACE[1:]), *score])  # fmt: skip
        found = {"methods": Sheet("Training embeddings and test", header, rows, 9, list(NOTES))}
        lines = [[key, metric, str(own["methods"]), _number(own["spearman"]), _number(own["p"])]
                 for key, metrics in told["correlations"].items() for metric, own in metrics.items()]  # fmt: skip
        if lines:
            notes = ["Spearman's correlation over the trained methods of this table, no random sample of methods"]
            found["correlations"] = Sheet("With the test", ["of", "with", "methods", "Spearman", "p"], lines, 3, notes)
        if told["regularisers"]:
            keys = ("rho", "pi_ratio", *TESTED)
            header = ["loss", "regulariser", "seeds", *(f"{key}, {what}" for key in keys
                      for what in ("difference", "95 % interval"))]  # fmt: skip
            body = [[own["loss"], own["regulariser"], str(own["rho"]["n"]),
                     *(text for key in keys for text in (_number(own[key]["mean"], True), _span(own[key], True)))]
                    for own in told["regularisers"]]  # fmt: skip
            found["regularisers"] = Sheet("With a regulariser minus without, same settings and seeds", header, body, 9,
                                          [NOTES[1]])  # fmt: skip
        return found

    def tables(self) -> dict[str, Table]:
        """One row per run."""
        rows = [[method.name, method.kind, regulariser(m), m.seed, m.fold, m.run.hash,
                 *(self.value(m, key) for key in (*SPACE, *TESTED))]
                for method in self.methods for m in method.members]  # fmt: skip
        return {"runs": (["method", "kind", "regulariser", "seed", "fold", "run", *SPACE, *TESTED], rows)}

    def files(self) -> dict[str, Callable[[Path], Any]]:
        """Mean spectra of the methods, and ρ and densities against the test."""
        from nearkin.analysis import spectrum_figures as figures

        spectra = {}
        for method in self.methods:
            own = [self.found[member.run.hash] for member in method.members]
            if len({len(each.singular) for each in own}) == 1:
                spectra[method.name] = (np.mean([e.singular for e in own], 0), np.mean([e.classes for e in own], 0))
        trained = [method.name for method in self.methods if method.kind != "untrained" and method.name in spectra]
        shown = {name: spectra[name] for name in trained} or spectra
        arrays = {f"{kind} {name}": value[i] for name, value in spectra.items()
                  for i, kind in enumerate(("all", "class"))}  # fmt: skip
        return {
            "spectrum.npz": lambda path: np.savez(path, **arrays),
            "spectrum_curves.png": lambda path: figures.curves(shown).savefig(path),
            "spectrum_test.png": lambda path: figures.against_test(self.tables()["runs"]).savefig(path),
        }


def regulariser(member: Member) -> str:
    """Its regulariser in words; one that never acts (p_switch=0) is none."""
    settings = member.settings
    name = settings.get("regulariser.name")
    if name is None or settings.get("regulariser.p_switch") == 0:
        return "none"
    switch = settings.get("regulariser.p_switch")
    return str(name) if switch is None else f"{name} p_switch={switch:g}"


def _twin(member: Member) -> str:
    """All settings but the regulariser, the seed and what the run is for, as this version reads them: a run that was
    stored before a setting existed has its default."""
    skipped = ("regulariser", "train.seed", "purpose", "recipe")
    kept = {key: value for key, value in flatten(member.run.spec.whole()).items() if not key.startswith(skipped)}
    return repr(sorted(kept.items()))


def correlations(methods: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Spearman's correlation of ρ and the densities with test metrics, over trained methods; at least 3 of them."""
    found: dict[str, Any] = {}
    for key in ("rho", "pi_intra", "pi_inter", "pi_ratio"):
        for metric in TESTED:
            both = [(own[key]["mean"], own[metric]["mean"]) for own in methods.values()
                    if own["kind"] != "untrained" and key in own and metric in own]  # fmt: skip
            if len(both) < 3:
                continue
            x, y = np.array(both).T
            value, p = rank_correlation(x, y)
            found.setdefault(key, {})[metric] = {"spearman": value, "p": p, "methods": len(both)}
    return found


def rank_correlation(x: np.ndarray, y: np.ndarray) -> tuple[float | None, float | None]:
    """Spearman's correlation and its two-sided p value, exact for up to 7 values; None where one side is constant."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None, None
    a, b = stats.rankdata(x), stats.rankdata(y)
    found = stats.spearmanr(x, y)
    if len(a) > 7:
        return float(found.statistic), float(found.pvalue)
    here = abs(float((a - a.mean()) @ b))
    others = [abs(float((a - a.mean()) @ np.array(each))) for each in permutations(b)]
    return float(found.statistic), float(np.mean(np.array(others) >= here - 1e-9))


def _number(value: float | None, signed: bool = False) -> str:
    return "–" if value is None else f"{value:{'+' if signed else ''}.3f}"


def _span(own: Mapping[str, Any], signed: bool = False) -> str:
    return "–" if own["low"] is None else f"{_number(own['low'], signed)} to {_number(own['high'], signed)}"
