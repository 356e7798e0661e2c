"""What an analysis looks at: the images of a finished run, its chosen model and its stored embeddings, and what its
data set tells of the images beside the class; or anyone's embeddings in a file."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nearkin.data import PixelSource, Table
from nearkin.engine.device import pick_device
from nearkin.engine.embed import BATCH, embed
from nearkin.errors import NearkinError
from nearkin.evaluation.readers import EMBEDDINGS, LABELS, read
from nearkin.models import Model
from nearkin.numerics import unit
from nearkin.runs.defaults import resolve
from nearkin.runs.embed import load_model, rebuild
from nearkin.runs.prepare import Data, make_source, make_split, pixels_of, prepare, read_data, read_table
from nearkin.runs.store import Run
from nearkin.runs.tested import TestSet, paths_of
from nearkin.storage import UNREADABLE, atomic

STAGES_VERSION = 1  # of stored outputs of stages: raise it when the same images begin to give others


@dataclass(frozen=True)
class TrainingSet:
    """Labels number the classes as the objective of the run does."""

    x: np.ndarray  # (N, D) float32, unit vectors
    labels: np.ndarray  # (N,) 0..C-1
    classes: tuple[str, ...]  # C names


class Loaded(NamedTuple):
    """The chosen model of a run, in eval mode and without gradients of its weights, and the pixels of its test images.

    `pixels.test(rows[i:j])` gives images (B, 3, H, W) uint8 as they were tested; `model(images).z` embeds them, also
    through a frozen front, and `from_input(model, x)` does it with gradients to x.
    """

    model: Model
    pixels: PixelSource
    rows: np.ndarray  # (N,) rows of the data set
    labels: np.ndarray  # (N,) class names
    roles: np.ndarray  # (N,) query, gallery or both
    device: torch.device


def check_finished(run: Run) -> None:
    """Refuse a run that is not finished."""
    if not run.done:
        raise NearkinError(f"run {run.hash} is not finished; start the same training again to finish it")


def learned(run: Run, what: str) -> dict[str, Tensor]:
    """What the objective of a finished run has learned for its classes, such as `loss.proxies`; `what` they are, for
    messages."""
    check_finished(run)
    if not run.result["epochs_trained"]:
        raise NearkinError(f"run {run.hash} has train.epochs=0: nothing trained its {what}")
    if run.spec.method is not None:
        raise NearkinError(f"run {run.hash} has method={run.spec.method.name}, which trains several sets of {what}")
    objective: dict[str, Tensor] = (run.load("model.pt") or {}).get("objective", {})
    if "loss.proxies" not in objective:
        raise NearkinError(f"{run.path}/model.pt holds no {what} (loss.proxies)")
    return objective


def check_tested(run: Run) -> None:
    """Refuse a run that is not tested."""
    if not run.final:
        check_finished(run)
    if not run.tested:
        raise NearkinError(f"run {run.hash} is not tested: {run.untested()}")


def training_set(run: Run, *, device: str = "auto") -> TrainingSet:
    """The images that the run was trained on, not augmented; its validation classes are not among them."""
    check_finished(run)
    spec = resolve(run.spec)
    data = read_data(spec.data)
    prepared = prepare(spec, {repr(spec.data): data})
    _check_same_data(run, run.result, {"data": prepared.data_hash})
    model = _model(run, device)  # before the source: features behind a cut are found by their weights
    source, rows = make_source(prepared, model), prepared.split.train
    classes = np.unique(data.table.labels[rows])
    x = unit(embed(model, source, rows, pick_device(device))).numpy()
    return TrainingSet(x, prepared.labels, tuple(data.table.classes[c] for c in classes))


def loaded(run: Run, *, known: dict[str, Data] | None = None, device: str = "auto") -> Loaded:
    """The chosen model of a tested run and the pixels of its test images.

    Parameters:
        run: the run.
        known: remembers data from call to call, for runs on the same data.
        device: where the model goes.

    A NearkinError when the run is not tested, its model is gone, or its images are not here.
    """
    check_tested(run)
    if not (run.path / "model.pt").exists():
        raise NearkinError(f"run {run.hash} has no model: {run.path / 'model.pt'} is gone; train the run again")
    spec = resolve(run.spec)
    try:
        data = read_data(spec.data, known)
    except (NearkinError, OSError) as error:
        reason, where = " ".join(str(error).split()), spec.data.root or spec.data.name
        raise NearkinError(
            f"run {run.hash} is looked at through its images, which are not in {where}: {reason}"
        ) from error
    split = make_split(spec, data.table)
    _check_same_data(run, run.head(), {"data": data.hash, "split": split.hash()})
    model = _model(run, device).eval().requires_grad_(False)
    rows = split.test.images
    names = np.array(data.table.classes)[data.table.labels[rows]]
    return Loaded(model, pixels_of(spec, data), rows, names, split.test.roles, pick_device(device))


def _check_same_data(run: Run, stored: Mapping[str, Any], here: Mapping[str, str]) -> None:
    """Refuse data whose hashes are not those that are stored with a run."""
    then = {what: stored[f"{what}_hash"] for what in here}
    if then != here:
        words = [", ".join(f"{what} {value}" for what, value in hashes.items()) for hashes in (then, here)]
        data = resolve(run.spec).data
        raise NearkinError(f"run {run.hash} was trained on {words[0]}; {data.root or data.name} is {words[1]} here")


def _model(run: Run, device: str) -> Model:
    model = rebuild(resolve(run.spec))
    load_model(model, run)
    return model.to(pick_device(device))


def test_images(run: Run, known: dict[str, Data] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Rows (N,) and class names (N,) of the test images of a run, from its stored embeddings; where these cannot be
    read, from the data."""
    check_tested(run)
    with suppress(NearkinError):  # its embeddings cannot be read
        stored = TestSet.of(run)
        if stored.rows is not None:
            return stored.rows, stored.labels
    seen = loaded(run, known=known)
    return seen.rows, seen.labels


