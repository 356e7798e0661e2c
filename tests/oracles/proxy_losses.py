"""Losses with class vectors written a second time, as loops over samples and classes."""

import math
from typing import Any

import torch
from oracles.words import cos, dist, log_1_sum, log_sum, mean, oracle
from torch import Tensor


def cross_entropy(logits: list[list[Tensor]], y: list[int]) -> Tensor:
    return sum(log_sum(row) - row[c] for row, c in zip(logits, y, strict=True)) / len(y)


@oracle("proxy_anchor")
def proxy_anchor(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    attract, repel = [], []
    for c, w in enumerate(loss.proxies):
        own = [-loss.alpha * (cos(z[i], w) - loss.delta) for i in range(len(y)) if y[i] == c]
        others = [loss.alpha * (cos(z[i], w) + loss.delta) for i in range(len(y)) if y[i] != c]
        attract += [log_1_sum(own)] if own else []
        repel += [log_1_sum(others)]
    return mean(attract, z.sum() * 0) + mean(repel, z.sum() * 0)


@oracle("softmax")
def softmax(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    bias = [0.0] * len(loss.proxies) if loss.bias is None else loss.bias
    return cross_entropy([[v @ w + b for w, b in zip(loss.proxies, bias, strict=True)] for v in z], y)


@oracle("norm_softmax")
def norm_softmax(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    return cross_entropy([[cos(v, w) / loss.temperature for w in loss.proxies] for v in z], y)


@oracle("cosface")
def cosface(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    logits = []
    for v, own in zip(z, y, strict=True):
        margins = [loss.margin if c == own else 0 for c in range(len(loss.proxies))]
        logits.append([loss.scale * (cos(v, w) - m) for w, m in zip(loss.proxies, margins, strict=True)])
    return cross_entropy(logits, y)


@oracle("arcface")
def arcface(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    logits = []
    for v, own in zip(z, y, strict=True):
        row = []
        for c, w in enumerate(loss.proxies):
            angle = torch.arccos(cos(v, w))
            if c == own and loss.monotone and angle > math.pi - loss.margin:
                row.append(loss.scale * (torch.cos(angle) - loss.margin * math.sin(loss.margin)))
            else:
                row.append(loss.scale * torch.cos(angle + loss.margin if c == own else angle))
        logits.append(row)
    return cross_entropy(logits, y)


@oracle("proxy_nca")
def proxy_nca(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    terms = []
    for v, own in zip(z, y, strict=True):
        far = [(loss.scale * dist(v, w)) ** 2 for w in loss.proxies]
        terms.append(far[own] + log_sum([-d for c, d in enumerate(far) if c != own]))
    return mean(terms, z.sum() * 0)


@oracle("proxy_nca_pp")
def proxy_nca_pp(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    return cross_entropy([[-(dist(v, w) ** 2) / loss.temperature for w in loss.proxies] for v in z], y)


@oracle("soft_triple")
def soft_triple(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    classes, k = loss.num_classes, loss.centres
    centres = [[loss.proxies[j * classes + c] for j in range(k)] for c in range(classes)]
    logits = []
    for v, own in zip(z, y, strict=True):
        row = []
        for c in range(classes):
            near = [cos(v, w) for w in centres[c]]
            weights = [torch.exp(s / loss.gamma) for s in near]
            s = sum(w * x for w, x in zip(weights, near, strict=True)) / sum(weights)
            row.append(loss.scale * (s - (loss.delta if c == own else 0)))
        logits.append(row)
    spread = z.sum() * 0
    for group in centres:
        for a in range(k):
            for b in range(a + 1, k):
                spread = spread + torch.sqrt(2 + 1e-5 - 2 * cos(group[a], group[b]))
    return cross_entropy(logits, y) + loss.tau * spread / max(1, classes * k * (k - 1))


@oracle("proxy_repel")
def proxy_repel(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    attract, repel = [], []
    for c, w in enumerate(loss.proxies):
        own = [-loss.alpha * (cos(z[i], w) - loss.delta) for i in range(len(y)) if y[i] == c]
        attract += [log_1_sum(own)] if own else []
        reached = []
        for other, v in enumerate(loss.proxies):
            if other != c and loss.via == "proxies":
                reached.append(loss.alpha * (cos(w, v) + loss.delta))
            elif other != c:
                through = sum(cos(x, w) * cos(x, v) for x in z) / (len(y) if loss.scale == "mean" else 1)
                reached.append(loss.alpha * (through + loss.delta))
        repel.append(log_1_sum(reached))
    value = mean(attract, z.sum() * 0) + mean(repel, z.sum() * 0)
    for i in range(len(y)):
        others = [(cos(z[i], z[j]), y[i] == y[j]) for j in range(len(y)) if j != i]
        pulled = [-loss.alpha * (s - loss.delta) for s, same in others if same]
        pushed = [loss.alpha * (s + loss.delta) for s, same in others if not same]
        for terms in filter(None, (pulled, pushed)):
            value = value + loss.relations / len(y) * log_1_sum(terms)
    return value
