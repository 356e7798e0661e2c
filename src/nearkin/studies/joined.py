"""Folds whose embeddings are joined: one long vector per test image, evaluated once (Musgrave et al. 2020)."""

import hashlib
import json
from pathlib import Path

import torch

from nearkin.errors import NearkinError
from nearkin.evaluation import retrieval
from nearkin.numerics import unit
from nearkin.runs.store import Run, Store
from nearkin.runs.tested import TestSet
from nearkin.storage import atomic, with_sum, without_sum


def concatenated(runs: list[Run]) -> TestSet:
    """The test images of several runs of one test split: their unit vectors side by side, (N, D₁ + D₂ + ...).

    A NearkinError when the runs were tested on different images.
    """
    if not runs:
        raise NearkinError("no run to join")
    sets = [TestSet.of(run) for run in runs]
    first = sets[0]
    for run, other in zip(runs, sets, strict=True):
        if not first.same_images(other):
            raise NearkinError(f"runs {runs[0].hash} and {run.hash} were tested on different images: nothing to join")
    z = torch.cat([unit(tested.z) for tested in sets], 1)  # (N, D₁ + D₂ + ...)
    return TestSet(z, first.labels, first.roles, first.rows)


def joined_metrics(runs: list[Run], metrics: list[str], folder: Path) -> dict[str, float]:
    """The metrics of joined runs, computed once and kept in `folder`; computing them opens test labels."""
    known = stored_joined(runs, folder)
    if missing := [metric for metric in metrics if metric not in known]:
        Store(runs[0].path.parent).opened(
            runs[0], [f"{metric} of {len(runs)} folds joined" for metric in missing], retrieval.VERSION
        )
        known |= concatenated(runs).evaluate(metrics=missing).metrics
        file = _file(runs, folder)
        with atomic(file) as scratch:
            content = {"runs": [run.hash for run in runs], "metrics": known}
            (scratch / file.name).write_text(json.dumps(with_sum(content), indent=1) + "\n")
    return {metric: known[metric] for metric in metrics}


def stored_joined(runs: list[Run], folder: Path) -> dict[str, float]:
    """The metrics of joined runs that are kept in `folder`; nothing is computed."""
    file = _file(runs, folder)
    try:
        return without_sum(json.loads(file.read_text()))["metrics"]
    except (OSError, ValueError, KeyError, TypeError):  # absent or damaged: it is computed again
        return {}


def _file(runs: list[Run], folder: Path) -> Path:
    name = hashlib.sha256(json.dumps([[run.hash for run in runs], retrieval.VERSION]).encode()).hexdigest()[:12]
    return folder / f"{name}.json"
