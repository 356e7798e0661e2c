"""Embeddings and labels from files. Nothing is unpickled, so a file cannot run code.

    .npy           one array
    .npz           arrays by name
    .parquet       columns by name; the embeddings are one column of lists, or all numeric columns but the label
    .pt            a tensor, or a dictionary of tensors and lists; read with weights_only=True
    .safetensors   tensors by name

In a file with several arrays, the embeddings and the labels are recognised by their names (`EMBEDDINGS`, `LABELS`).
"""

import re
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nearkin.errors import NearkinError
from nearkin.evaluation.arrays import as_index
from nearkin.evaluation.retrieval import Evaluation, evaluate

EMBEDDINGS = ("embeddings", "embedding", "emb", "features", "z", "x")
LABELS = ("labels", "label", "targets", "target", "classes", "class", "y")
UNNAMED = "arr_1"  # what np.savez(file, embeddings, labels) calls the second


def evaluate_files(
    embeddings: str | Path | None = None,
    labels: str | Path | None = None,
    *,
    query: str | Path | None = None,
    gallery: str | Path | None = None,
    include_trained: bool = False,
    **options: Any,
) -> Evaluation:
    """`evaluate` for embeddings and labels in files (.npy, .npz, .parquet, .pt, .safetensors).

    There are two ways to name a query set and a gallery: one file of embeddings with a mask or indices for each, or,
    without `embeddings`, a file of their own for each.

    A file of `nearkin embed` says which images its run was trained on. They are left out, of queries and gallery, and
    the result says so: what a model has learned by heart is no test of it.

    Parameters:
        embeddings: the file of the embeddings (N, D).
        labels: the file of the labels (N,); not needed if the file of the embeddings has them too.
        query: with `embeddings`, a file with a mask or indices of the items that are queries. Without, the queries
            themselves: "FILE" with embeddings and labels inside, or "EMBEDDINGS,LABELS" for two files.
        gallery: the same for the gallery.
        include_trained: measure the images that the run was trained on, too.
        options: the other arguments of `evaluate`: k, metrics, distance, ...

    Example:
        result = nearkin.evaluation.evaluate_files("embeddings.npy", "labels.npy", distance="euclid")
    """
    if embeddings is None:
        if query is None or gallery is None:
            raise NearkinError("no embeddings: name a file of embeddings, or both a query and a gallery file")
        queries, others = (_pair(words, include_trained) for words in (query, gallery))
        result = evaluate(queries.z, queries.labels, gallery=(others.z, others.labels), **options)
        return _told(result, queries.rows, [queries.note, others.note])
    arrays = read(embeddings)
    whole = FileSet(*_embeddings_and_labels(arrays, embeddings, labels), None, "")
    query_items, gallery_items = (None if path is None else read_selection(path) for path in (query, gallery))
    if query is None and gallery is None and labels is None:
        query_items, gallery_items = _roles(arrays)
    chosen = whole.honest(arrays, embeddings, include_trained)
    if query_items is None and gallery_items is None:
        return _told(evaluate(chosen.z, chosen.labels, **options), chosen.rows, [chosen.note])
    rows = [as_index(items, len(whole.z), what) for items, what in ((query_items, "query"), (gallery_items, "gallery"))]
    if chosen.rows is not None:
        rows = [items[np.isin(items, chosen.rows)] for items in rows]
    result = evaluate(whole.z, whole.labels, query=rows[0], gallery=rows[1], **options)
    return _told(result, rows[0], [chosen.note])


@dataclass(frozen=True)
class FileSet:
    """Embeddings and labels from files, and which rows of the file they are.

    Fields:
        z, labels: (N, D) and (N,), as they were stored.
        rows: (N,) rows of the file; None: all of them.
        note: what was left out, in words; "" if nothing was.
    """

    z: Any
    labels: Any
    rows: np.ndarray | None
    note: str

    def honest(self, arrays: dict[str, Any], path: str | Path, include_trained: bool) -> "FileSet":
        """The rows that the run did not learn from, if the file says which they are (`trained`)."""
        trained = np.asarray(arrays.get("trained", []))
        if trained.dtype != bool or trained.shape != (len(self.z),) or not trained.any():
            return self
        run = f"run {arrays['run']}" if "run" in arrays else "its run"
        said = f"{path}: {run} was trained on {int(trained.sum()):,} of the {len(trained):,} images"
        if include_trained:
            return replace(self, note=f"warning: {said}, and they are measured too: this is no honest test")
        if trained.all():
            raise NearkinError(f"{said}, so none is left for an honest test; include_trained=True measures them")
        rows = np.flatnonzero(~trained)
        z = self.z[rows] if isinstance(self.z, np.ndarray) else self.z[torch.from_numpy(rows)]
        return FileSet(z, np.asarray(self.labels)[rows], rows, f"{said}: they are left out")


def _told(result: Evaluation, rows: np.ndarray | None, notes: list[str]) -> Evaluation:
    """The result, with the rows of its queries in the file, and with what was left out."""
    return replace(result, rows=rows, notes=[*dict.fromkeys(note for note in notes if note), *result.notes])


def _roles(arrays: dict[str, Any]) -> tuple[Any, Any]:
    """Masks of queries and gallery, where a file says of each item whether it is query, gallery or both."""
    roles = np.asarray(arrays.get("roles", []))
    if roles.dtype.kind != "U" or (roles == "both").all():
        return None, None
    return np.isin(roles, ["query", "both"]), np.isin(roles, ["gallery", "both"])


