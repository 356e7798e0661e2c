"""Checks of the embeddings and labels that a user hands over; the errors name the rows that are wrong."""

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nearkin.errors import NearkinError, and_more

CHUNK = 4096  # rows that are checked at a time, so that no copy of all embeddings is needed
SHORTEST, LONGEST = 1e-18, 1e18  # between them, float32 can hold the square of a norm


def as_embeddings(z: Any, what: str) -> Tensor:
    """Anything like an (N, D) array -> an (N, D) tensor of a floating type, on the CPU, without a graph.

    It shares memory with the input where possible.

    Parameters:
        z: a tensor, a NumPy array or nested lists of real numbers.
        what: what an error calls them, in the plural: "embeddings", "gallery embeddings".
    """
    if not isinstance(z, Tensor):
        array = np.asarray(z)
        if array.dtype.kind not in "fiu":
            raise NearkinError(f"{what} have dtype {array.dtype}; numbers are needed, as one (N, D) array")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about read-only arrays: nothing is written here
            z = torch.from_numpy(np.ascontiguousarray(array))
    if z.is_complex() or z.dtype == torch.bool:
        raise NearkinError(f"{what} have dtype {z.dtype}; real numbers are needed")
    if z.ndim != 2 or z.shape[1] == 0:
        raise NearkinError(f"{what} have shape {tuple(z.shape)}; (N, D) is needed, one row per item")
    z = z.detach().cpu()
    return z if z.is_floating_point() else z.float()


def check_vectors(z: Tensor, distance: str, what: str) -> None:
    """Refuse vectors for which the distance is not defined or cannot be computed in float32.

    These are rows with NaN or infinity and rows that are too long; under cosine also zero vectors, which have no
    direction, and under snr also constant vectors, which have no variance.

    Parameters:
        z: (N, D).
        distance: "cosine", "euclid" or "snr".
        what: what an error calls a row: "embedding", "query", "gallery".
    """
    broken, long, flat = [], [], []
    for start in range(0, len(z), CHUNK):
        part = z[start : start + CHUNK].to(torch.promote_types(z.dtype, torch.float32))
        norm = part.norm(dim=1)
        odd = _where(~(norm < LONGEST), 0)  # only rows with an odd norm are looked at again
        broken += [start + row for row in odd if not part[row].isfinite().all()]
        long += [start + row for row in odd if part[row].isfinite().all()]
        if distance == "cosine":
            flat += _where(norm < SHORTEST, start)
        elif distance == "snr":
            flat += _where((part == part[:, :1]).all(1) | (norm < SHORTEST), start)
    if broken:
        raise NearkinError(f"NaN or infinity in {_rows(broken, what)} of {len(z)}")
    if long:
        raise NearkinError(f"vectors of length {LONGEST} or more in {_rows(long, what)} of {len(z)}; rescale them")
    if flat:
        kind = "zero vectors have no direction" if distance == "cosine" else "constant vectors have no variance"
        raise NearkinError(f"{distance}: {kind}: {_rows(flat, what)} of {len(z)}; remove them or use distance=euclid")


def _where(mask: Tensor, start: int) -> list[int]:
    return mask.nonzero()[:, 0].add(start).tolist()


def as_classes(labels: list[tuple[Any, int, str]]) -> tuple[list[np.ndarray], np.ndarray]:
    """Labels, numbers or strings -> class indices that are common to all sets, and the label of each index.

    Parameters:
        labels: one triple (labels, expected length, what an error calls them) per set.
    """
    arrays = [_labels(*one) for one in labels]
    if len({array.dtype.kind in "US" for array in arrays}) > 1:
        raise NearkinError("query and gallery labels are numbers on one side and strings on the other")
    names, index = np.unique(np.concatenate(arrays), return_inverse=True)
    return np.split(index.reshape(-1), np.cumsum([len(array) for array in arrays])[:-1]), names


def as_index(which: Any, size: int, what: str) -> np.ndarray:
    """A mask or indices -> indices (int64), each at most once; None -> all.

    Parameters:
        which: a mask of shape (size,), a list of indices from 0 to size - 1, or None.
        size: the number of items to choose from.
        what: what an error calls it: "query", "gallery".
    """
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
        raise NearkinError(f"{what} has an index more than once; each item may be named once only")
    return array.astype(np.int64)


def _labels(labels: Any, size: int, what: str) -> np.ndarray:
    array = labels.detach().cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if array.dtype == object and all(isinstance(value, str) for value in array.ravel()):
        array = array.astype(str)
    if array.dtype.kind not in "biufUS":
        raise NearkinError(f"{what} have dtype {array.dtype}; numbers or strings are needed")
    if array.shape != (size,):
        raise NearkinError(f"{size} embeddings but {what} of shape {array.shape}; one label per embedding is needed")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        bad = np.flatnonzero(~np.isfinite(array)).tolist()
        raise NearkinError(f"NaN or infinity in {_rows(bad, what.removesuffix('s'))}")
    return array


def _rows(rows: list[int], what: str) -> str:
    """'8 embedding rows (0, 1, 2, 3, 4 and 3 more)'."""
    return f"{len(rows)} {what} row{'s' if len(rows) > 1 else ''} ({and_more(rows)})"
