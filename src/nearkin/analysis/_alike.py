"""What every stage of a network makes of images, and how alike two representations of the same images are: linear CKA
and neighbour overlap.

    CKA = ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖)      columns centred, Frobenius norms; 1: the same up to turning and scaling
    overlap@k                         the share of an image's k nearest (cosine) in one that are so in the other, too

Linear CKA of few images with many channels is too high, for unrelated representations too: compare it at one level and
with one number of images. Intervals are over images, those of one class as one unit: the classes are dealt into groups,
one group is left out at a time, and the spread of the results gives the standard error (the jackknife; drawing with
replacement would put copies of images side by side, which are alike in every representation). They speak of these
models only.

Source: Kornblith et al. 2019 (ICML).

Shapes: N images, R representations, G groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats

from nearkin.analysis.embedded import loaded
from nearkin.engine.embed import BATCH
from nearkin.errors import NearkinError
from nearkin.evaluation.search import neighbours
from nearkin.runs.store import Run
from nearkin.statistics.intervals import LEVEL
from nearkin.storage import atomic

VERSION = 1  # of stored features: raise it when the same images begin to give others
GROUPS = 20
TINY = 1e-12


@dataclass(frozen=True)
class Alike:
    """All pairs of R representations. NaN where one of them is constant.

    Parameters:
        cka: (R, R).
        overlap: (R, R) mean over images.
        groups: (N,) the group of each image.
        cka_left: (G, R, R) CKA without the images of each group.
        overlap_left: (G, R, R) mean overlap without the images of each group.
    """

    cka: np.ndarray
    overlap: np.ndarray
    groups: np.ndarray
    cka_left: np.ndarray
    overlap_left: np.ndarray


def linear_cka(x: np.ndarray, y: np.ndarray) -> float | None:
    """Linear CKA of two representations (N, C) and (N, C') of the same images; None where one is constant."""
    value = float(_cka([_gram(x), _gram(y)], np.zeros(len(x), np.int64))[0][0, 1])
    return None if np.isnan(value) else value


def overlap(x: np.ndarray, y: np.ndarray, k: int = 10) -> np.ndarray:
    """(N,) the share of each image's k nearest in `x` that are among its k nearest in `y`."""
    return _shared(_nearest(x, k), _nearest(y, k))


def compared(x: Sequence[np.ndarray], labels: np.ndarray, *, k: int = 10, groups: int = GROUPS, seed: int = 0) -> Alike:
    """All pairs of representations of the same N images.

    Parameters:
        x: R arrays (N, C), C may differ.
        labels: (N,) classes, which are kept together when images are left out.
        k: neighbours.
        groups: how many groups of classes are left out in turn.
        seed: deals the classes into groups.
    """
    grams = [_gram(one) for one in x]
    number = np.unique(labels, return_inverse=True)[1]
    c = int(number.max()) + 1
    count = min(groups, c)
    group = (np.random.default_rng(seed).permutation(c) % count)[number]  # (N,)
    near = [_nearest(one, k) for one in x]
    r = len(x)
    whole, left = np.ones((r, r)), np.ones((count, r, r))
    for i in range(r):
        for j in range(i):
            shared = _shared(near[i], near[j])  # (N,)
            whole[i, j] = whole[j, i] = shared.mean()
            left[:, i, j] = left[:, j, i] = [shared[group != g].mean() for g in range(count)]
    cka, cka_left = _cka(grams, group)
    return Alike(cka, whole, group, cka_left, left)


def jackknife(value: float, left: np.ndarray, level: float = LEVEL) -> tuple[float, float] | tuple[None, None]:
    """The interval of a value from those without each group (G,); None where there is one group, or a value is not
    defined without some group."""
    g = len(left)
    if g < 2 or not np.isfinite(left).all():
        return None, None
    error = float(np.sqrt((g - 1) / g * ((left - left.mean()) ** 2).sum()))
    half = float(stats.t.ppf((1 + level) / 2, g - 1)) * error
    return value - half, value + half


def _gram(x: np.ndarray) -> np.ndarray:
    """(N, N) inner products of centred columns, of Frobenius norm 1; 0 where all images have one representation."""
    x = np.asarray(x, np.float64)
    if x.ndim != 2 or not np.isfinite(x).all():
        raise NearkinError(f"a representation is (N, C) of finite numbers, not of shape {x.shape}")
    gram = (x - x.mean(0)) @ (x - x.mean(0)).T
    norm = float(np.linalg.norm(gram))
    return np.zeros(gram.shape, np.float32) if norm <= TINY * (x**2).sum() else (gram / norm).astype(np.float32)


def _cka(grams: list[np.ndarray], group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """CKA (R, R) of all images, and (G, R, R) without each group, from inner products (N, N).

    With row sums k and l over the m images that are left, the inner product of the centred matrices is
    ΣKL - 2/m k·l + ΣK ΣL / m². Sums over blocks of groups are computed once, so that nothing is centred G times.
    """
    r, n, count = len(grams), len(group), int(group.max()) + 1
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(count))
    grams = [gram[np.ix_(order, order)] for gram in grams]
    left = np.append(n - np.bincount(group, minlength=count), n).clip(1)  # (G + 1,) images left
    inside = np.column_stack([group[order][:, None] != np.arange(count), np.ones(n, bool)])  # (N, G + 1)
    sums = []  # row sums (N, G + 1)
    for gram in grams:
        of_group = np.add.reduceat(gram, starts, axis=1, dtype=np.float64)  # (N, G)
        whole = of_group.sum(1, keepdims=True)
        sums.append(np.column_stack([whole - of_group, whole]) * inside)
    product = np.empty((count + 1, r, r))
    for i in range(r):
        for j in range(i + 1):
            block = np.add.reduceat(grams[i] * grams[j], starts, axis=0, dtype=np.float64)
            block = np.add.reduceat(block, starts, axis=1)  # (G, G)
            both = np.append(block.sum() - block.sum(0) - block.sum(1) + block.diagonal(), block.sum())
            rows = 2 / left * (sums[i] * sums[j]).sum(0)
            product[:, i, j] = product[:, j, i] = both - rows + sums[i].sum(0) * sums[j].sum(0) / left**2
    norm = np.sqrt(np.diagonal(product, axis1=1, axis2=2).clip(0))  # (G + 1, R)
    norm = np.where(norm > 1e-4, norm, np.nan)  # constant: undefined
    cka = product / (norm[:, :, None] * norm[:, None, :])
    return cka[-1], cka[:-1]


def _nearest(x: np.ndarray, k: int) -> np.ndarray:
    """(N, k) neighbours by cosine."""
    z = torch.from_numpy(np.ascontiguousarray(x)).float()
    return neighbours(z, z, k, self_index=np.arange(len(z))).index.numpy()


def _shared(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a[:, :, None] == b[:, None, :]).any(2).mean(1)


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
    return {stage: np.concatenate(batches) for stage, batches in parts.items()}


def kept_features(run: Run, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Those of `stage_features`, from the run's folder where they are stored."""
    file = run.path / "analysis" / "similarity-stages.npz"
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
