"""Do the distributions that HIST learns describe its classes?"""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import stats

from nearkin.analysis.base import Analysis
from nearkin.analysis.embedded import check_finished, training_set
from nearkin.errors import NearkinError
from nearkin.numerics import unit
from nearkin.registry import ANALYSES
from nearkin.runs.store import Run

COLUMNS = ("number", "class", "images", "spread", "size", "own_cosine", "best_other_cosine", "best_other_class")


@ANALYSES.register("prototypes")
@dataclass(frozen=True)
class Prototypes(Analysis):
    """Learned means against true class means, learned variances against the spread of the classes (loss=hist).

        cosine_ce = cos(μ_c, mean_{i∈e} x_i)        learned mean of class c, true mean of class e: large where c = e
        spread_c = mean_{i∈c} ‖μ̂_c - x_i‖²          how far a class lies around its learned mean
        size_c = ‖Q_c‖_F = √Σ_d q_cd²               how wide its learned distribution is: should grow with the spread

    x_i unit embeddings of the training images, μ̂_c = μ_c/‖μ_c‖, q = exp(ReLU6(v)).

    Source: Lim et al. 2022, figure 2. Shapes: N images, C classes, D dimensions.

    Parameters:
        classes: C names.
        images: (C,) training images of each class.
        cosine: (C, C), learned means in rows, true means in columns.
        spread: (C,) mean squared distance of a class's embeddings to its learned mean.
        size: (C,) width of its learned distribution.
    """

    folder: ClassVar[str] = ""  # its files lay beside those of the run at first

    classes: tuple[str, ...]  # C names
    images: np.ndarray  # (C,) how many a class has
    cosine: np.ndarray  # (C, C) learned means in rows, true in columns
    spread: np.ndarray  # (C,)
    size: np.ndarray  # (C,)

    @classmethod
    def of(cls, run: Run) -> "Prototypes":
        """Those of a finished run with loss=hist, against its training images."""
        return prototypes_of(run)

    @property
    def own(self) -> np.ndarray:
        """(C,) cosine of each learned mean with the true mean of its class."""
        return self.cosine.diagonal()  # (C,)

    @cached_property
    def others(self) -> np.ndarray:
        """The matrix without its diagonal: -inf there."""
        others = self.cosine.copy()
        np.fill_diagonal(others, -np.inf)
        return others  # (C, C)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The numbers; None where a correlation is undefined, `undefined` then says why."""
        c = len(self.classes)
        undefined = self._undefined()
        return {
            "classes": c,
            "images": int(self.images.sum()),
            "diagonal": float(self.own.mean()),
            "off_diagonal": float((self.cosine.sum() - self.own.sum()) / (c * (c - 1))),
            "own_class_share": float((self.cosine.argmax(1) == np.arange(c)).mean()),
            "pearson": None if undefined else float(stats.pearsonr(self.spread, self.size).statistic),
            "spearman": None if undefined else float(stats.spearmanr(self.spread, self.size).statistic),
            "n": c,
            "undefined": undefined,
        }

    def rows(self) -> list[list[str]]:
        """The numbers in words, for a terminal."""
        s = self.summary

        def correlation(name: str) -> str:
            return s["undefined"] if s["undefined"] else f"{s[name]:.3f} (n = {s['n']})"

        return [
            ["mean cosine with the own class mean", f"{s['diagonal']:.3f}"],
            ["mean cosine with other class means", f"{s['off_diagonal']:.3f}"],
            ["nearest to the own class mean", f"{100 * s['own_class_share']:.1f} % of {s['classes']} classes"],
            ["width against spread, Pearson", correlation("pearson")],
            ["width against spread, Spearman", correlation("spearman")],
        ]

    def files(self) -> dict[str, Callable[[Path], Any]]:
        """One row per class, the matrix, two figures."""
        from nearkin.analysis import figures  # matplotlib only where something is drawn

        return {
            "prototypes.csv": lambda path: _write_rows(self, path),
            "prototypes_matrix.npy": lambda path: np.save(path, self.cosine.astype(np.float32)),
            "prototypes_matrix.png": lambda path: figures.prototype_matrix(self.cosine, self.summary).savefig(path),
            "prototypes_spread.png": lambda path: figures.prototype_spread(
                self.spread, self.size, self.summary
            ).savefig(path),
        }

    def _undefined(self) -> str | None:
        if len(self.classes) < 3:
            return f"{len(self.classes)} classes are too few"
        for what, values in (("‖Q_c‖_F", self.size), ("the spread", self.spread)):
            if np.ptp(values) <= 1e-12 * np.abs(values).max():
                return f"{what} is the same for all classes"
        return None