test_images.__test__ = False  # type: ignore[attr-defined]


def last_map(model: Model, x: Tensor) -> Tensor:
    """Normalised images (B, 3, H, W) -> the last map (B, C, h, w), with gradients through frozen stages too."""
    for stage in model.backbone.stages:
        x = model.backbone.run_stage(stage, x)
    return x  # (B, C, h, w)


def from_input(model: Model, x: Tensor) -> Tensor:
    """Normalised images (B, 3, H, W) -> raw embeddings (B, D), with gradients through a frozen front too."""
    for stage in model.frozen_stages:
        x = model.backbone.run_stage(stage, x)
    return model.back(model.pooled(x) if model.cut == "all" else x).z  # (B, D)


def stage_features(run: Run, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Stage -> (N, C) its output, averaged over the map, for test images at these rows of the data set."""
    seen = loaded(run)
    batches: dict[str, list[np.ndarray]] = {}
    with torch.no_grad():
        for start in range(0, len(rows), BATCH):
            x = seen.model.record.normalise(seen.pixels.test(rows[start : start + BATCH]).to(seen.device))
            for stage in seen.model.backbone.stages:
                x = seen.model.backbone.run_stage(stage, x)
                pooled = x.mean((2, 3)) if x.ndim == 4 else x.flatten(1)
                batches.setdefault(stage, []).append(pooled.float().cpu().numpy())
    return {stage: np.concatenate(parts) for stage, parts in batches.items()}


def stored_stage_features(run: Run, rows: np.ndarray) -> dict[str, np.ndarray]:
    """The same, from the run's folder where they are stored; else they are stored now."""
    file = run.path / "analysis" / "similarity-stages.npz"
    key = np.array([STAGES_VERSION, len(rows), *rows])
    with suppress(*UNREADABLE), np.load(file) as arrays:
        if np.array_equal(arrays["key"], key):
            return {name: arrays[name] for name in arrays.files if name != "key"}
    features = stage_features(run, rows)
    with atomic(file) as scratch:
        np.savez(scratch / file.name, key=key, **features)  # type: ignore[arg-type]
    return features


def stratified(labels: np.ndarray, images: int | None, seed: int = 0) -> np.ndarray:
    """Places of `images` of the N images, in increasing order: one of each class in turn, the classes and the images of
    a class in random order; None, or as many as there are: all."""
    if images is not None and images < 1:
        raise NearkinError(f"images={images}: at least 1")
    if images is None or images >= len(labels):
        return np.arange(len(labels))
    random = np.random.default_rng(seed)
    order = random.permutation(len(labels))
    number = np.unique(labels, return_inverse=True)[1][order]  # (N,) class of each, in random order
    turn = np.empty(len(labels), np.int64)  # how many of its class came before it
    for c in range(number.max() + 1):
        turn[number == c] = np.arange((number == c).sum())
    places = random.permutation(number.max() + 1)[number]  # the classes in random order
    return np.sort(order[np.lexsort((places, turn))[:images]])


def tested(run: Run) -> TestSet:
    """The stored test embeddings of a run, and which images they are; nothing is computed."""
    check_tested(run)
    test_set = TestSet.of(run)
    if test_set.rows is None:
        raise NearkinError(f"run {run.hash}: which images it was tested on is not stored; train it again")
    return test_set


def rows_of(images: TestSet) -> np.ndarray:
    """(N,) rows of the data set, of images that `tested` gave."""
    assert images.rows is not None
    return images.rows


def table_of(run: Run, seen: TestSet) -> tuple[Table, np.ndarray]:
    """The data set of a run, and the places (N,) of its test images in it; no image is opened.

    A NearkinError when the data set is not here, or its images are others than those that were tested.
    """
    data = resolve(run.spec).data
    table = read_table(data)
    number = {table.shown(i): i for i in range(len(table))}
    places = np.array([number.get(path, -1) for path in paths_of(run) or [""] * len(seen.labels)])
    if (places < 0).any() or (np.array(table.classes)[table.labels[places]] != seen.labels).any():
        raise NearkinError(f"{data.root or data.name} does not hold the images that run {run.hash} was tested on")
    return table, places


def embeddings_and_columns(path: str | Path) -> tuple[Tensor, np.ndarray | None, dict[str, np.ndarray]]:
    """A file of anyone's embeddings (.npz, .parquet): the embeddings (N, D), the labels (N,) where there are any, and
    every other column of N values."""
    arrays = {name: np.asarray(value) for name, value in read(path).items()}
    wide = [name for name, value in arrays.items() if value.ndim == 2]
    named = [name for name in wide if name.lower() in EMBEDDINGS] or wide
    if len(named) != 1:
        raise NearkinError(f"{path} holds {', '.join(arrays)}: which are the embeddings? Name one of them 'embeddings'")
    z = arrays.pop(named[0])
    columns = {name: value for name, value in arrays.items() if value.shape == (len(z),)}
    label = next((name for name in columns if name.lower() in LABELS), None)
    labels = None if label is None else columns.pop(label)
    return torch.from_numpy(np.array(z, dtype=np.float32)), labels, columns  # a copy: what was read may be read only


def one_file(analysis: str, paths: Sequence[str | Path]) -> tuple[Tensor, np.ndarray | None, dict[str, np.ndarray]]:
    """The same, for an analysis that looks at one file."""
    if len(paths) != 1:
        raise NearkinError(f"{analysis} looks at one file of embeddings, not at {len(paths)}")
    return embeddings_and_columns(paths[0])


def short_names(paths: Sequence[str]) -> list[str]:
    """The ends of paths, without their suffixes, as long as they must be to differ; else the paths."""
    parts = [Path(path).with_suffix("").parts for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(path[-depth:]) for path in parts]
        if len(set(names)) == len(names):
            return names
    return list(paths)
