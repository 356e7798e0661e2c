"""HIST written a second time, step by step: loops over samples and classes, one vector at a time."""

from typing import Any

import torch
from oracles.words import log_sum, oracle, unit
from torch import Tensor

Rows = list[list[Tensor]]


def delta(loss: Any, z: Tensor) -> Rows:
    """Squared distance of each sample from each class, every coordinate over its variance."""
    rows = []
    for m in z:
        row = []
        for c in range(loss.num_classes):
            total = z.new_zeros(())
            for d, difference in enumerate(unit(m) - unit(loss.proxies[c])):
                log_variance = 0.0 if loss.v is None else loss.v[c, d].clamp(0, 6)
                total = total + difference**2 / torch.exp(torch.as_tensor(log_variance, dtype=z.dtype))
            row.append(total)
        rows.append(row)
    return rows


def distribution_loss(loss: Any, z: Tensor, y: list[int]) -> Tensor:
    terms = []
    for row, own in zip(delta(loss, z), y, strict=True):
        terms.append(loss.tau * row[own] + log_sum([-loss.tau * distance for distance in row]))
    return sum(terms) / len(terms)


def incidence(loss: Any, z: Tensor, y: list[int]) -> Rows:
    distances = delta(loss, z)
    h = []
    for i, own in enumerate(y):
        row = []
        for e in sorted(set(y)):
            if e == own:
                row.append(z.new_ones(()))
            elif loss.graph == "positives":
                row.append(z.new_zeros(()))
            else:
                row.append(torch.exp(-loss.alpha * distances[i][e]))
        h.append(row)
    return h


def propagation(loss: Any, z: Tensor, y: list[int]) -> Rows:
    samples = range(len(y))
    if loss.graph == "none":
        return [[z.new_tensor(float(i == j)) for j in samples] for i in samples]
    if loss.graph == "attention":
        rows = []
        for i in samples:
            query = loss.query.weight @ z[i] + loss.query.bias
            scores = [query @ (loss.key.weight @ z[j] + loss.key.bias) / len(query) ** 0.5 for j in samples]
            rows.append([torch.exp(score - log_sum(scores)) for score in scores])
        return rows
    h = incidence(loss, z, y)
    edges = range(len(h[0]))
    of_sample = [sum(h[i]) for i in samples]
    of_edge = [sum(h[i][e] for i in samples) for e in edges]
    return [
        [sum(h[i][e] * h[j][e] / of_edge[e] for e in edges) / (of_sample[i] * of_sample[j]) ** 0.5 for j in samples]
        for i in samples
    ]


def layers(loss: Any, z: Tensor, g: Rows) -> list[Tensor]:
    """The logits of each sample."""
    samples = range(len(z))
    inner = [loss.theta1.weight @ m + loss.theta1.bias for m in z]
    mixed = [sum(g[i][j] * inner[j] for j in samples) for i in samples]
    mean = sum(mixed) / len(mixed)
    variance = sum((a - mean) ** 2 for a in mixed) / len(mixed)
    outer = []
    for a in mixed:
        normal = (a - mean) / torch.sqrt(variance + 1e-5) * loss.bn.weight + loss.bn.bias
        active = torch.where(normal > 0, normal, 0.1 * normal)
        outer.append(loss.theta2.weight @ active + loss.theta2.bias)
    return [sum(g[i][j] * outer[j] for j in samples) for i in samples]


@oracle("hist")
def hist(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    value = distribution_loss(loss, z, y) if loss.distribution_loss else z.sum() * 0
    if len(y) == 1:
        return value
    logits = layers(loss, z, propagation(loss, z, y))
    terms = [log_sum(list(row)) - row[own] for row, own in zip(logits, y, strict=True)]
    return value + loss.lam * sum(terms) / len(terms)
