"""Embeddings and labels as people have them, checked, with errors that name the rows."""

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nearkin.errors import NearkinError

CHUNK = 4096                        # rows looked at in one go: the checks need no copy of the embeddings
SHORTEST, LONGEST = 1e-18, 1e18     # norms whose squares float32 can hold


def as_embeddings(z: Any, what: str) -> Tensor:
    """(N, D), a floating type; shares memory with the input where it can."""
    if not isinstance(z, Tensor):
        array = np.asarray(z)
        if array.dtype.kind not in "fiu":
            raise NearkinError(f"{what} have dtype {array.dtype}; numbers are needed, as one (N, D) array")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)            # of a read-only array: nothing here writes to it
            z = torch.from_numpy(np.ascontiguousarray(array))
    if z.is_complex() or z.dtype == torch.bool:
        raise NearkinError(f"{what} have dtype {z.dtype}; real numbers are needed")
    if z.ndim != 2 or z.shape[1] == 0:
        raise NearkinError(f"{what} have shape {tuple(z.shape)}; (N, D) is needed, one row an item")
    z = z.detach().cpu()
    return z if z.is_floating_point() else z.float()


def check_vectors(z: Tensor, metric: str, what: str) -> None:
    """No NaN or infinity; lengths whose squares float32 can hold; a direction for every row where directions count."""
    broken, long, flat = [], [], []
    for start in range(0, len(z), CHUNK):
        part = z[start : start + CHUNK].to(torch.promote_types(z.dtype, torch.float32))
        norm = part.norm(dim=1)
        odd = _where(~(norm < LONGEST), 0)                          # looked at again only where the norm is odd
        broken += [start + row for row in odd if not part[row].isfinite().all()]
        long += [start + row for row in odd if part[row].isfinite().all()]
        if metric == "cosine":
            flat += _where(norm < SHORTEST, start)
        elif metric == "snr":
            flat += _where((part == part[:, :1]).all(1) | (norm < SHORTEST), start)
    if broken:
        raise NearkinError(f"NaN or infinity in {_rows(broken, what)} of {len(z)}")
    if long:
        raise NearkinError(f"vectors of length {LONGEST} or more in {_rows(long, what)} of {len(z)}; rescale them")
    if flat:
        kind = "zero vectors have no direction" if metric == "cosine" else "constant vectors have no variance"
        raise NearkinError(f"{metric}: {kind}: {_rows(flat, what)} of {len(z)}; remove them or use metric=euclid")


def _where(mask: Tensor, start: int) -> list[int]:
    return mask.nonzero()[:, 0].add(start).tolist()


def as_classes(labels: list[tuple[Any, int, str]]) -> tuple[list[np.ndarray], np.ndarray]:
    """Sets of labels (values, expected length, name), numbers or strings -> common class indices, and their names."""
    arrays = [_labels(*one) for one in labels]
    if len({array.dtype.kind in "US" for array in arrays}) > 1:
        raise NearkinError("query and gallery labels are numbers on one side and strings on the other")
    names, index = np.unique(np.concatenate(arrays), return_inverse=True)
    return np.split(index.reshape(-1), np.cumsum([len(array) for array in arrays])[:-1]), names


def as_index(which: Any, size: int, what: str) -> np.ndarray:
    """A mask or indices -> distinct indices; None: all."""
    if which is None:
        return np.arange(size)
    array = np.asarray(which)
    if array.dtype == bool:
        if array.shape != (size,):
            raise NearkinError(f"{what} is a mask of shape {array.shape}; ({size},) is needed")
        return array.nonzero()[0]
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise NearkinError(f"{what} has dtype {array.dtype}, shape {array.shape}; a mask or indices are needed")
    if len(array) and not 0 <= array.min() <= array.max() < size:
        raise NearkinError(f"{what} has indices from {array.min()} to {array.max()}; 0 to {size - 1} are possible")
    if len(np.unique(array)) < len(array):
        raise NearkinError(f"{what} names an item twice; each index may stand once")
    return array.astype(np.int64)


def _labels(labels: Any, size: int, what: str) -> np.ndarray:
    array = labels.detach().cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if array.dtype == object and all(isinstance(value, str) for value in array.ravel()):
        array = array.astype(str)
    if array.dtype.kind not in "biufUS":
        raise NearkinError(f"{what} have dtype {array.dtype}; numbers or strings are needed")
    if array.shape != (size,):
        raise NearkinError(f"{size} embeddings but {what} of shape {array.shape}; one label an embedding")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise NearkinError(f"NaN or infinity in {_rows(np.flatnonzero(~np.isfinite(array)).tolist(), what)}")
    return array


def _rows(rows: list[int], what: str) -> str:
    shown = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
    return f"{len(rows)} {what} row{'s' if len(rows) > 1 else ''} ({shown})"
