"""Closed forms of ∂L/∂s, written from the formulas: what the curves of `pair_weights` are checked against in tests.

Each takes the similarities (n, n) of unit vectors, the labels, and the loss for its hyper-parameters; of pair losses it
gives (B, B) derivatives of ordered pairs (the weight of an unordered pair is w_ij + w_ji), of proxy losses (B, C) those
of sample and proxy.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Form = Callable[[np.ndarray, np.ndarray, np.ndarray, Any], np.ndarray]


def contrastive(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """-1/(d·#) for an attracting pair, +1/(d·#) for a repelling one: ∂d/∂s = -1/d, # the active pairs of its side."""
    d = np.sqrt(np.maximum(2 - 2 * s, 1e-30))
    attract, repel = positive & (d > loss.pos_margin), negative & (d < loss.neg_margin)
    return (repel / max(1, repel.sum()) - attract / max(1, attract.sum())) / d


def triplet(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """∓2/T times the number of active triplets [2s_an - 2s_ap + γ > 0] that the pair is in."""
    out = np.zeros_like(s)
    total = 0
    for a in range(len(s)):
        for p in np.flatnonzero(positive[a]):
            for n in np.flatnonzero(negative[a]):
                total += 1
                if 2 * s[a, n] - 2 * s[a, p] + loss.margin > 0:
                    out[a, p] -= 2
                    out[a, n] += 2
    return out / total


def margin(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """∓1/d times the triplets that an active pair is in, by the number of active pairs of all triplets."""
    d, beta = np.sqrt(np.maximum(2 - 2 * s, 1e-30)), float(loss.beta[0].detach())
    p, n = positive.sum(1, keepdims=True), negative.sum(1, keepdims=True)
    attract, repel = positive & (d > beta - loss.margin), negative & (d < beta + loss.margin)
    return (repel * p - attract * n) / d / max(1, (attract * n + repel * p).sum())


def multi_similarity(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """-e^{-α(s-λ)}/(1 + Σ_p e^{-α(s_p-λ)})/B and e^{β(s-λ)}/(1 + Σ_n e^{β(s_n-λ)})/B (Wang et al. 2019, eq. 16)."""
    pull = np.exp(-loss.alpha * (s - loss.base)) * positive
    push = np.exp(loss.beta * (s - loss.base)) * negative
    return (push / (1 + push.sum(1, keepdims=True)) - pull / (1 + pull.sum(1, keepdims=True))) / len(s)


def lifted_weighted(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """Softmax shares of the positives' -βs and the negatives' αs, times 2, by the batch."""
    pull, push = np.exp(-loss.beta * s) * positive, np.exp(loss.alpha * s) * negative
    return 2 * (push / push.sum(1, keepdims=True) - pull / pull.sum(1, keepdims=True)) / len(s)


def lifted_similarity(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """Softmax shares where [lse(λ - s_p) + lse(s_n)] > 0, else 0; a sum over anchors."""
    pull, push = np.exp(loss.margin - s) * positive, np.exp(s) * negative
    active = np.log(pull.sum(1, keepdims=True)) + np.log(push.sum(1, keepdims=True)) > 0
    return active * (push / push.sum(1, keepdims=True) - pull / pull.sum(1, keepdims=True))


def nt_xent(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """(share - 1)/t for a positive pair against all negatives of its anchor, share/t for each of those; by pairs."""
    t, out, total = loss.temperature, np.zeros_like(s), positive.sum()
    push = np.exp(s / t) * negative
    for a, p in zip(*np.nonzero(positive), strict=True):
        share = push[a] / (np.exp(s[a, p] / t) + push[a].sum())
        out[a] += share / t / total
        out[a, p] -= share.sum() / t / total
    return out


def npair(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """nt_xent at temperature 1: one couple after another against all negatives of its anchor (unit vectors)."""
    out, total = np.zeros_like(s), positive.sum()
    push = np.exp(s) * negative
    for a, p in zip(*np.nonzero(positive), strict=True):
        share = push[a] / (np.exp(s[a, p]) + push[a].sum())
        out[a] += share / total
        out[a, p] -= share.sum() / total
    return out


def lifted_structure(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """J of each positive pair times ∂J/∂d, -1/d, by the number of ordered pairs; J as in the loss."""
    d, out = np.sqrt(np.maximum(2 - 2 * s, 1e-30)), np.zeros_like(s)
    push = np.exp(loss.margin - d) * negative
    for i, j in zip(*np.nonzero(positive), strict=True):
        total = push[i].sum() + push[j].sum()
        lifted = max(0.0, np.log(total) + d[i, j])
        out[i, j] -= lifted / d[i, j]
        out[i] += lifted * push[i] / total / d[i]
        out[j] += lifted * push[j] / total / d[j]
    return out / positive.sum()


def proxy_anchor(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """-(α/|C⁺|)·e^{-α(s-δ)}/(1 + Σ same) and (α/C)·e^{α(s+δ)}/(1 + Σ other), sums over the samples of the batch."""
    pull = np.exp(-loss.alpha * (s - loss.delta)) * positive
    push = np.exp(loss.alpha * (s + loss.delta)) * negative
    present = positive.any(0).sum()
    return loss.alpha * (push / (1 + push.sum(0)) / s.shape[1] - pull / (1 + pull.sum(0)) / present)


def _softmax(logits: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """∂ mean cross-entropy / ∂ logits."""
    share = np.exp(logits - logits.max(1, keepdims=True))
    return (share / share.sum(1, keepdims=True) - positive) / len(logits)


def proxy_nca(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """-2σ²/B for the own proxy, whatever its similarity; 2σ²/B times the softmax share among the other proxies."""
    push = np.exp(2 * loss.scale**2 * s) * negative
    return 2 * loss.scale**2 * (push / push.sum(1, keepdims=True) - positive) / len(s)


def proxy_nca_pp(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """(2/T)(share - [own])/B."""
    return 2 / loss.temperature * _softmax(2 / loss.temperature * s, positive)


def norm_softmax(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """(1/T)(share - [own])/B."""
    return _softmax(s / loss.temperature, positive) / loss.temperature


def softmax(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """(share - [own])/B, for unit vectors."""
    return _softmax(s, positive)


def cosface(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """scale·(share - [own])/B with the margin on the own class."""
    return loss.scale * _softmax(loss.scale * (s - loss.margin * positive), positive)


def arcface(s: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: Any) -> np.ndarray:
    """The same with cos(θ + m); ∂cos(θ + m)/∂cos θ = sin(θ + m)/sin θ."""
    angle = np.arccos(s.clip(-1, 1))
    slope = np.where(positive, np.sin(angle + loss.margin) / np.maximum(np.sin(angle), 1e-12), 1)
    logits = loss.scale * np.where(positive, np.cos(angle + loss.margin), s)
    return loss.scale * slope * _softmax(logits, positive)


FORMS: dict[str, Form] = {
    "contrastive": contrastive,
    "triplet": triplet,
    "margin": margin,
    "multi_similarity": multi_similarity,
    "lifted_weighted": lifted_weighted,
    "lifted_similarity": lifted_similarity,
    "lifted_structure": lifted_structure,
    "nt_xent": nt_xent,
    "npair": npair,
    "proxy_anchor": proxy_anchor,
    "proxy_nca": proxy_nca,
    "proxy_nca_pp": proxy_nca_pp,
    "norm_softmax": norm_softmax,
    "softmax": softmax,
    "cosface": cosface,
    "arcface": arcface,
}
