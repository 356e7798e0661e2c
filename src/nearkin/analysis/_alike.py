"""How alike two representations of the same images are, and two saliency maps of one image.

    CKA = ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖)      columns centred, Frobenius norms; 1: the same up to turning and scaling
    overlap@k                         the share of an image's k nearest (cosine) in one that are so in the other, too
    correlation                       Pearson r of two maps, pixel by pixel
    divergence                        Jensen-Shannon divergence of two maps divided by their sums, in nats: 0 to ln 2

Linear CKA of few images with many channels is too high, for unrelated representations too: compare it at one level and
with one number of images. Intervals are over images, those of one class as one unit: the classes are dealt into groups,
one group is left out at a time, and the spread of the results gives the standard error (the jackknife; drawing with
replacement would put copies of images side by side, which are alike in every representation). They speak of these
models only.

r is averaged as Fisher's z = arctanh r: mean = tanh(mean z), ± = tanh(std z), both over images, and the interval is
that of the mean of z (`class_interval`: its unit is the class), carried back by tanh. Of a constant map neither r nor
divergence is defined: NaN here, left out of means and counted. Equal maps have r = 1 and an infinite z: they are left
out and counted, too; where all maps are equal the mean is 1.

Source: Kornblith et al. 2019 (ICML); for maps Kobs et al. 2021, the intervals are ours.

Shapes: N images, R representations, G groups, M models, P pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats
from scipy.special import xlogy

from nearkin.errors import NearkinError
from nearkin.evaluation.search import neighbours
from nearkin.statistics.intervals import LEVEL, class_interval, cut

GROUPS = 20
TINY = 1e-12
EQUAL = 1 - 1e-10  # r of equal maps, but for rounding


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
    return defined(float(_cka([_gram(x), _gram(y)], np.zeros(len(x), np.int64))[0][0, 1]))


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


def defined(value: float | None) -> float | None:
    """A number; None where it is none."""
    return None if value is None or np.isnan(value) else value


def share_interval(value: float | None, left: np.ndarray) -> dict[str, Any]:
    """The interval of a share from those without each group of classes, and whether it is cut at 0 or 1."""
    low, high = (None, None) if value is None else jackknife(value, left)
    if low is None or high is None:
        return {"low": None, "high": None, "cut": False}
    ends = cut(low, high, (0.0, 1.0))
    return {"low": ends[0], "high": ends[1], "cut": ends != (low, high)}


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


# -- saliency maps -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Aggregate:
    """A mean over images, its spread over images, and the 95 % interval of the mean over classes; None where there is
    none."""

    mean: float | None
    spread: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0  # images that count
    classes: int = 0  # of these images: the units of the interval
    undefined: int = 0  # images without a value: a constant map
    equal: int = 0  # images whose maps are equal: r = 1

    def numbers(self) -> dict[str, float | int | None]:
        """As JSON has it."""
        return dict(vars(self))


def correlations(maps: np.ndarray) -> np.ndarray:
    """Pearson r of every two of M maps (M, P); NaN where one of them is constant.                     -> (M, M)"""
    x = maps.astype(np.float64)
    x = x - x.mean(1, keepdims=True)
    lengths = np.linalg.norm(x, axis=1)  # (M,)
    constant = lengths <= 1e-12 * np.abs(maps).astype(np.float64).max(1).clip(1e-300) * np.sqrt(maps.shape[1])
    x = x / np.where(constant, 1, lengths)[:, None]
    r = (x @ x.T).clip(-1, 1)
    r[r > EQUAL] = 1
    r[r < -EQUAL] = -1
    r[constant] = np.nan
    r[:, constant] = np.nan
    return r  # (M, M)


def divergences(maps: np.ndarray) -> np.ndarray:
    """Jensen-Shannon divergence of every two of M maps (M, P), none below 0; NaN where a map is constant."""
    x = maps.astype(np.float64)
    constant = np.ptp(x, axis=1) == 0
    p = x / np.where(constant, 1, x.sum(1))[:, None]  # (M, P)
    negative = xlogy(p, p).sum(1)  # (M,) minus entropies
    jsd = np.zeros((len(p), len(p)))
    for i in range(len(p) - 1):
        middle = (p[i] + p[i + 1 :]) / 2  # (M-i-1, P)
        jsd[i, i + 1 :] = (negative[i] + negative[i + 1 :]) / 2 - xlogy(middle, middle).sum(1)
    jsd = (jsd + jsd.T).clip(0, np.log(2))
    jsd[constant] = np.nan
    jsd[:, constant] = np.nan
    return jsd  # (M, M)


def fisher(r: np.ndarray, classes: np.ndarray) -> Aggregate:
    """The mean of correlations over images, for each image first over the pairs of models.

    Parameters:
        r: (N,) or (N, K), the correlations of K pairs of models; NaN where undefined.
        classes: (N,) the class of each image.
    """
    r = r.reshape(len(r), -1)
    defined = np.isfinite(r)
    z = plain(to_z(r), classes)
    ends = (z.mean, z.spread, z.low, z.high)
    mean, spread, low, high = (None if end is None else float(np.tanh(end)) for end in ends)
    if z.mean is None and defined.any():  # all maps are equal
        mean, spread = float(r[defined].mean()), 0.0
    equal, undefined = (defined & (np.abs(r) == 1)).any(1).sum(), (~defined).all(1).sum()
    return Aggregate(mean, spread, low, high, z.n, z.classes, int(undefined), int(equal))


def plain(values: np.ndarray, classes: np.ndarray) -> Aggregate:
    """The same for values that are averaged as they are.                                          (N,) or (N, K)"""
    means = image_means(values.reshape(len(values), -1))  # (N,)
    counts = np.isfinite(means)
    n = int(counts.sum())
    if not n:
        return Aggregate(None, undefined=len(means))
    interval = class_interval(means[counts], classes[counts])
    spread = float(means[counts].std(ddof=1)) if n > 1 else None
    return Aggregate(interval.mean, spread, interval.low, interval.high, n, interval.n, len(means) - n)


def to_z(r: np.ndarray) -> np.ndarray:
    """Fisher's z; NaN where r is undefined, 1 or -1."""
    inside = np.abs(r) < 1
    return np.where(inside, np.arctanh(np.where(inside, r, 0)), np.nan)


def image_means(values: np.ndarray) -> np.ndarray:
    """The mean of every row over its finite values; NaN where there are none.                  (N, K) -> (N,)"""
    finite = np.isfinite(values)
    count = finite.sum(1)
    total = np.where(finite, values, 0).sum(1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
