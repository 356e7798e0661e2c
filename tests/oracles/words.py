"""The words in which the oracles of losses are written, and their list.

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


def length(v: Tensor) -> Tensor:
    square = v @ v
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
