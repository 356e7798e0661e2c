"""Metrics written as loops over the definitions, in plain Python floats. Slow on purpose."""

import math
from collections import Counter
from itertools import combinations

import numpy as np


def similarity(q, g, metric):
    q, g = [float(v) for v in q], [float(v) for v in g]
    if metric == "euclid":
        return -sum((a - b) ** 2 for a, b in zip(q, g, strict=True))
    norm_q, norm_g = math.sqrt(sum(a * a for a in q)), math.sqrt(sum(b * b for b in g))
    q, g = [a / norm_q for a in q], [b / norm_g for b in g]
    if metric == "cosine":
        return sum(a * b for a, b in zip(q, g, strict=True))
    difference = [a - b for a, b in zip(q, g, strict=True)]
    return -_variance(difference) / _variance(q)


def _variance(x):
    mean = sum(x) / len(x)
    return sum((v - mean) ** 2 for v in x) / (len(x) - 1)


def ranking(query, gallery, own, metric):
    """Gallery indices, best first, for every query; ties by index (Python's sort is stable)."""
    result = []
    for i, q in enumerate(query):
        items = [j for j in range(len(gallery)) if own is None or j != own[i]]
        # Rounded, so that equal distances of integer data are equal whatever the order of summation.
        result.append(sorted(items, key=lambda j: -round(similarity(q, gallery[j], metric), 6)))
    return result


PER_QUERY = {}  # metric -> (its loop, does it take k?)


def per_query(name, *, takes_k=False):
    """A loop gets one query: rel, whether each item of its ranked gallery is of its class; r, how many are; size, r and
    the query itself where it is an item of the gallery; and k, where the metric takes one."""

    def add(function):
        PER_QUERY[name] = function, takes_k
        return function

    return add


def retrieval(order, labels, gallery_labels, own, k=(1, 5)):
    """Every per-query metric: name -> list of one value per query."""
    values = {}
    for i, ranked in enumerate(order):
        rel = [gallery_labels[j] == labels[i] for j in ranked]
        r = sum(rel)
        size = r + (own is not None and own[i] >= 0)
        for name, (loop, takes_k) in PER_QUERY.items():
            row = {f"{name}@{n}": loop(rel, r, size, n) for n in k} if takes_k else {name: loop(rel, r, size)}
            for key, value in row.items():
                values.setdefault(key, []).append(value)
    return values


@per_query("recall", takes_k=True)
def recall(rel, r, size, k):
    return float(any(rel[:k]))


@per_query("p", takes_k=True)
def precision(rel, r, size, k):
    return sum(rel[:k]) / k if r else math.nan


@per_query("r_precision")
def r_precision(rel, r, size):
    return sum(rel[:r]) / r if r else math.nan


@per_query("map_at_r")
def map_at_r(rel, r, size):
    return _average(rel[:r], r) if r else math.nan


@per_query("map_at_c")
def map_at_c(rel, r, size):
    return _average(rel[:size], size) if size else 0.0


@per_query("map_at_1000")
def map_at_1000(rel, r, size):
    return _average(rel[:1000], size) if size else 0.0


@per_query("mrr")
def mrr(rel, r, size):
    return 1 / (rel.index(True) + 1) if r else math.nan


def _average(rel, divisor):
    total, hits = 0.0, 0
    for rank, hit in enumerate(rel, 1):
        if hit:
            hits += 1
            total += hits / rank
    return total / divisor


def occurrence_skewness(order, k, gallery):
    count = Counter(j for ranked in order for j in ranked[:k])
    n = [count[j] for j in range(gallery)]
    mean = sum(n) / gallery
    variance = sum((c - mean) ** 2 for c in n) / gallery
    return sum((c - mean) ** 3 for c in n) / gallery / variance**1.5


def pair_f1(labels, clusters):
    same_both = same_class = same_cluster = 0
    for i, j in combinations(range(len(labels)), 2):
        same_both += labels[i] == labels[j] and clusters[i] == clusters[j]
        same_class += labels[i] == labels[j]
        same_cluster += clusters[i] == clusters[j]
    precision, recall = same_both / same_cluster, same_both / same_class
    return 2 * precision * recall / (precision + recall)


def density(z, labels):
    """π_intra, π_inter."""
    e = [row / np.linalg.norm(row) for row in np.asarray(z, float)]
    within, means = [], []
    for c in sorted(set(labels)):
        rows = [v for v, y in zip(e, labels, strict=True) if y == c]
        pairs = [1 - float(a @ b) for a, b in combinations(rows, 2)]
        if pairs:
            within.append(sum(pairs) / len(pairs))
        mean = sum(rows) / len(rows)
        means.append(mean / np.linalg.norm(mean))
    between = [1 - float(a @ b) for a, b in combinations(means, 2)]
    return sum(within) / len(within), sum(between) / len(between)


def uniformity(z):
    e = [row / np.linalg.norm(row) for row in np.asarray(z, float)]
    kernel = [math.exp(-2 * float((a - b) @ (a - b))) for a, b in combinations(e, 2)]
    return math.log(sum(kernel) / len(kernel))


def rho(z, drop):
    e = np.stack([row / np.linalg.norm(row) for row in np.asarray(z, float)])
    sigma = np.linalg.svd(e, compute_uv=False)[drop:]
    p = sigma / sigma.sum()
    return sum((1 / len(p)) * math.log(1 / len(p) / q) for q in p)
