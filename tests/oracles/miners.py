"""Miners written a second time, as loops: for each, what it may return.

An oracle gives the set of triplets that a miner may draw or, for miners without chance, exactly what it returns.
"""

import math

import torch
from torch import Tensor


def unit(v: Tensor) -> Tensor:
    return v / v.norm() if v.norm() > 0 else v


def distance(z: Tensor, i: int, j: int) -> float:
    return float((unit(z[i]) - unit(z[j])).norm())


def sides(y: list[int], a: int) -> tuple[list[int], list[int]]:
    everyone = range(len(y))
    return [j for j in everyone if j != a and y[j] == y[a]], [j for j in everyone if y[j] != y[a]]


def anchors(y: list[int]) -> list[int]:
    return [a for a in range(len(y)) if all(sides(y, a))]


def all_triplets(z: Tensor, y: list[int]) -> set[tuple[int, int, int]]:
    return {(a, p, n) for a in anchors(y) for p in sides(y, a)[0] for n in sides(y, a)[1]}


def random_per_anchor(y: list[int]) -> tuple[list[int], dict[int, set[int]], dict[int, set[int]]]:
    """Anchors, each once, and what may be drawn for each as p and as n: one of either, all alike."""
    positives, negatives = {}, {}
    for a in anchors(y):
        pos, neg = sides(y, a)
        positives[a], negatives[a] = set(pos), set(neg)
    return anchors(y), positives, negatives


def semihard(z: Tensor, y: list[int], margin: float) -> set[tuple[int, int, int]]:
    """Any (a, p, n) that is semihard, or whose (a, p) has no semihard negative."""
    allowed = set()
    for a in anchors(y):
        pos, neg = sides(y, a)
        for p in pos:
            d_ap = distance(z, a, p)
            within = [n for n in neg if d_ap < distance(z, a, n) <= d_ap + margin]
            allowed |= {(a, p, n) for n in within or neg}
    return allowed


def semihard_every(z: Tensor, y: list[int], margin: float) -> set[tuple[int, int, int]]:
    return {(a, p, n) for a, p, n in all_triplets(z, y) if 0 < distance(z, a, n) - distance(z, a, p) <= margin}


def semihard_hardest(z: Tensor, y: list[int]) -> set[tuple[int, int, int]]:
    allowed = set()
    for a in anchors(y):
        pos, neg = sides(y, a)
        for p in pos:
            beyond = [n for n in neg if distance(z, a, n) > distance(z, a, p)]
            nearest = [min(beyond, key=lambda n: distance(z, a, n))] if beyond else neg
            allowed |= {(a, p, n) for n in nearest}
    return allowed


def softhard(z: Tensor, y: list[int]) -> set[tuple[int, int, int]]:
    allowed = set()
    for a in anchors(y):
        pos, neg = sides(y, a)
        furthest, nearest = max(distance(z, a, p) for p in pos), min(distance(z, a, n) for n in neg)
        hard_pos = [p for p in pos if distance(z, a, p) > nearest] or pos
        hard_neg = [n for n in neg if distance(z, a, n) < furthest] or neg
        allowed |= {(a, p, n) for p in hard_pos for n in hard_neg}
    return allowed


def hard_floor(z: Tensor, y: list[int], floor: float) -> set[tuple[int, int, int]]:
    allowed = set()
    for a in anchors(y):
        pos, neg = sides(y, a)
        lowest = min(floor, max(distance(z, a, p) for p in pos))
        near = [n for n in neg if distance(z, a, n) <= lowest] or [min(neg, key=lambda j: distance(z, a, j))]
        allowed |= {(a, p, n) for p in pos for n in near}
    return allowed


def hard(z: Tensor, y: list[int]) -> set[tuple[int, int, int]]:
    found = set()
    for a in anchors(y):
        pos, neg = sides(y, a)
        p, n = max(pos, key=lambda j: distance(z, a, j)), min(neg, key=lambda j: distance(z, a, j))
        found.add((a, p, n))
    return found


def multi_similarity(
    z: Tensor, y: list[int], epsilon: float, one_sided: bool = False
) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    positive, negative = set(), set()
    for a in anchors(y):
        pos, neg = sides(y, a)
        s = {j: float(unit(z[a]) @ unit(z[j])) for j in pos + neg}
        kept_neg = [n for n in neg if s[n] + epsilon > min(s[p] for p in pos)]
        kept_pos = [p for p in pos if s[p] - epsilon < max(s[n] for n in neg)]
        if (kept_pos and kept_neg) or one_sided:
            positive |= {(a, p) for p in kept_pos}
            negative |= {(a, n) for n in kept_neg}
    return positive, negative


def distance_weights(z: Tensor, y: list[int], cutoff: float, upper: float | None) -> Tensor:
    """P(n | a), from the density of distances on the sphere itself, with Python's floats of any exponent."""
    dim = z.shape[1]
    weights = torch.zeros(len(y), len(y), dtype=torch.float64)
    for a in range(len(y)):
        neg = sides(y, a)[1]
        below = [n for n in neg if upper is None or max(distance(z, a, n), cutoff) < upper]
        logs = {}
        for n in below or neg:
            d = min(max(distance(z, a, n), cutoff), 2 - 1e-4)
            logs[n] = -math.log(d ** (dim - 2) * (1 - d * d / 4) ** ((dim - 3) / 2))
        for n, log in logs.items():
            weights[a, n] = 1 / sum(math.exp(other - log) for other in logs.values())
    return weights
