"""How hard does a loss pull at a pair? ∂L/∂s of every loss, and what moves it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files as resources
from typing import Any, ClassVar

import numpy as np

from nearkin.analysis._pair_weights import BETWEEN, CLASSES, CLOSED_FORMS, EACH, WITHIN, Place
from nearkin.analysis.base import Analysis
from nearkin.comparison.gather import Gathered
from nearkin.errors import NearkinError
from nearkin.present import Chart, Column, Lines, Panels, Table
from nearkin.progress import track
from nearkin.registry import ANALYSES, LOSSES
from nearkin.units import NUMBER, WORDS

GRID = np.linspace(-0.9, 0.95, 56)
SWEEP = np.linspace(-0.4, 0.7, 9)  # of a second pair
SPOTS = (-0.3, 0.15, 0.6)  # of the pair itself meanwhile
KINDS = ("negative", "positive")
MARKS = ("S", "N", "P")
STEPS = 4  # at most so many values: a hinge, or a count of active terms


@dataclass(frozen=True)
class Curve:
    """One loss: its weights along the similarity of a positive and of a negative pair, and what moves them."""

    name: str
    loss: str
    weights: dict[str, np.ndarray]  # positive, negative -> (G,) ∂L/∂s along GRID; NaN: no such vectors
    moved: dict[str, dict[str, str]]  # positive, negative -> S, N, P -> yes, step or no

    @property
    def largest(self) -> dict[str, float | None]:
        """The largest absolute weight of a negative and of a positive pair; None where no vectors have such a pair."""
        defined = {kind: np.abs(self.weights[kind][np.isfinite(self.weights[kind])]) for kind in KINDS}
        return {kind: float(weights.max()) if len(weights) else None for kind, weights in defined.items()}

    @property
    def height(self) -> float:
        """The largest of both, by which the chart divides."""
        return max(value or 0.0 for value in self.largest.values())


@ANALYSES.register("weights")
@dataclass(frozen=True)
class Weights(Analysis):
    """∂L/∂s of every registered loss against the similarity of a positive and of a negative pair; needs no run.

        w = ∂L/∂s of one pair, all other similarities fixed; below 0 it attracts, above 0 it repels

    The place is a batch of 4 classes of 3 samples whose similarities are 0.2 within a class and 0 between classes
    (analysis/_pair_weights.py); for proxy losses the pair is a sample and a proxy. Beside the curves: does the weight
    move with the pair's own similarity (S), with that of another negative pair at one of its ends (N), of another
    positive pair (P)? `step`: it takes a few values only, as a hinge does. Given runs, it looks at their losses with
    their settings instead.

    Source: the question and its marks: Psomas 2020, table 1, after Wang et al. 2019 (CVPR).

    Parameters:
        curves: one for each loss.
        left_out: loss -> why it has no curve.
    """

    together: ClassVar[bool] = True
    needs_runs: ClassVar[bool] = False

    curves: list[Curve]
    left_out: dict[str, str]

    @classmethod
    def between(cls, gathered: Gathered | None = None) -> "Weights":
        """Of all registered losses with their defaults; or of the losses of given runs with their settings."""
        cases = default_cases() if gathered is None else run_cases(gathered)
        curves, left_out = [], {}
        for name, place in track(cases.items(), "Pair weights", len(cases)):
            try:
                along = curve(place)
                curves.append(Curve(name, place.loss, along, moves(place, along)))
            except (NearkinError, RuntimeError, TypeError, ValueError) as error:  # a loss from outside
                left_out[name] = " ".join(str(error).split())[:200]
        if not curves:
            raise NearkinError(f"no loss has pair weights: {'; '.join(f'{k}: {v}' for k, v in left_out.items())}")
        return cls(curves, left_out)

    @property
    def numbers(self) -> dict[str, Any]:
        """What moves the weight of a pair, for every loss, and the published marks."""
        marks = published()
        return {
            "place": {"classes": CLASSES, "each": EACH, "within": WITHIN, "between": BETWEEN},
            "losses": [
                {"name": c.name, "closed_form": c.loss in CLOSED_FORMS, **c.moved}
                | {"largest": c.largest, "published": marks.get(c.loss)}
                for c in self.curves
            ],
            "left_out": self.left_out,
        }

    @cached_property
    def tables(self) -> list[Table]:
        """Measured marks beside the published ones; the curves."""
        marks, records, points = published(), [], []
        for c in self.curves:
            measured = {f"{kind}: {key}": c.moved[kind][key] for kind in KINDS for key in MARKS}
            printed = {f"printed {key}": mark for key, mark in marks.get(c.loss, {}).items()}
            records.append({"loss": c.name, **measured, **printed})
            for kind in KINDS:
                for s, w in zip(GRID.tolist(), c.weights[kind].tolist(), strict=True):
                    both = [None, None] if np.isnan(w) else [w, w / (c.height or 1.0)]
                    points.append([c.name, f"{kind} pair", s, *both])
        notes = [
            "S: the weight of a pair moves with its own similarity; N, P: with that of another negative or positive "
            "pair at one of its ends; step: between a few values, through a hinge or the number of active terms",
            "printed: Psomas 2020, table 1, which has five losses and counts the miner of multi_similarity with it; a "
            "hinge on s_an - s_ap counts there for P alone, measured it moves with both",
        ]
        notes += [f"{name} is left out: {why}" for name, why in self.left_out.items()]
        header = ["loss", *(f"{kind}: {key}" for kind in KINDS for key in MARKS), *(f"printed {key}" for key in MARKS)]
        columns = [
            "loss",
            "pair",
            Column("similarity", "similarity s of the pair", NUMBER, digits=2),
            Column("weight", "∂L/∂s", NUMBER),
            Column("relative", "∂L/∂s / largest", NUMBER),
        ]
        title = "What moves the weight of a pair, measured"
        measured_table = Table.of_records("marks", header, records, title=title, notes=notes)
        return [measured_table, Table("curves", columns, points, detail=True)]

    @property
    def charts(self) -> list[Chart]:
        """One small chart per loss: its weights divided by the largest, whose value stands in the title."""
        table, panels = self.tables[1], []
        axes: dict[str, Any] = {"x": "similarity", "y": "relative", "by": "pair", "x_title": "s", "y_title": " "}
        for i, c in enumerate(self.curves):
            title = f"{c.name.replace('_', ' ')} (x {WORDS.text(c.height, 2)})"
            panels.append(Lines(name=f"curve-{i}", title=title, table=table, only={"loss": c.name}, line=0.0, **axes))
        alt = (
            "Weight of a positive pair (below 0: attracts) and of a negative pair (above 0: repels) against the "
            "similarity of the pair, divided by the largest of the loss, whose value stands in the title."
        )
        return [Panels(name="curves", title="How hard every loss pulls at a pair", charts=panels, across=5, alt=alt)]


def registered() -> list[str]:
    """All registered losses."""
    return LOSSES.names()


def default_cases() -> dict[str, Place]:
    """Every registered loss with its defaults, and multi-similarity with the miner that its source has."""
    cases = {name: Place(name) for name in registered()}
    if "multi_similarity" in cases:
        cases["multi_similarity with its miner"] = Place("multi_similarity", miner=("multi_similarity", ()))
    return cases


def run_cases(gathered: Gathered) -> dict[str, Place]:
    """The losses of tested runs, each setting once; untrained networks have none. A miner counts if it gives masks."""
    cases: dict[Place, str] = {}
    for member in gathered.tested:
        if member.untrained:
            continue
        spec = member.run.spec
        settings = tuple(sorted(spec.loss.params.items()))
        miner = None
        if spec.miner is not None and spec.miner.name == "multi_similarity":
            miner = (spec.miner.name, tuple(sorted(spec.miner.params.items())))
        place = Place(spec.loss.name, settings, miner)
        cases.setdefault(place, ", ".join(member.labels.values()) or spec.loss.name)
    if not cases:
        raise NearkinError(f"{gathered.name}: no trained run, so there is no loss to look at")
    names = list(cases.values())
    return {name if names.count(name) == 1 else f"{name} {i}": place for i, (place, name) in enumerate(cases.items())}


def curve(place: Place) -> dict[str, np.ndarray]:
    """∂L/∂s along GRID for a positive and a negative pair; NaN where no vectors have these similarities."""
    curves = {}
    for kind, pair in place.pairs.items():
        weights = [place.weights([(pair, float(s))]) for s in GRID]
        curves[kind] = np.array([np.nan if w is None else w[pair] for w in weights])  # (G,)
    return curves


def moves(place: Place, curves: dict[str, np.ndarray]) -> dict[str, dict[str, str]]:
    """For a positive and a negative pair: does its weight move with its own similarity (S, along its curve), another
    negative's (N), another positive's (P): yes, step, or no."""
    marks = {}
    for kind, pair in place.pairs.items():
        sweeps: dict[str, list[list[float]]] = {"S": [curves[kind][np.isfinite(curves[kind])].tolist()]}
        for mark, others in (("N", "negative"), ("P", "positive")):
            sweeps[mark] = []
            for other in place.neighbours(pair, others):
                for s in SPOTS:
                    seen = [place.weights([(pair, s), (other, float(t))]) for t in SWEEP]
                    sweeps[mark].append([w[pair] for w in seen if w is not None])
        scale = max(abs(value) for several in sweeps.values() for sweep in several for value in sweep)
        marks[kind] = {mark: _mark(several, scale) for mark, several in sweeps.items()}
    return marks


def _mark(sweeps: Sequence[Sequence[float]], scale: float) -> str:
    """The strongest of: no, step, yes."""
    values = [len(set(np.round(np.array(sweep) / max(scale, 1e-300), 7).tolist())) for sweep in sweeps if sweep]
    most = max(values, default=1)
    return "no" if most == 1 else "step" if most <= STEPS else "yes"


@lru_cache(maxsize=1)
def published() -> dict[str, dict[str, bool]]:
    """Loss -> S, N, P as table 1 of Psomas 2020 prints them."""
    table = json.loads((resources("nearkin.literature") / "data" / "pair_weights.json").read_text(encoding="utf-8"))
    return {row["loss"]: {key: row[key] for key in MARKS} for row in table["rows"]}
