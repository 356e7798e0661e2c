"""What an analysis looks at: the training images of a finished run, as its chosen model embeds them."""

from dataclasses import dataclass

import numpy as np

from nearkin.engine.device import pick_device
from nearkin.engine.embed import embed
from nearkin.errors import NearkinError
from nearkin.numerics import unit
from nearkin.runs.defaults import resolve
from nearkin.runs.embed import load_model, rebuild
from nearkin.runs.prepare import make_source, prepare, read_data
from nearkin.runs.store import Run


@dataclass(frozen=True)
class TrainingSet:
    """Labels number the classes as the objective of the run does."""

    x: np.ndarray                                                   # (N, D) float32, unit vectors
    labels: np.ndarray                                              # (N,) 0..C-1
    classes: tuple[str, ...]                                        # C names


def check_finished(run: Run) -> None:
    """Refuse a run that is not finished."""
    if not run.done:
        raise NearkinError(f"run {run.hash} is not finished; start the same training again to finish it")


def training_set(run: Run, *, device: str = "auto") -> TrainingSet:
    """The images that the run was trained on, not augmented; its validation classes are not among them."""
    check_finished(run)
    spec = resolve(run.spec)
    data = read_data(spec.data)
    prepared = prepare(spec, {repr(spec.data): data})
    if prepared.data_hash != run.result["data_hash"]:
        raise NearkinError(
            f"run {run.hash} was trained on data {run.result['data_hash']}; "
            f"{spec.data.root or spec.data.name} is data {prepared.data_hash} here"
        )
    model = rebuild(spec)
    load_model(model, run)                      # before the source: features behind a cut are found by their weights
    model.to(pick_device(device))
    source, rows = make_source(prepared, model), prepared.split.train
    classes = np.unique(data.table.labels[rows])
    x = unit(embed(model, source, rows, pick_device(device))).numpy()
    return TrainingSet(x, prepared.labels, tuple(data.table.classes[c] for c in classes))
