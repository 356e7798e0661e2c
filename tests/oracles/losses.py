"""Losses on pairs and triplets written a second time, as loops over samples, straight from their formulas."""

import math
from typing import Any

import torch
from oracles import hist, proxy_losses  # noqa: F401  (their oracles join the list)
from oracles.words import (
    ORACLES,
    cos,
    dist,
    hinge,
    length,
    log_1_sum,
    log_sum,
    mean,
    mean_nonzero,
    negatives,
    oracle,
    positives,
    triplets,
    unit,
)
from torch import Tensor

from nearkin.pairs import Triplets

__all__ = ["ORACLES"]


@oracle("contrastive")
def contrastive(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    zero = z.sum() * 0

    def apart(a: Tensor, b: Tensor) -> Tensor:
        return 1 - cos(a, b) if loss.form == "cosine" else dist(a, b)

    if isinstance(tuples, Triplets):
        listed = triplets(y, tuples)
        if loss.form == "similarity":
            attract = [-cos(z[a], z[p]) for a, p, _ in listed]
            return mean(attract + [hinge(cos(z[a], z[n]) - loss.threshold) for a, _, n in listed], zero)
        attract = mean([hinge(apart(z[a], z[p]) - loss.pos_margin) for a, p, _ in listed], zero)
        return attract + mean([hinge(loss.neg_margin - apart(z[a], z[n])) for a, _, n in listed], zero)
    if loss.form == "similarity":
        attract = [-cos(z[i], z[p]) for i in range(len(y)) for p in positives(y, i, tuples)]
        repel = [hinge(cos(z[i], z[n]) - loss.threshold) for i in range(len(y)) for n in negatives(y, i, tuples)]
        return mean(attract + repel, zero)
    attract, repel = [], []
    for i in range(len(y)):
        attract += [hinge(apart(z[i], z[p]) - loss.pos_margin) for p in positives(y, i, tuples)]
        repel += [hinge(loss.neg_margin - apart(z[i], z[n])) for n in negatives(y, i, tuples)]
    return mean_nonzero(attract, zero) + mean_nonzero(repel, zero)


@oracle("triplet")
def triplet(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    power = 2 if loss.squared else 1
    terms = [
        hinge(dist(z[a], z[p]) ** power - dist(z[a], z[n]) ** power + loss.margin) for a, p, n in triplets(y, tuples)
    ]
    return (mean if loss.reduction == "mean" else mean_nonzero)(terms, z.sum() * 0)


@oracle("multi_similarity")
def multi_similarity(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    terms = []
    for i in range(len(y)):
        pos, neg = positives(y, i, tuples), negatives(y, i, tuples)
        if pos or neg:
            attract = log_1_sum([-loss.alpha * (cos(z[i], z[p]) - loss.base) for p in pos]) / loss.alpha
            repel = log_1_sum([loss.beta * (cos(z[i], z[n]) - loss.base) for n in neg]) / loss.beta
            terms.append(attract + repel)
    if loss.divisor == "batch":
        return sum(terms, z.sum() * 0) / len(y)
    return mean(terms, z.sum() * 0)


@oracle("lifted_structure")
def lifted_structure(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    terms = []
    for i in range(len(y)):
        for j in positives(y, i, tuples):
            reached = [loss.margin - dist(z[i], z[k]) for k in negatives(y, i, tuples)]
            reached += [loss.margin - dist(z[j], z[k]) for k in negatives(y, j, tuples)]
            if reached:
                terms.append(hinge(log_sum(reached) + dist(z[i], z[j])) ** 2 / 2)
    return mean(terms, z.sum() * 0)


def norms(z: Tensor, power: int = 1) -> Tensor:
    return mean([length(v) ** power for v in z], z.sum() * 0)


def whole_anchors(y: list[int], tuples: Any) -> list[tuple[int, list[int], list[int]]]:
    sides = [(i, positives(y, i, tuples), negatives(y, i, tuples)) for i in range(len(y))]
    return [(i, p, n) for i, p, n in sides if p and n]


@oracle("generalized_lifted")
def generalized_lifted(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    terms = []
    for i, pos, neg in whole_anchors(y, tuples):
        attract = log_sum([length(z[i] - z[p]) for p in pos])
        terms.append(hinge(attract + log_sum([loss.margin - length(z[i] - z[n]) for n in neg])))
    return mean(terms, z.sum() * 0) + loss.nu * norms(z, loss.reg_power)


@oracle("lifted_similarity")
def lifted_similarity(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    total = z.sum() * 0
    for i, pos, neg in whole_anchors(y, tuples):
        attract = log_sum([loss.margin - cos(z[i], z[p]) for p in pos])
        total = total + hinge(attract + log_sum([cos(z[i], z[n]) for n in neg]))
    return total


@oracle("lifted_weighted")
def lifted_weighted(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    total = z.sum() * 0
    for i, pos, neg in whole_anchors(y, tuples):
        total = total + 2 / loss.beta * log_sum([-loss.beta * cos(z[i], z[p]) for p in pos])
        total = total + 2 / loss.alpha * log_sum([loss.alpha * cos(z[i], z[n]) for n in neg])
    return total / len(y)


@oracle("npair")
def npair(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    couples = list(zip(tuples.anchor.tolist(), tuples.positive.tolist(), strict=True))
    terms = []
    if loss.unit:
        z = torch.stack([v / length(v) for v in z])
    for a, p in couples:
        others = [q for _, q in couples] if loss.pairing == "class" else range(len(y))
        terms.append(log_1_sum([z[a] @ z[n] - z[a] @ z[p] for n in others if y[n] != y[a]]))
    return mean(terms, z.sum() * 0) + loss.nu * norms(z)


@oracle("angular")
def angular(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    tan2 = math.tan(loss.alpha * math.pi / 180) ** 2
    angles, pairs = [], []
    for a, p in zip(tuples.anchor.tolist(), tuples.positive.tolist(), strict=True):
        others = [n for n in range(len(y)) if y[n] != y[a]]
        own = 2 * (1 + tan2) * cos(z[a], z[p])
        angles.append(log_1_sum([4 * tan2 * (cos(z[a], z[n]) + cos(z[p], z[n])) - own for n in others]))
        pairs.append(log_1_sum([z[a] @ z[n] - z[a] @ z[p] for n in others]))
    zero = z.sum() * 0
    return loss.npair * mean(pairs, zero) + loss.lam * mean(angles, zero) + loss.nu * norms(z)


def pulses(values: list[Tensor], node: float, width: float) -> Tensor:
    """How much of the values falls on a node."""
    near = [v for v in values if abs(v - node) < width]
    return sum((1 - abs(v - node) / width for v in near), torch.zeros((), dtype=torch.float64))


@oracle("histogram")
def histogram(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    width = 2 / (loss.nodes - 1)
    pos = [cos(z[i], z[j]) for i in range(len(y)) for j in positives(y, i, tuples)]
    neg = [cos(z[i], z[j]) for i in range(len(y)) for j in negatives(y, i, tuples)]
    value, below = z.sum() * 0, z.sum() * 0
    if not pos or not neg:
        return value
    for r in range(loss.nodes):
        below = below + pulses(pos, -1 + r * width, width) / len(pos)
        value = value + below * pulses(neg, -1 + r * width, width) / len(neg)
    return value


@oracle("fastap")
def fastap(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    width = 4 / loss.bins
    terms = []
    for i in range(len(y)):
        pos = [dist(z[i], z[p]) ** 2 for p in positives(y, i, tuples)]
        neg = [dist(z[i], z[n]) ** 2 for n in negatives(y, i, tuples)]
        precision, found, seen = z.sum() * 0, z.sum() * 0, z.sum() * 0
        for node in range(loss.bins + 1):
            here = pulses(pos, node * width, width)
            found = found + here
            seen = seen + here + pulses(neg, node * width, width)
            if seen > 0:
                precision = precision + here * found / seen
        if pos:
            terms.append(1 - precision / len(pos))
    return mean(terms, z.sum() * 0)


@oracle("margin")
def margin(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    total, halves, whole = z.sum() * 0, 0, 0
    for a, p, n in triplets(y, tuples):
        beta = loss.beta[y[a]] if len(loss.beta) > 1 else loss.beta[0]
        if loss.form == "similarity":  # [λ + I(β - s)]₊ with I = 1 for a positive, -1 for a negative
            attract, repel = hinge(loss.margin + beta - cos(z[a], z[p])), hinge(loss.margin - beta + cos(z[a], z[n]))
        else:
            attract, repel = hinge(loss.margin + dist(z[a], z[p]) - beta), hinge(loss.margin + beta - dist(z[a], z[n]))
        total = total + attract + repel
        halves += int(attract > 0) + int(repel > 0)
        whole += int(attract > 0 or repel > 0)
    divisor = halves if loss.divisor == "active_pairs" else whole
    return total / max(1, divisor) + loss.nu * sum(loss.beta) * (-1 if loss.form == "similarity" else 1)


def snr(a: Tensor, x: Tensor) -> Tensor:
    return torch.var(unit(a) - unit(x)) / torch.var(unit(a))


def mean_sum(z: Tensor) -> Tensor:
    return mean([abs(sum(unit(v))) for v in z], z.sum() * 0)


@oracle("snr_triplet")
def snr_triplet(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    terms = [hinge(snr(z[a], z[p]) - snr(z[a], z[n]) + loss.margin) for a, p, n in triplets(y, tuples)]
    return mean_nonzero(terms, z.sum() * 0) + loss.reg_weight * mean_sum(z)


@oracle("snr_contrastive")
def snr_contrastive(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    attract, repel = [], []
    for i in range(len(y)):
        attract += [hinge(snr(z[i], z[p]) - loss.pos_margin) for p in positives(y, i, tuples)]
        repel += [hinge(loss.neg_margin - snr(z[i], z[n])) for n in negatives(y, i, tuples)]
    value = mean_nonzero(attract, z.sum() * 0) + mean_nonzero(repel, z.sum() * 0)
    return value + loss.reg_weight * mean_sum(z)


@oracle("quadruplet")
def quadruplet(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    first, second = [], []
    for a, p, n, other in zip(*(index.tolist() for index in tuples), strict=True):
        first.append(hinge(dist(z[a], z[p]) - dist(z[a], z[n]) + loss.margin))
        if other >= 0:
            assert len({y[a], y[n], y[other]}) == 3
            second.append(hinge(dist(z[a], z[p]) - dist(z[n], z[other]) + loss.margin2))
    return mean(first, z.sum() * 0) + mean(second, z.sum() * 0)


@oracle("nt_xent")
def nt_xent(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    terms = []
    for i, pos, neg in whole_anchors(y, tuples):
        for j in pos:
            own = cos(z[i], z[j]) / loss.temperature
            terms.append(log_sum([own, *(cos(z[i], z[n]) / loss.temperature for n in neg)]) - own)
    return mean(terms, z.sum() * 0)
