"""Losses written a second time, as loops over samples, straight from their formulas.

An oracle takes the loss (for its hyper-parameters and class vectors), embeddings, labels and the tuples, and returns
the value as a scalar with a graph, so that gradients can be compared too. `tuples`: None, Triplets, PairMasks, or what
the loss draws itself.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nearkin.pairs import PairMasks, Triplets

ORACLES: dict[str, Callable[[Any, Tensor, list[int], Any], Tensor]] = {}


def oracle(name: str) -> Callable[[Callable], Callable]:
    def add(function: Callable) -> Callable:
        ORACLES[name] = function
        return function

    return add


# -- the vocabulary ------------------------------------------------------------------------------------------


def length(v: Tensor) -> Tensor:
    square = sum(x * x for x in v)
    return torch.sqrt(square) if square > 0 else square


def unit(v: Tensor) -> Tensor:
    return v / length(v) if length(v) > 0 else v


def cos(a: Tensor, b: Tensor) -> Tensor:
    return (unit(a) * unit(b)).sum()


def dist(a: Tensor, b: Tensor) -> Tensor:
    return length(unit(a) - unit(b))


def hinge(x: Tensor) -> Tensor:
    return x if x > 0 else x * 0


def log_sum(terms: list[Tensor]) -> Tensor:
    return torch.log(sum(torch.exp(t) for t in terms))


def log_1_sum(terms: list[Tensor]) -> Tensor:
    return torch.log(1 + sum((torch.exp(t) for t in terms), torch.zeros((), dtype=torch.float64)))


def mean(terms: list[Tensor], zero: Tensor) -> Tensor:
    return sum(terms) / len(terms) if terms else zero


def mean_nonzero(terms: list[Tensor], zero: Tensor) -> Tensor:
    return mean([t for t in terms if t > 0], zero)


def positives(y: list[int], i: int, tuples: Any) -> list[int]:
    found = [j for j in range(len(y)) if j != i and y[j] == y[i]]
    return [j for j in found if tuples.positive[i, j]] if isinstance(tuples, PairMasks) else found


def negatives(y: list[int], i: int, tuples: Any) -> list[int]:
    found = [j for j in range(len(y)) if y[j] != y[i]]
    return [j for j in found if tuples.negative[i, j]] if isinstance(tuples, PairMasks) else found


def triplets(y: list[int], tuples: Any) -> list[tuple[int, int, int]]:
    if isinstance(tuples, Triplets):
        return list(zip(*(index.tolist() for index in tuples), strict=True))
    anchors = range(len(y))
    return [(a, p, n) for a in anchors for p in positives(y, a, tuples) for n in negatives(y, a, tuples)]


# -- the losses ----------------------------------------------------------------------------------------------


@oracle("contrastive")
def contrastive(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    zero = z.sum() * 0
    if isinstance(tuples, Triplets):
        listed = triplets(y, tuples)
        if loss.form == "similarity":
            attract = [-cos(z[a], z[p]) for a, p, _ in listed]
            return mean(attract + [hinge(cos(z[a], z[n]) - loss.threshold) for a, _, n in listed], zero)
        attract = mean([hinge(dist(z[a], z[p]) - loss.pos_margin) for a, p, _ in listed], zero)
        return attract + mean([hinge(loss.neg_margin - dist(z[a], z[n])) for a, _, n in listed], zero)
    if loss.form == "similarity":
        attract = [-cos(z[i], z[p]) for i in range(len(y)) for p in positives(y, i, tuples)]
        repel = [hinge(cos(z[i], z[n]) - loss.threshold) for i in range(len(y)) for n in negatives(y, i, tuples)]
        return mean(attract + repel, zero)
    attract, repel = [], []
    for i in range(len(y)):
        attract += [hinge(dist(z[i], z[p]) - loss.pos_margin) for p in positives(y, i, tuples)]
        repel += [hinge(loss.neg_margin - dist(z[i], z[n])) for n in negatives(y, i, tuples)]
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
    return mean(terms, z.sum() * 0)


@oracle("proxy_anchor")
def proxy_anchor(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    attract, repel = [], []
    for c, w in enumerate(loss.proxies):
        own = [-loss.alpha * (cos(z[i], w) - loss.delta) for i in range(len(y)) if y[i] == c]
        others = [loss.alpha * (cos(z[i], w) + loss.delta) for i in range(len(y)) if y[i] != c]
        attract += [log_1_sum(own)] if own else []
        repel += [log_1_sum(others)]
    return mean(attract, z.sum() * 0) + mean(repel, z.sum() * 0)


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


def pulse(x: Tensor, node: float, width: float) -> Tensor:
    return hinge(1 - abs(x - node) / width)


@oracle("histogram")
def histogram(loss: Any, z: Tensor, y: list[int], tuples: Any) -> Tensor:
    width = 2 / (loss.nodes - 1)
    pos = [cos(z[i], z[j]) for i in range(len(y)) for j in positives(y, i, tuples)]
    neg = [cos(z[i], z[j]) for i in range(len(y)) for j in negatives(y, i, tuples)]
    value, below = z.sum() * 0, z.sum() * 0
    if not pos or not neg:
        return value
    for r in range(loss.nodes):
        below = below + sum(pulse(s, -1 + r * width, width) for s in pos) / len(pos)
        value = value + below * sum(pulse(s, -1 + r * width, width) for s in neg) / len(neg)
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
            here = sum((pulse(d2, node * width, width) for d2 in pos), z.sum() * 0)
            found = found + here
            seen = seen + here + sum(pulse(d2, node * width, width) for d2 in neg)
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
        attract = hinge(loss.margin + dist(z[a], z[p]) - beta)
        repel = hinge(loss.margin + beta - dist(z[a], z[n]))
        total = total + attract + repel
        halves += int(attract > 0) + int(repel > 0)
        whole += int(attract > 0 or repel > 0)
    divisor = halves if loss.divisor == "active_pairs" else whole
    return total / max(1, divisor) + loss.nu * sum(loss.beta)


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


def cross_entropy(logits: list[list[Tensor]], y: list[int]) -> Tensor:
    return sum(log_sum(row) - row[c] for row, c in zip(logits, y, strict=True)) / len(y)


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
                reached.append(loss.alpha * (sum(cos(x, w) * cos(x, v) for x in z) + loss.delta))
        repel.append(log_1_sum(reached))
    return mean(attract, z.sum() * 0) + mean(repel, z.sum() * 0)
