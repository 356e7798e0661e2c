"""Readings: which epoch of a finished run a row tells, and which of its weights.

The rule of training is validation, or the last epoch. The literature mostly tells the epoch that was best on the test
images. That can be read from the test curve of a run (train.curve=true) once the run is final, and every row that does
so says so: it is no result, because the test images chose it. A run with train.average and train.blend is one training
with three readings at the epoch of its rule: the weights as trained, their average, and the blend that is stored.
"""

import math
from collections.abc import Callable
from typing import Any

from nearkin.evaluation.metrics.base import metric_of
from nearkin.runs.run import Run

PICKED = "picked on the test images"  # the brand of a reading that is no result


def numbers(run: Run, select: str) -> dict[str, float | None]:
    """The test metrics of a run, as train.* those of its training embeddings, and its validation."""
    final = run.read_json("final.json")
    space = final["train"]
    validation = {f"validation {select}": final["validation"].get(select)}
    return run.metrics() | {f"train.{name}": value for name, value in space.items()} | validation


def best_epoch(run: Run, metric: str) -> float | None:
    """The first epoch at which a metric was best, from the log: on validation images where they were looked at, else
    from the test curve. It says how fast a run converged and chooses nothing. None where neither is stored."""
    points, sign = run.curve(), metric_of(metric).sign or 1
    for split in ("validation", "test"):
        known = {point["epoch"]: point.get(f"{split}.{metric}") for point in points}
        values = {epoch: value for epoch, value in known.items() if value is not None and math.isfinite(value)}
        if values:
            return float(max(values, key=lambda epoch: (sign * values[epoch], -epoch)))
    return None


Curve = dict[str, Any]  # curve.json


def _last(curve: Curve) -> dict[str, float]:
    return curve["epochs"][-1]["metrics"]


def _best_recall(curve: Curve) -> dict[str, float]:
    known = [point["metrics"] for point in curve["epochs"] if "recall@1" in point["metrics"]]
    return max(known, key=lambda metrics: metrics["recall@1"], default={})


def _best_each(curve: Curve) -> dict[str, float]:
    """Without metrics of which neither end is the good one: they have no best epoch."""
    best, points = {1: max, -1: min}, curve["epochs"]
    return {
        metric: best[sign](point["metrics"][metric] for point in points)
        for metric in points[0]["metrics"]
        if (sign := metric_of(metric).sign)
    }


def _averaged(curve: Curve) -> dict[str, float]:
    return _at(curve["epochs"], curve["validated"])


def _trained(curve: Curve) -> dict[str, float]:
    points = curve["trained"] if "trained" in curve else curve["epochs"]  # without an average they are the same
    return _at(points, curve["validated"])


def _at(points: list[dict[str, Any]], epoch: int) -> dict[str, float]:
    return next(point["metrics"] for point in points if point["epoch"] == epoch)


# name -> what a table calls it, and how it is read from the test curve; None: the run's own result
READINGS: dict[str, tuple[str, Callable[[Curve], dict[str, float]] | None]] = {
    "chosen": ("chosen by its rule", None),
    "trained": ("chosen, as trained", _trained),
    "averaged": ("chosen, averaged", _averaged),
    "last": ("last", _last),
    "test_best": (f"best recall@1, {PICKED}", _best_recall),
    "test_best_each": (f"best of each metric, {PICKED}", _best_each),
}


def read(run: Run, reading: str, select: str) -> dict[str, float | None]:
    """What a reading tells of a run that is done; an untrained network has one epoch. Empty without a test curve."""
    _, of = READINGS[reading]
    chosen = numbers(run, select)
    if of is None or run.read_json("final.json")["epochs_trained"] == 0:
        return chosen
    if not (run.path / "curve.json").exists():
        return {}
    return {**of(run.read_json("curve.json"))}
