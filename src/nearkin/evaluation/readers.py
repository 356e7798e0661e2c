"""Embeddings and labels from files. Nothing is ever unpickled.

    .npy           one array
    .npz           arrays by name
    .parquet       columns by name; an embedding is a list column, or all numeric columns beside the label
    .pt            a tensor or a dictionary of tensors (and lists), read with weights_only
    .safetensors   tensors by name

Where a file holds several arrays, embeddings and labels are found by the usual names.
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nearkin.errors import NearkinError
from nearkin.evaluation.retrieval import Evaluation, evaluate

EMBEDDINGS = ("embeddings", "embedding", "emb", "features", "z", "x")
LABELS = ("labels", "label", "targets", "target", "classes", "class", "y")


def evaluate_files(
    embeddings: str | Path | None = None,
    labels: str | Path | None = None,
    *,
    query: str | Path | None = None,
    gallery: str | Path | None = None,
    **options: Any,
) -> Evaluation:
    """`evaluate` on files. Labels may be inside the file of the embeddings.

    `query`, `gallery`: files with a mask or indices into the embeddings, or, without `embeddings`, files of the same
    kind as it: "FILE" with both inside or "EMBEDDINGS,LABELS".
    """
    if embeddings is not None:
        z, y = read_set(embeddings, labels)
        asks, asked = (None if path is None else read_selection(path) for path in (query, gallery))
        return evaluate(z, y, query=asks, gallery=asked, **options)
    if query is None or gallery is None:
        raise NearkinError("no embeddings: name a file with them, or both a query and a gallery file")
    return evaluate(*_pair(query), gallery=_pair(gallery), **options)


def read_set(embeddings: str | Path, labels: str | Path | None = None) -> tuple[Any, Any]:
    held = read(embeddings)
    z = _find(held, EMBEDDINGS, embeddings, "embeddings", ndim=2)
    if labels is not None:
        return z, _find(read(labels), LABELS, labels, "labels", ndim=1)
    if len(held) == 1:
        raise NearkinError(f"{embeddings} holds embeddings but no labels: name a second file with the labels")
    return z, _find(held, LABELS, embeddings, "labels", ndim=1)


def read_selection(path: str | Path) -> Any:
    held = read(path)
    if len(held) != 1:
        raise NearkinError(
            f"{path} holds {', '.join(held)}; a mask or indices into the embeddings are needed (for a query and a "
            "gallery file with embeddings of their own, leave the first file out)"
        )
    return next(iter(held.values()))


def read(path: str | Path) -> dict[str, Any]:
    """Everything in a file, by name; a bare array is called ''."""
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
    except Exception as error:  # whatever a damaged or foreign file makes its library raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise NearkinError(f"{path} cannot be read as {path.suffix}: {reason}") from error


def _npy(path: Path) -> dict[str, Any]:
    try:
        # Copy on write: pages come from the file when they are used, and torch may share them.
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
        return NearkinError(f"{path} holds an object array, which is never unpickled; save numbers or plain strings")
    return NearkinError(f"{path} cannot be read: {error}")


def _parquet(path: Path) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    held: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if column.null_count:
            raise NearkinError(f"{path}: column {name!r} has {column.null_count} empty values")
        if pa.types.is_nested(column.type):
            held[name] = _rows(column, f"{path}: column {name!r}")
        elif pa.types.is_dictionary(column.type):
            held[name] = column.dictionary_decode().to_numpy(zero_copy_only=False)
        else:
            held[name] = column.to_numpy(zero_copy_only=False)
    if all(value.ndim == 1 for value in held.values()):
        wide = [name for name, value in held.items() if name.lower() not in LABELS and value.dtype.kind in "fiu"]
        if len(wide) > 1:
            held = {"embeddings": np.stack([held.pop(name) for name in wide], 1), **held}
    return held


def _rows(column: Any, what: str) -> np.ndarray:
    if not hasattr(column, "value_lengths"):
        raise NearkinError(f"{what} is a {column.type}; an embedding is a list of numbers")
    lengths = set(column.value_lengths().to_pylist())
    if len(lengths) > 1:
        raise NearkinError(f"{what} has lists of {min(lengths)} to {max(lengths)} values; all have the same dimension")
    return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)


def _pt(path: Path) -> dict[str, Any]:
    held = torch.load(path, map_location="cpu", weights_only=True)
    return held if isinstance(held, dict) else {"": held}


def _safetensors(path: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(path)


READERS = {".npy": _npy, ".npz": _npz, ".parquet": _parquet, ".pt": _pt, ".safetensors": _safetensors}


def _pair(words: str | Path) -> tuple[Any, Any]:
    embeddings, _, labels = str(words).partition(",")
    return read_set(embeddings, labels or None)


def _find(held: dict[str, Any], names: tuple[str, ...], path: str | Path, what: str, ndim: int) -> Any:
    """The only array of a file, or the one with a usual name, or the only one of the right number of dimensions."""
    if len(held) == 1:
        return next(iter(held.values()))
    known = {name.lower(): name for name in held}
    for name in names:
        if name in known:
            return held[known[name]]
    fitting = [name for name, value in held.items() if np.ndim(value) == ndim]
    if len(fitting) == 1:
        return held[fitting[0]]
    raise NearkinError(f"{path} holds {', '.join(held)}: which are the {what}? Name one of them {names[0]!r}")