def prototypes(
    mu: np.ndarray, v: np.ndarray | None, x: np.ndarray, labels: np.ndarray, classes: tuple[str, ...] | None = None
) -> Prototypes:
    """`mu` (C, D), `v` (C, D) or None (q = 1), `x` (N, D) unit vectors, `labels` (N,) 0..C-1, each at least once."""
    c = len(mu)
    images = np.bincount(labels, minlength=c)
    if c < 2 or len(images) != c or not images.all():
        seen = np.count_nonzero(images)
        raise NearkinError(f"{c} learned means for images of {seen} classes: one for each, of at least 2 classes")
    mu_hat, x = _unit(mu), x.astype(np.float64)
    means = np.zeros_like(mu_hat)  # (C, D)
    np.add.at(means, labels, x)
    q = np.exp(np.clip(np.zeros(mu.shape) if v is None else v.astype(np.float64), 0, 6))  # (C, D)
    square = ((mu_hat[labels] - x) ** 2).sum(1)  # (N,)
    return Prototypes(
        classes=classes or tuple(str(i) for i in range(c)),
        images=images,
        cosine=mu_hat @ _unit(means).T,
        spread=np.bincount(labels, square) / images,
        size=np.sqrt((q**2).sum(1)),
    )


def _unit(z: np.ndarray) -> np.ndarray:
    return unit(torch.from_numpy(z).double()).numpy()


def prototypes_of(run: Run) -> Prototypes:
    """Those of a finished run with loss=hist, against its training images."""
    loss = run.spec.loss
    if loss.name != "hist":
        raise NearkinError(f"run {run.hash} has loss={loss.name}; prototypes are learned with loss=hist")
    graph = loss.params.get("graph", "soft")
    if graph != "soft" and not loss.params.get("distribution_loss", True):
        raise NearkinError(
            f"run {run.hash} has loss.graph={graph} loss.distribution_loss=false: nothing trained its prototypes; "
            "they are with loss.graph=soft or loss.distribution_loss=true"
        )
    check_finished(run)
    if not run.result["epochs_trained"]:
        raise NearkinError(f"run {run.hash} has train.epochs=0: nothing trained its prototypes")
    if run.spec.method is not None:
        method = run.spec.method.name
        raise NearkinError(f"run {run.hash} has method={method}, which trains several sets of prototypes")
    learned = (run.load("model.pt") or {}).get("objective", {})
    if "loss.proxies" not in learned:
        raise NearkinError(f"{run.path}/model.pt holds no learned means (loss.proxies)")
    mu, v = learned["loss.proxies"], learned.get("loss.v")
    seen = training_set(run)
    return prototypes(mu.float().numpy(), None if v is None else v.float().numpy(), seen.x, seen.labels, seen.classes)


def _write_rows(found: Prototypes, path: Path) -> None:
    nearest = found.others.argmax(1)  # (C,) the other class whose mean is closest
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for c, name in enumerate(found.classes):
            numbers = (found.spread[c], found.size[c], found.own[c], found.others[c, nearest[c]])
            writer.writerow([c, name, found.images[c], *(f"{n:.6f}" for n in numbers), found.classes[nearest[c]]])
