"""Losses written a second time, as loops over samples, straight from their formulas.

An oracle takes the loss (for its hyper-parameters and class vectors), embeddings, labels and the tuples, and returns
the value as a scalar with a graph, so that gradients can be compared too. `tuples`: None, Triplets, PairMasks, or what
the loss draws itself.
"""

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
        attract = mean([hinge(dist(z[a], z[p]) - loss.pos_margin) for a, p, _ in listed], zero)
        return attract + mean([hinge(loss.neg_margin - dist(z[a], z[n])) for a, _, n in listed], zero)
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
