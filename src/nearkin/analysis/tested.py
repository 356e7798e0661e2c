"""The stored test embeddings of a run, whose they are, and what its data set tells of these images beside the class."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nearkin.analysis.embedded import check_tested
from nearkin.data import Table
from nearkin.errors import NearkinError
from nearkin.evaluation.readers import EMBEDDINGS, LABELS, read
from nearkin.runs.defaults import resolve
from nearkin.runs.prepare import read_table
from nearkin.runs.store import Run
from nearkin.runs.tested import TestSet, paths_of


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
    held = {name: np.asarray(value) for name, value in read(path).items()}
    wide = [name for name, value in held.items() if value.ndim == 2]
    found = [name for name in wide if name.lower() in EMBEDDINGS] or wide
    if len(found) != 1:
        raise NearkinError(f"{path} holds {', '.join(held)}: which are the embeddings? Name one of them 'embeddings'")
    z = held.pop(found[0])
    columns = {name: value for name, value in held.items() if value.shape == (len(z),)}
    label = next((name for name in columns if name.lower() in LABELS), None)
    labels = None if label is None else columns.pop(label)
    return torch.from_numpy(np.array(z, dtype=np.float32)), labels, columns  # a copy: what was read may be read only
