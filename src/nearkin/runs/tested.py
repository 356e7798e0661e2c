"""The test images of a run as its model embeds them: stored, and read again by everything that needs them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from nearkin.errors import NearkinError
from nearkin.evaluation.retrieval import Evaluation, evaluate
from nearkin.progress import note_once
from nearkin.runs.run import Run
from nearkin.runs.sums import curve_files
from nearkin.storage import UNREADABLE


@dataclass(frozen=True)
class TestSet:
    """The N test images of a run as its model embeds them. A place is a number below N, a row is that of the data set.

    Parameters:
        z: (N, D) raw embeddings.
        labels: (N,) class names.
        roles: (N,) query, gallery or both.
        rows: (N,) rows of the data set; None if there is none, as for joined folds.
    """

    z: torch.Tensor  # (N, D)
    labels: np.ndarray  # (N,)
    roles: np.ndarray  # (N,)
    rows: np.ndarray | None = None  # (N,)

    __test__ = False  # pytest: this is no test

    @classmethod
    def of(cls, run: Run) -> "TestSet":
        """The stored test embeddings of a run; a NearkinError if there are none. Nothing is computed."""
        if not run.tested and not (run.path / "embeddings.npz").exists():
            raise NearkinError(f"run {run.hash} is not tested yet: {run.untested()}")
        path = run.file("embeddings.npz")
        try:
            with np.load(path) as file:
                z, labels = torch.from_numpy(file["embeddings"]), file["labels"]
                return cls(z, labels, file["roles"], file["rows"])
        except UNREADABLE as error:
            raise NearkinError(f"the embeddings of run {run.hash} cannot be read ({type(error).__name__})") from error

    def evaluate(self, **options: Any) -> Evaluation:
        """The metrics of these embeddings, each image in its role."""
        if self.plain:
            return evaluate(self.z, self.labels, **options)
        return evaluate(self.z, self.labels, query=self.query, gallery=self.gallery, **options)

    @cached_property
    def plain(self) -> bool:
        """Is every image a query and in the gallery?"""
        return bool((self.roles == "both").all())

    @cached_property
    def query(self) -> np.ndarray:
        """(Q,) places of the queries."""
        return np.flatnonzero(self.roles != "gallery")

    @cached_property
    def gallery(self) -> np.ndarray:
        """(G,) places of the images that are searched."""
        return np.flatnonzero(self.roles != "query")

    def same_images(self, other: "TestSet") -> bool:
        """Are these the same images in the same order and the same roles?"""
        if self.rows is None or other.rows is None:
            return False
        pairs = ((self.rows, other.rows), (self.labels, other.labels), (self.roles, other.roles))
        return all(np.array_equal(a, b) for a, b in pairs)

    @property
    def available(self) -> int:
        """Neighbours that every query has."""
        return len(self.gallery) - int((self.roles == "both").any())


def paths_of(run: Run) -> list[str] | None:
    """The files of a run's test images below the root of its data; None if they were not stored."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not (run.path / "test.parquet").exists():
        return None
    path = run.file("test.parquet")
    try:
        return pq.read_table(path, columns=["path"])["path"].to_pylist()
    except (*UNREADABLE, pa.ArrowException) as error:
        raise NearkinError(f"test.parquet of run {run.hash} cannot be read ({type(error).__name__})") from error


def values_per_query(run: Run, metric: str) -> tuple[np.ndarray, np.ndarray] | None:
    """The label and the value of every query, from per_query.parquet; None if the metric is not in it. A damaged
    file is skipped with a note."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not (run.path / "per_query.parquet").exists():
        return None
    try:
        file = run.file("per_query.parquet")
        table = pq.read_table(file, columns=["label", metric]) if metric in pq.read_schema(file).names else None
    except (NearkinError, *UNREADABLE, pa.ArrowException) as error:
        reason = str(error) if isinstance(error, NearkinError) else f"per_query.parquet ({type(error).__name__})"
        note_once(f"run {run.hash}: values per query are left out: {reason}")
        return None
    if table is None:
        return None
    return np.array(table["label"].to_pylist()), table[metric].to_numpy().astype(float)


def store_per_query(run: Run, evaluation: Evaluation) -> None:
    """Add the values per query of a further test to those of the first; no file is created."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not (run.path / "per_query.parquet").exists() or not evaluation.per_query:
        return
    path = run.file("per_query.parquet")
    try:
        table = pq.read_table(path)
    except (*UNREADABLE, pa.ArrowException) as error:
        raise run.damaged(f"per_query.parquet cannot be read ({type(error).__name__})") from error
    for name, values in evaluation.per_query.items():
        if name not in table.column_names and len(values) == len(table):
            table = table.append_column(name, pa.array(values, from_pandas=True))
    with run.put("per_query.parquet") as file:
        pq.write_table(table, file)


def stored_epochs(run: Run, weights: str = "epoch") -> list[str]:
    """The files of the test embeddings of every epoch (train.curve=true); an error if one is missing."""
    files = curve_files(run.path, weights)
    sums = run.sums()
    for name in sums.files if sums is not None else ():
        if name.startswith(f"curve/{weights}-") and name not in files:
            raise run.damaged(f"{name} is missing")
    return files


def validation_of(run: Run, metric: str) -> float:
    """A metric of a final run on its validation images: what training stored, else computed from their embeddings."""
    stored = run.read_json("final.json")["validation"]
    if metric in stored:
        return stored[metric]
    path = run.file("validation.npz")
    try:
        with np.load(path) as file:
            z, labels = torch.from_numpy(file["embeddings"]), file["labels"]
    except UNREADABLE as error:
        raise run.damaged(f"validation.npz cannot be read ({type(error).__name__})") from error
    return evaluate(z, labels, metrics=[metric]).metrics[metric]
