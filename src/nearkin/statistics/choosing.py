"""How well does a score choose what another one likes? Validation chooses among settings and epochs; the test judges.

P things are chosen from, in B draws at once: resamples of classes, of settings.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nearkin.errors import NearkinError
from nearkin.statistics.intervals import t_quantile

Floats = NDArray[np.float64]


def rank_agreement(score: ArrayLike, truth: ArrayLike) -> Floats:
    """Spearman's rank correlation of every draw, (...); NaN where one side is the same for all things.

    Parameters:
        score: what chooses.                                                                                (..., P)
        truth: what judges, in the same shape.                                                              (..., P)
    """
    a, b = (stats.rankdata(side, axis=-1) for side in _checked(score, truth))
    a, b = (ranks - ranks.mean(axis=-1, keepdims=True) for ranks in (a, b))
    norm = np.sqrt((a**2).sum(-1) * (b**2).sum(-1))
    with np.errstate(invalid="ignore"):
        return np.where(norm > 0, (a * b).sum(-1) / norm, np.nan)


def regret(score: ArrayLike, truth: ArrayLike) -> Floats:
    """What choosing by the score loses in every draw, (...): the best truth less the truth of what has the best score.
    Of several that share the best score any may be taken, so that their mean counts.

    Parameters:
        score: what chooses; high is better.                                                                (..., P)
        truth: what judges; high is better, in the same shape.                                              (..., P)
    """
    a, b = _checked(score, truth)
    chosen = a == a.max(axis=-1, keepdims=True)
    return b.max(axis=-1) - (b * chosen).sum(-1) / chosen.sum(-1)


def resampled_means(means: ArrayLike, queries: ArrayLike, times: ArrayLike) -> Floats:
    """The mean over queries when classes are drawn again.                                                       (B, P)

    Parameters:
        means: the mean over the queries of each class.                                                          (P, C)
        queries: how many queries each class has.                                                                (C,)
        times: how often each class is drawn; all ones: the mean as it is.                                       (B, C)
    """
    weights = np.asarray(times, dtype=float) * np.asarray(queries, dtype=float)  # (B, C)
    return weights @ np.asarray(means, dtype=float).T / weights.sum(axis=1, keepdims=True)


def correlation_interval(value: float, drawn: ArrayLike) -> tuple[float, float]:
    """The 95 % interval of a correlation: ± 1.96 standard deviations of its resamples, in Fisher's z = atanh r.

    Not their percentiles: resampled classes carry the noise of classes twice, which draws correlations towards 0, and a
    percentile interval may then miss its own value.

    Parameters:
        value: the correlation as it is.
        drawn: those of the resamples; NaN is left out.                                                          (B,)
    """
    z = np.arctanh(np.clip(np.asarray(drawn, dtype=float), -0.9999, 0.9999))
    half = t_quantile(np.inf) * float(np.nanstd(z, ddof=1))
    middle = np.arctanh(np.clip(value, -0.9999, 0.9999))
    return float(np.tanh(middle - half)), float(np.tanh(middle + half))


def _checked(score: ArrayLike, truth: ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.asarray(score, dtype=float), np.asarray(truth, dtype=float)
    if a.shape != b.shape or a.ndim < 1 or a.shape[-1] < 2:
        raise NearkinError(f"values of shapes {a.shape} and {b.shape}: must be equal, with at least two things each")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise NearkinError("values must be finite")
    return a, b