def read_set(embeddings: str | Path, labels: str | Path | None = None) -> tuple[Any, Any]:
    """Embeddings (N, D) and labels (N,) from one file with both, or from two files. Shapes are not checked here."""
    return _embeddings_and_labels(read(embeddings), embeddings, labels)


def _embeddings_and_labels(arrays: dict[str, Any], path: str | Path, labels: str | Path | None) -> tuple[Any, Any]:
    z = _find(arrays, EMBEDDINGS, path, "embeddings")
    if labels is not None:
        return z, _find(read(labels), LABELS, labels, "labels")
    if len(arrays) == 1:
        raise NearkinError(f"{path} holds embeddings but no labels: name a second file with the labels")
    return z, _find(arrays, (*LABELS, UNNAMED), path, "labels")


def read_selection(path: str | Path) -> Any:
    """A mask or indices: a file with this array alone, or numbers such as 0,1,5."""
    if re.fullmatch(r"\d+(,\d+)*", str(path)):
        return np.array([int(number) for number in str(path).split(",")])
    arrays = read(path)
    if len(arrays) != 1:
        raise NearkinError(
            f"{path} holds {', '.join(arrays)}; a mask or indices are needed here (if the query and the gallery file "
            "have embeddings of their own, leave the file of embeddings out)"
        )
    return next(iter(arrays.values()))


def read(path: str | Path) -> dict[str, Any]:
    """Everything in a file, by name; the name of a bare array is ''."""
    path = Path(path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise NearkinError(f"{path}: unknown format {path.suffix!r}; choices: {', '.join(READERS)}")
    if not path.is_file():
        raise NearkinError(f"{path}: no such file")
    try:
        return reader(path)
    except NearkinError:
        raise
    except Exception as error:  # a damaged or foreign file can make its library raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise NearkinError(f"{path} cannot be read as {path.suffix}: {reason}") from error


def _npy(path: Path) -> dict[str, Any]:
    with open(path, "rb") as file:
        begins = file.read(6)
    if begins != b"\x93NUMPY":
        raise NearkinError(f"{path} is not an .npy file, despite its name: it begins with {begins!r}")
    try:
        # Memory-mapped, copy on write: pages are read from the file when they are used, and torch shares them.
        return {"": np.load(path, mmap_mode="c", allow_pickle=False)}
    except ValueError as error:
        raise _unpickled(path, error) from error


def _npz(path: Path) -> dict[str, Any]:
    if not zipfile.is_zipfile(path):
        raise NearkinError(f"{path} is not an .npz archive")
    with np.load(path, allow_pickle=False) as archive:
        try:
            return {name: archive[name] for name in archive.files}
        except ValueError as error:
            raise _unpickled(path, error) from error


def _unpickled(path: Path, error: ValueError) -> NearkinError:
    if "pickle" in str(error) or "Python objects" in str(error):
        return NearkinError(f"{path} holds Python objects, which are never unpickled; save numbers or plain strings")
    return NearkinError(f"{path} cannot be read: {error}")


def _parquet(path: Path) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    arrays: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if column.null_count:
            raise NearkinError(f"{path}: column {name!r} has {column.null_count} empty values")
        if pa.types.is_nested(column.type):
            arrays[name] = _rows(column, f"{path}: column {name!r}")
        elif pa.types.is_dictionary(column.type):
            arrays[name] = column.dictionary_decode().to_numpy(zero_copy_only=False)
        else:
            arrays[name] = column.to_numpy(zero_copy_only=False)
    if all(value.ndim == 1 for value in arrays.values()):
        wide = [name for name, value in arrays.items() if name.lower() not in LABELS and value.dtype.kind in "fiu"]
        if len(wide) > 1:
            arrays = {"embeddings": np.stack([arrays.pop(name) for name in wide], 1), **arrays}
    return arrays


def _rows(column: Any, what: str) -> np.ndarray:
    if not hasattr(column, "value_lengths"):
        raise NearkinError(f"{what} is a {column.type}; an embedding is a list of numbers")
    lengths = set(column.value_lengths().to_pylist())
    if len(lengths) > 1:
        raise NearkinError(f"{what} has lists of {min(lengths)} to {max(lengths)} values; all must be equally long")
    return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)


def _pt(path: Path) -> dict[str, Any]:
    content = torch.load(path, map_location="cpu", weights_only=True)
    return content if isinstance(content, dict) else {"": content}


def _safetensors(path: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(path)


READERS = {".npy": _npy, ".npz": _npz, ".parquet": _parquet, ".pt": _pt, ".safetensors": _safetensors}


def _pair(words: str | Path, include_trained: bool) -> FileSet:
    embeddings, _, labels = str(words).partition(",")
    arrays = read(embeddings)
    whole = FileSet(*_embeddings_and_labels(arrays, embeddings, labels or None), None, "")
    return whole.honest(arrays, embeddings, include_trained)


def _find(arrays: dict[str, Any], names: tuple[str, ...], path: str | Path, what: str) -> Any:
    """The only array of a file; else the one with one of the names. Embeddings may also be the only matrix; a lone list
    is not taken for labels, because it may be anything: prices, paths."""
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    known = {name.lower(): name for name in arrays}
    for name in names:
        if name in known:
            return arrays[known[name]]
    matrices = [name for name, value in arrays.items() if np.ndim(value) == 2]
    if what == "embeddings" and len(matrices) == 1:
        return arrays[matrices[0]]
    raise NearkinError(
        f"{path} holds {', '.join(arrays)}: which of them holds the {what}? Name one of them {names[0]!r}"
    )
