"""How many of SoftTriple's centres are left?"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components

from nearkin.analysis.base import Analysis
from nearkin.analysis.embedded import learned
from nearkin.errors import NearkinError
from nearkin.numerics import unit
from nearkin.present import Bars, Chart, Column, Lines, Table
from nearkin.registry import ANALYSES
from nearkin.runs.store import Run
from nearkin.units import COUNT, NUMBER, counted

THRESHOLDS = tuple(float(f"{t:.3g}") for t in np.geomspace(0.003, 1.5, 28))


@ANALYSES.register("centres")
@dataclass(frozen=True)
class Centres(Analysis):
    """How many of the K centres of each class stay distinct under the term that draws them together (loss=soft_triple).

        two centres are one where ‖v_ck - v_cl‖ ≤ γ ln 2, and all that such steps lead to

    v are unit vectors, γ the temperature of the loss's softmax over the centres of a class. Its weights of two centres
    have the ratio e^{e·(v_k - v_l)/γ}, at most e^{d/γ} at a distance of d: below γ ln 2 no embedding whatever weighs
    one of them twice as much as the other. Distances of exactly 0 do not occur, because an optimiser's steps have a
    length. The curve over all thresholds shows how much hangs on this one.

    Source: Qian et al. 2019 (ICCV), whose L2,1 term merges superfluous centres; the threshold is ours. Shapes: C
    classes, K centres of each.

    Parameters:
        gamma: γ of the loss.
        distances: (C, K, K), between the centres of a class.
    """

    gamma: float
    distances: np.ndarray

    @classmethod
    def of(cls, run: Run) -> "Centres":
        """Those of a finished run with loss=soft_triple."""
        loss = run.spec.loss
        if loss.name != "soft_triple":
            raise NearkinError(f"run {run.hash} has loss={loss.name}; centres are learned with loss=soft_triple")
        proxies = learned(run, "centres")["loss.proxies"]  # (K·C, D)
        v = unit(proxies.double()).view(loss.params["centres"], -1, proxies.shape[1]).transpose(0, 1)  # (C, K, D)
        return cls(loss.params["gamma"], torch.cdist(v, v, compute_mode="donot_use_mm_for_euclid_dist").numpy())

    @property
    def threshold(self) -> float:
        """The distance up to which two centres are one."""
        return self.gamma * math.log(2)

    def distinct(self, threshold: float) -> np.ndarray:
        """(C,), the centres of each class that are left where those up to this distance are one."""
        return np.array([connected_components(of_class <= threshold, directed=False)[0] for of_class in self.distances])

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """The numbers; `one` is the number of classes with a single centre left."""
        left, k = self.distinct(self.threshold), self.distances.shape[1]
        return {
            "classes": len(left),
            "centres": k,
            "threshold": self.threshold,
            "distinct": float(left.mean()),
            "fewest": int(left.min()),
            "most": int(left.max()),
            "one": int((left == 1).sum()),
            "all": int((left == k).sum()),
        }

    @cached_property
    def tables(self) -> list[Table]:
        """The numbers; how many classes have how many centres left; the mean over thresholds."""
        n, left = self.numbers, self.distinct(self.threshold)
        words = {
            "distinct": ("centres left, mean over classes", NUMBER),
            "fewest": ("fewest of a class", COUNT),
            "most": ("most of a class", COUNT),
            "one": ("classes with a single one", COUNT),
            "all": ("classes with all of them", COUNT),
        }
        rows = [[what, n[key], measure.name] for key, (what, measure) in words.items()]
        note = f"{counted(n['classes'], 'class', 'classes')} with {counted(n['centres'], 'centre')} each; "
        note += f"one up to a distance of {NUMBER.text(self.threshold)} (γ ln 2)"
        first = Table("numbers", ["what", Column("value", unit="unit"), "unit"], rows, "Centres left", [note])
        counts = [[k, int((left == k).sum())] for k in range(1, n["centres"] + 1)]
        columns = [Column("left", "centres left", COUNT), Column("classes", unit=COUNT)]
        curve = [[t, float(self.distinct(t).mean())] for t in THRESHOLDS]
        over = [Column("threshold", unit=NUMBER), Column("distinct", "centres left", NUMBER)]
        return [
            first,
            Table("counts", columns, counts, "Classes by centres left"),
            Table("thresholds", over, curve, detail=True),
        ]

    @property
    def charts(self) -> list[Chart]:
        """Classes by centres left, and the mean over thresholds."""
        n = self.numbers
        mean = f"{NUMBER.text(n['distinct'])} of {n['centres']}"
        alt = f"Bars: {mean} centres are left on average."
        words: dict[str, Any] = {"name": "counts", "title": "Centres left, of how many classes", "alt": alt}
        bars = Bars(**words, table=self.tables[1], x="left", y="classes")
        alt = f"A falling line over the threshold; at γ ln 2 = {NUMBER.text(self.threshold)} it is at {mean}."
        words = {"name": "thresholds", "title": "Centres left, by the distance up to which two are one", "alt": alt}
        return [bars, Lines(**words, table=self.tables[2], x="threshold", y="distinct", log=True)]
