"""Samplers written a second time, as loops: costs of candidates, farthest-first points, nearest negatives."""

import math

import numpy as np
from scipy.linalg import sqrtm
from scipy.stats import wasserstein_distance


def distance(a: np.ndarray, b: np.ndarray) -> float:
    return math.sqrt(sum((float(x) - float(y)) ** 2 for x, y in zip(a, b, strict=True)))


def all_distances(z: np.ndarray) -> list[float]:
    return [distance(z[i], z[j]) for i in range(len(z)) for j in range(i + 1, len(z))]


def histogram(values: list[float], low: float, high: float, bins: int) -> list[float]:
    """Shares of the values in bins of one width; what lies outside counts in the bin at that end."""
    counts = [0] * bins
    for value in values:
        place = math.floor((value - low) / (high - low) * bins)
        counts[min(max(place, 0), bins - 1)] += 1
    return [count / len(values) for count in counts]


def ddm_cost(big: np.ndarray, small: np.ndarray, bins: int = 50, weight: float = 75.0) -> float:
    whole = all_distances(big)
    low, high = min(whole), max(whole)
    centres = [low + (k + 0.5) * (high - low) / bins for k in range(bins)]
    target, found = (histogram(values, low, high, bins) for values in (whole, all_distances(small)))
    there = wasserstein_distance(centres, centres, target, found)
    back = wasserstein_distance(centres, centres, found, target)
    mean = distance(big.mean(0), small.mean(0))
    spread = distance(big.std(0, ddof=1), small.std(0, ddof=1))
    return mean + spread + weight * (there + back)


def frd_cost(big: np.ndarray, small: np.ndarray, epsilon: float = 1e-8) -> float:
    whole, part = np.cov(big, rowvar=False), np.cov(small, rowvar=False)
    root = sqrtm(whole @ part + epsilon * np.eye(len(whole)))
    return distance(big.mean(0), small.mean(0)) ** 2 + float(np.trace(whole + part - 2 * root.real))


def farthest_first(z: np.ndarray, points: int) -> list[int]:
    """Begins with the first row."""
    chosen = [0]
    while len(chosen) < points:
        best, radius = None, -1.0
        for i in range(len(z)):
            if i not in chosen:
                nearest = min(distance(z[i], z[j]) for j in chosen)
                if nearest > radius:
                    best, radius = i, nearest
        chosen.append(best)
    return chosen


def covering_radius(z: np.ndarray, chosen: np.ndarray) -> float:
    """How far the worst image is from the nearest one chosen."""
    return np.min([np.linalg.norm(z - z[j], axis=1) for j in chosen], axis=0).max()


def with_neighbours(z: np.ndarray, y: np.ndarray, anchors: list[int], size: int) -> list[int]:
    batch = list(anchors)
    while len(batch) < size:
        for a in anchors:
            others = [j for j in range(len(z)) if y[j] != y[a] and j not in batch]
            if others and len(batch) < size:
                batch.append(min(others, key=lambda j: distance(z[a], z[j])))
    return batch


def positive_and_negative(z: np.ndarray, y: np.ndarray, a: int, p: int, tuples: str) -> tuple[int, int]:
    """What a search over all images finds for an anchor; p is the random positive of semi-hard triplets."""
    friends = [j for j in range(len(z)) if y[j] == y[a] and j != a]
    others = [j for j in range(len(z)) if y[j] != y[a]]
    if tuples == "hard":
        p = max(friends, key=lambda j: distance(z[a], z[j]), default=a)
        return p, min(others, key=lambda j: distance(z[a], z[j]))
    beyond = [j for j in others if distance(z[a], z[j]) > distance(z[a], z[p])]
    if beyond:
        return p, min(beyond, key=lambda j: distance(z[a], z[j]))
    return p, max(others, key=lambda j: distance(z[a], z[j]))
