"""The prototype analysis as loops over its definitions, in plain Python floats."""

import math
import statistics


def length(a):
    return math.sqrt(sum(v * v for v in a))


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True)) / (length(a) * length(b))


def prototypes(mu, v, x, labels):
    classes = range(len(mu))
    members = [[x[i] for i in range(len(x)) if labels[i] == c] for c in classes]
    means = [[statistics.fmean(column) for column in zip(*rows, strict=True)] for rows in members]
    matrix = [[cosine(mu[c], means[e]) for e in classes] for c in classes]
    spread, size = [], []
    for c in classes:
        mu_hat = [value / length(mu[c]) for value in mu[c]]
        far = [sum((a - b) ** 2 for a, b in zip(mu_hat, row, strict=True)) for row in members[c]]
        spread.append(sum(far) / len(far))
        size.append(math.sqrt(sum(math.exp(min(max(value, 0), 6)) ** 2 for value in v[c])))
    own = [matrix[c][c] for c in classes]
    other = [matrix[c][e] for c in classes for e in classes if e != c]
    return {
        "cosine": matrix,
        "spread": spread,
        "size": size,
        "diagonal": sum(own) / len(own),
        "off_diagonal": sum(other) / len(other),
        "own_class_share": sum(all(matrix[c][c] >= value for value in matrix[c]) for c in classes) / len(own),
        "pearson": pearson(spread, size),
        "spearman": pearson(ranks(spread), ranks(size)),
    }


def pearson(a, b):
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    if len(set(b)) == 1:
        return None
    both = sum((p - mean_a) * (q - mean_b) for p, q in zip(a, b, strict=True))
    return both / math.sqrt(sum((p - mean_a) ** 2 for p in a) * sum((q - mean_b) ** 2 for q in b))


def ranks(a):
    """Equal values share the mean of their places."""
    return [sum(q < p for q in a) + (sum(q == p for q in a) + 1) / 2 for p in a]
