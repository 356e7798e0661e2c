"""Folds whose embeddings are joined: one long vector per test image, evaluated once (Musgrave et al. 2020)."""

import hashlib
import json
from pathlib import Path

import numpy as np
import torch

from nearkin.errors import NearkinError
from nearkin.evaluation import retrieval
from nearkin.numerics import unit
from nearkin.runs.store import Run, Store
from nearkin.runs.test import TestSet
from nearkin.storage import atomic


def concatenated(runs: list[Run]) -> TestSet:
    """The test images of several runs of one test split: their unit vectors side by side, (N, D₁ + D₂ + ...).

    A NearkinError when the runs were tested on different images.
    """
    parts, first = [], None
    for run in runs:
        with np.load(run.path / "embeddings.npz") as held:
            z, rows = torch.from_numpy(held["embeddings"]), (held["rows"], held["labels"], held["roles"])
        if first is None:
            first = rows
        elif not all(np.array_equal(a, b) for a, b in zip(first, rows, strict=True)):
            raise NearkinError(f"runs {runs[0].hash} and {run.hash} were tested on different images: nothing to join")
        parts.append(unit(z))                                       # (N, D)
    if first is None:
        raise NearkinError("no run to join")
    return TestSet(torch.cat(parts, 1), first[1], first[2])


def joined_metrics(runs: list[Run], metrics: list[str], folder: Path) -> dict[str, float]:
    """The metrics of joined runs, computed once and kept in `folder`."""
    name = hashlib.sha256(json.dumps([[run.hash for run in runs], retrieval.VERSION]).encode()).hexdigest()[:12]
    file = folder / f"{name}.json"
    known = json.loads(file.read_text())["metrics"] if file.exists() else {}
    if missing := [metric for metric in metrics if metric not in known]:
        Store(runs[0].path.parent).opened(runs[0], [f"{metric} of {len(runs)} folds joined" for metric in missing])
        known |= concatenated(runs).evaluate(metrics=missing).metrics
        with atomic(file) as scratch:
            told = {"runs": [run.hash for run in runs], "metrics": known}
            (scratch / file.name).write_text(json.dumps(told, indent=1) + "\n")
    return {metric: known[metric] for metric in metrics}
