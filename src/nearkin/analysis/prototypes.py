"""Do the distributions that HIST learns describe its classes?"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import stats

from nearkin.analysis.base import Analysis
from nearkin.analysis.embedded import learned, training_set
from nearkin.errors import NearkinError
from nearkin.numerics import unit
from nearkin.present import Chart, Column, Heatmap, Pictures, Points, Table, coloured
from nearkin.registry import ANALYSES
from nearkin.runs.store import Run
from nearkin.units import COUNT, NUMBER, SHARE, counted

MOST = 120  # classes whose matrix is a table; those of more are a picture


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

    classes: tuple[str, ...]
    images: np.ndarray
    cosine: np.ndarray
    spread: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, run: Run) -> "Prototypes":
        """Those of a finished run with loss=hist, against its training images."""
        return prototypes_of(run)

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """The numbers; None where a correlation is undefined, `undefined` then says why."""
        c, diagonal, undefined = len(self.classes), self.cosine.diagonal(), self._undefined()
        return {
            "classes": c,
            "images": int(self.images.sum()),
            "diagonal": float(diagonal.mean()),
            "off_diagonal": float((self.cosine.sum() - diagonal.sum()) / (c * (c - 1))),
            "own_class_share": float((self.cosine.argmax(1) == np.arange(c)).mean()),
            "pearson": None if undefined else float(stats.pearsonr(self.spread, self.size).statistic),
            "spearman": None if undefined else float(stats.spearmanr(self.spread, self.size).statistic),
            "n": c,
            "undefined": undefined,
        }

    @cached_property
    def tables(self) -> list[Table]:
        """The numbers; one row per class; learned against true means."""
        return [self._numbers_table(), self._classes_table(), self._matrix_table()]

    def _numbers_table(self) -> Table:
        words = {
            "diagonal": ("mean cosine with the own class mean", NUMBER),
            "off_diagonal": ("mean cosine with other class means", NUMBER),
            "own_class_share": ("nearest to the own class mean, % of classes", SHARE),
            "pearson": ("width against spread, Pearson", NUMBER),
            "spearman": ("width against spread, Spearman", NUMBER),
        }
        rows = [[what, self.numbers[key], unit.name] for key, (what, unit) in words.items()]
        notes = [f"{counted(self.numbers['n'], 'class', 'classes')}, {counted(self.numbers['images'], 'image')}"]
        notes += [f"no correlation: {self.numbers['undefined']}"] * bool(self.numbers["undefined"])
        return Table("numbers", ["what", Column("value", unit="unit"), "unit"], rows, notes=notes)

    def _classes_table(self) -> Table:
        others = np.where(np.eye(len(self.classes), dtype=bool), -np.inf, self.cosine)  # (C, C)
        nearest = others.argmax(1)  # (C,) the other class whose mean is closest
        values = (self.images, self.spread, self.size, self.cosine.diagonal(), others.max(1))
        numbers = zip(*(value.tolist() for value in values), strict=True)
        rows = [
            [c, name, *of_class, self.classes[nearest[c]]]
            for c, (name, of_class) in enumerate(zip(self.classes, numbers, strict=True))
        ]
        columns = [
            Column("number", unit=COUNT),
            "class",
            Column("images", unit=COUNT),
            Column("spread", unit=NUMBER, about="mean squared distance of its embeddings to its learned mean"),
            Column("size", "width", NUMBER, about="‖Q‖ (Frobenius) of its learned distribution"),
            Column("own_cosine", "cosine with its mean", NUMBER),
            Column("best_other_cosine", "with the nearest other", NUMBER),
            Column("best_other_class", "which is"),
        ]
        return Table("classes", columns, rows, "Classes", detail=True)

    def _matrix_table(self) -> Table:
        """Learned and true means of every two classes; of very many classes there is a picture alone."""
        names = [f"{c} {name}" for c, name in enumerate(self.classes)]
        cells = product(names, repeat=2) if len(names) <= MOST else ()
        rows = [[*both, value] for both, value in zip(cells, self.cosine.ravel().tolist(), strict=False)]
        return Table("matrix", ["learned", "true", Column("cosine", unit=NUMBER)], rows, detail=True)

    @property
    def charts(self) -> list[Chart]:
        """Learned against true means, and the width of each distribution against the spread of its class."""
        n, limit = self.numbers, float(np.abs(self.cosine).max())
        alt = (
            f"Learned means in rows, true class means in columns, their cosine: {SHARE.text(n['own_class_share'])} % "
            f"are nearest to their own; the mean cosine is {NUMBER.text(n['diagonal'])} on the diagonal and "
            f"{NUMBER.text(n['off_diagonal'])} elsewhere."
        )
        words: dict[str, Any] = {"name": "matrix", "title": "Learned means against true class means", "alt": alt}
        axes: dict[str, Any] = {"x": "true", "y": "learned", "x_title": "true mean", "y_title": "learned mean"}
        matrix: Chart = Heatmap(**words, table=self.tables[2], value="cosine", band=[-limit, limit], **axes)
        if not self.tables[2].rows:
            matrix = Pictures(**words, images=[[coloured(self.cosine, "BrBG", -limit, limit)]])
        related = f"Pearson {NUMBER.text(n['pearson'])}, Spearman {NUMBER.text(n['spearman'])}"
        words |= {"name": "spread", "title": "Width of the learned distributions against the spread of their classes"}
        words |= {"alt": f"One point per class; {n['undefined'] or related}."}
        axes = {"x": "spread", "x_title": "mean squared distance of a class's embeddings to its learned mean"}
        axes |= {"y": "size", "y_title": "width of its learned distribution, ‖Q‖ (Frobenius)"}
        spread = Points(**words, table=self.tables[1], text="class", **axes)
        return [matrix, spread]

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The matrix of all classes."""
        return {"cosine": self.cosine.astype(np.float32)}

    def save(self, folder: Path) -> list[Path]:
        """The classes are written as CSV, too."""
        return [*super().save(folder), self.tables[1].write(folder / "prototypes.csv")]

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
    objective = learned(run, "prototypes")
    mu, v = objective["loss.proxies"], objective.get("loss.v")
    seen = training_set(run)
    return prototypes(mu.float().numpy(), None if v is None else v.float().numpy(), seen.x, seen.labels, seen.classes)
