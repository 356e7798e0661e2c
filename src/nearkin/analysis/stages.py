"""What every stage of a run's network makes of its test images, kept with the run."""

import numpy as np
import torch

from nearkin.analysis.embedded import loaded
from nearkin.engine.embed import BATCH
from nearkin.runs.store import Run
from nearkin.storage import atomic

VERSION = 1  # raise it when the same images begin to give other features
FOLDER = "analysis"


def stage_features(run: Run, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Stage -> (N, C) its output, averaged over the map, for test images at these rows of the data set."""
    looked = loaded(run)
    parts: dict[str, list[np.ndarray]] = {}
    with torch.no_grad():
        for start in range(0, len(rows), BATCH):
            images = looked.pixels.test(rows[start : start + BATCH]).to(looked.device)
            x = looked.model.record.normalise(images)
            for stage in looked.model.backbone.stages:
                x = looked.model.backbone.run_stage(stage, x)
                pooled = x.mean((2, 3)) if x.ndim == 4 else x.flatten(1)
                parts.setdefault(stage, []).append(pooled.float().cpu().numpy())
    return {stage: np.concatenate(own) for stage, own in parts.items()}


def kept_features(run: Run, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Those of `stage_features`, from the run's folder where they are stored."""
    file = run.path / FOLDER / "similarity-stages.npz"
    key = np.array([VERSION, len(rows), *rows])
    try:
        with np.load(file) as held:
            if np.array_equal(held["key"], key):
                return {name: held[name] for name in held.files if name != "key"}
    except (OSError, ValueError, KeyError):
        pass
    features = stage_features(run, rows)
    with atomic(file) as scratch:
        np.savez(scratch / file.name, key=key, **features)  # type: ignore[arg-type]
    return features
