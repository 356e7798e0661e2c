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
    """`evaluate` for embeddings and labels in files (.npy, .npz, .parquet, .pt, .safetensors).

    There are two ways to name a query set and a gallery: one file of embeddings with a mask or indices for each, or,
    without `embeddings`, a file of their own for each.

    Parameters:
        embeddings: the file of the embeddings (N, D).
        labels: the file of the labels (N,); not needed if the file of the embeddings has them too.
        query: with `embeddings`, a file with a mask or indices of the items that are queries. Without, the queries
            themselves: "FILE" with embeddings and labels inside, or "EMBEDDINGS,LABELS" for two files.
        gallery: the same for the gallery.
        options: the other arguments of `evaluate`: k, metrics, distance, ...

    Example:
        result = nearkin.evaluation.evaluate_files("embeddings.npy", "labels.npy", distance="euclid")
    """
    if embeddings is not None:
        z, y = read_set(embeddings, labels)
        query_items, gallery_items = (None if path is None else read_selection(path) for path in (query, gallery))
        if query is None and gallery is None and labels is None:
            query_items, gallery_items = _roles(read(embeddings))
        return evaluate(z, y, query=query_items, gallery=gallery_items, **options)
    if query is None or gallery is None:
        raise NearkinError("no embeddings: name a file of embeddings, or both a query and a gallery file")
    return evaluate(*_pair(query), gallery=_pair(gallery), **options)


def _roles(arrays: dict[str, Any]) -> tuple[Any, Any]:
    """Masks of queries and gallery, where a file says of each item whether it is query, gallery or both."""
    roles = np.asarray(arrays.get("roles", []))
    if roles.dtype.kind != "U" or (roles == "both").all():
        return None, None
    return np.isin(roles, ["query", "both"]), np.isin(roles, ["gallery", "both"])


def read_set(embeddings: str | Path, labels: str | Path | None = None) -> tuple[Any, Any]:
    """Embeddings (N, D) and labels (N,) from one file with both, or from two files. Shapes are not checked here."""
    arrays = read(embeddings)
    z = _find(arrays, EMBEDDINGS, embeddings, "embeddings", ndim=2)
    if labels is not None:
        return z, _find(read(labels), LABELS, labels, "labels", ndim=1)
    if len(arrays) == 1:
        raise NearkinError(f"{embeddings} holds embeddings but no labels: name a second file with the labels")
    return z, _find(arrays, LABELS, embeddings, "labels", ndim=1)


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


def _pair(words: str | Path) -> tuple[Any, Any]:
    embeddings, _, labels = str(words).partition(",")
    return read_set(embeddings, labels or None)


def _find(arrays: dict[str, Any], names: tuple[str, ...], path: str | Path, what: str, ndim: int) -> Any:
    """The only array of a file; else the one with one of the names; else the only one with `ndim` dimensions."""
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    known = {name.lower(): name for name in arrays}
    for name in names:
        if name in known:
            return arrays[known[name]]
    fitting = [name for name, value in arrays.items() if np.ndim(value) == ndim]
    if len(fitting) == 1:
        return arrays[fitting[0]]
    raise NearkinError(
        f"{path} holds {', '.join(arrays)}: which of them holds the {what}? Name one of them {names[0]!r}"
    )
