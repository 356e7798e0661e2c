"""How alike maps of several models are, image by image, and what that is over images.

    correlation   Pearson r of two maps, pixel by pixel
    divergence    Jensen-Shannon divergence of two maps divided by their sums, in nats: 0 to ln 2

r is averaged as Fisher's z = arctanh r: mean = tanh(mean z), ± = tanh(std z), both over images, and the interval is
that of the mean of z, carried back by tanh. Source: Kobs et al. 2021; the interval is ours. Its unit is the class, for
images of one class are alike (`class_interval`): what images of other classes would give, these models only.

Of a constant map neither is defined: NaN here, left out of means and counted. Equal maps have r = 1 and an infinite z:
they are left out of means and counted, too; where all maps are equal the mean is 1.

Shapes: M models, N images, P pixels.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from nearkin.statistics.intervals import class_interval

EQUAL = 1 - 1e-10  # r of equal maps, but for rounding


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
    equal = int((defined & (np.abs(r) == 1)).any(1).sum())
    undefined = int((~defined).all(1).sum())
    z = image_means(to_z(r))  # (N,)
    counts = np.isfinite(z)
    if not counts.any():
        mean = float(r[defined].mean()) if defined.any() else None
        return Aggregate(mean, None if mean is None else 0.0, n=0, undefined=undefined, equal=equal)
    interval = class_interval(z[counts], classes[counts])
    spread = float(np.tanh(z[counts].std(ddof=1))) if counts.sum() > 1 else None
    low, high = (None if end is None else float(np.tanh(end)) for end in (interval.low, interval.high))
    return Aggregate(float(np.tanh(interval.mean)), spread, low, high, int(counts.sum()), interval.n, undefined, equal)


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
