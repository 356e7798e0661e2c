"""How are training embeddings spread? Their spectrum and density."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from nearkin.analysis.base import Analysis, Table
from nearkin.analysis.embedded import training_set
from nearkin.analysis.over_runs import found_in, methods_of, stored, stored_arrays
from nearkin.analysis.tested import embeddings_and_columns
from nearkin.comparison.gather import Gathered
from nearkin.errors import NearkinError
from nearkin.evaluation.metrics.space import class_spectra, pi_inter, pi_intra, rho, singular_values
from nearkin.registry import ANALYSES
from nearkin.runs.store import Run

if TYPE_CHECKING:
    from nearkin.analysis.spectrum_study import SpectrumOfStudy

KEEP = 35  # singular values of a class that are kept, as Roth et al. show them


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
        from nearkin.analysis.spectrum_study import SpectrumOfStudy

        return SpectrumOfStudy(methods_of(gathered), found_in(cls, gathered))

    @property
    def summary(self) -> dict[str, Any]:
        """ρ and densities."""
        return self.told

    def rows(self) -> list[list[str]]:
        """The numbers in words."""
        names = {
            "rho": "ρ, without the largest singular value",
            "rho_all": "ρ, all singular values",
            "pi_intra": "mean distance within a class",
            "pi_inter": "mean distance between class means",
            "pi_ratio": "their ratio",
        }
        first = self.singular / self.singular.sum()
        return [
            *([words, f"{self.told[key]:.4f}"] for key, words in names.items()),
            ["share of the largest singular value", f"{100 * first[0]:.1f} %"],
        ]

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
    told = {
        "images": len(z),
        "classes": len(np.unique(labels)),
        "rho": rho(z),
        "rho_all": rho(z, drop=0),
        "pi_intra": intra,
        "pi_inter": inter,
        "pi_ratio": intra / max(inter, 1e-8),
    }
    return Spectrum(told, singular_values(z), class_spectra(z, labels, keep=KEEP))
