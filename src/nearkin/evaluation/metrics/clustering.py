"""Clustering metrics: how well k-means clusters of the embeddings agree with the classes."""

import numpy as np

from nearkin.evaluation.metrics.base import clusters


def kmeans(vectors: np.ndarray, k: int, *, iterations: int = 20, seed: int = 0) -> np.ndarray:
    """The cluster (N,) of each row, by Lloyd's algorithm from k random rows, as in published figures.

    Parameters:
        vectors: (N, D).
        k: the number of clusters.
        iterations: the largest number of iterations.
        seed: seed of the choice of the k rows.
    """
    from sklearn.cluster import KMeans  # imported here: it takes a second, and few evaluations cluster

    return KMeans(k, init="random", n_init=1, max_iter=iterations, random_state=seed).fit(vectors).labels_  # (N,)


@clusters("nmi")
def nmi(labels: np.ndarray, cluster: np.ndarray) -> float:
    """Normalised mutual information of classes and k-means clusters.

        2 I / (H_a + H_b),   I = Σ_ij n_ij/N · ln(N n_ij / (a_i b_j)),   H_a = -Σ_i a_i/N · ln(a_i/N)

    n_ij items of class i are in cluster j; a_i are the class sizes, b_j the cluster sizes, N all items; H_b as H_a. The
    divisor is the arithmetic mean of the entropies. Every item counts, also one that is alone in its class.

    Range: 0 (independent) to 1 (the clusters are the classes). With many small clusters it is high even by chance;
    `ami` is adjusted for that.

    Source: as usual in the field; Roth et al. 2020, eq. 27, prints I / (2 (H_a + H_b)), 4 times too small.

    Parameters:
        labels: (N,), the class of each item.
        cluster: (N,), the cluster of each item.
    """
    n, a, b = _counts(labels, cluster)
    both = _entropy(a) + _entropy(b)
    return 1.0 if both == 0 else 2 * _mutual_information(n, a, b) / both


@clusters("ami", bounds=(None, 1.0))
def ami(labels: np.ndarray, cluster: np.ndarray) -> float:
    """Mutual information of classes and k-means clusters, adjusted for chance (Vinh et al. 2010).

        (I - E[I]) / ((H_a + H_b)/2 - E[I])

    I, H_a and H_b as for `nmi`. E[I] is the mean of I over random assignments with the same class and cluster sizes
    (hypergeometric model). Every item counts, also one that is alone in its class. Equals scikit-learn's.

    Range: at most 1 (the clusters are the classes); about 0 for random clusters, possibly below.

    Source: Vinh et al. 2010 (JMLR).

    Parameters:
        labels: (N,), the class of each item.
        cluster: (N,), the cluster of each item.
    """
    n, a, b = _counts(labels, cluster)
    if len(a) == len(b) and len(a) in (1, len(labels)):  # both trivial: they agree, and the formula is 0/0
        return 1.0
    expected = _expected_mutual_information(a, b)
    bound = (_entropy(a) + _entropy(b)) / 2 - expected
    tiny = np.finfo(float).eps
    bound = min(bound, -tiny) if bound < 0 else max(bound, tiny)
    return float((_mutual_information(n, a, b) - expected) / bound)


@clusters("f1")
def pair_f1(labels: np.ndarray, cluster: np.ndarray) -> float:
    """F1 of the pairs of items in one k-means cluster, against the pairs in one class (Song et al. 2016).

        2 TP / (Σ_j C(b_j, 2) + Σ_i C(a_i, 2)),   TP = Σ_ij C(n_ij, 2)

    n_ij items of class i are in cluster j; a_i are the class sizes, b_j the cluster sizes, C(n, 2) = n (n - 1) / 2. It
    is an F1 of pairs, not of retrieval. An item that is alone in its class has no pair in it.

    Range: 0 to 1 (the clusters are the classes).

    Source: Song et al. 2016 (CVPR).

    Parameters:
        labels: (N,), the class of each item.
        cluster: (N,), the cluster of each item.
    """
    n, a, b = _counts(labels, cluster)
    pairs = _pairs(a) + _pairs(b)
    return 1.0 if pairs == 0 else float(2 * _pairs(n[0]) / pairs)


def _counts(labels: np.ndarray, cluster: np.ndarray) -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
    """The occupied cells (n_ij, a_i, b_j), the class sizes a and the cluster sizes b."""
    i, j = (np.unique(x, return_inverse=True)[1].reshape(-1).astype(np.int64) for x in (labels, cluster))
    a, b = np.bincount(i), np.bincount(j)
    cell, n = np.unique(i * len(b) + j, return_counts=True)
    return (n, a[cell // len(b)], b[cell % len(b)]), a, b


def _pairs(sizes: np.ndarray) -> int:
    return int((sizes.astype(np.int64) * (sizes - 1) // 2).sum())


def _entropy(sizes: np.ndarray) -> float:
    p = sizes / sizes.sum()
    return float(-(p * np.log(p)).sum())


def _mutual_information(cells: tuple[np.ndarray, ...], a: np.ndarray, b: np.ndarray) -> float:
    n, of_class, of_cluster = cells
    total = a.sum()
    return float((n / total * (np.log(n) + np.log(total) - np.log(of_class) - np.log(of_cluster))).sum())


def _expected_mutual_information(a: np.ndarray, b: np.ndarray) -> float:
    """E[I]. It depends on the sizes a_i and b_j only, so it is summed over the distinct sizes, each weighted by how
    often it occurs: a few dozen sizes instead of thousands of clusters."""
    from scipy.special import gammaln

    total = int(a.sum())
    log_factorial = gammaln(np.arange(total + 1) + 1.0)
    sizes_a, times_a = np.unique(a, return_counts=True)
    sizes_b, times_b = np.unique(b, return_counts=True)
    lf_b = log_factorial[sizes_b] + log_factorial[total - sizes_b]
    expected = 0.0
    for size, times in zip(sizes_a, times_a, strict=True):
        n = np.arange(1, min(size, sizes_b[-1]) + 1)  # (M,) possible n_ij
        rest = total - size - sizes_b[:, None] + n  # (U, M) items in neither
        possible = (n <= sizes_b[:, None]) & (rest >= 0)
        u, m = possible.nonzero()
        nij, rest = n[m], rest[u, m]
        log_p = (
            log_factorial[size]
            + log_factorial[total - size]
            + lf_b[u]
            - log_factorial[total]
            - log_factorial[nij]
            - log_factorial[size - nij]
            - log_factorial[sizes_b[u] - nij]
            - log_factorial[rest]
        )
        information = nij / total * (np.log(nij) + np.log(total) - np.log(size) - np.log(sizes_b[u]))
        expected += times * float((times_b[u] * information * np.exp(log_p)).sum())
    return expected
