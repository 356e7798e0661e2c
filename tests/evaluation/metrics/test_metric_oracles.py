"""Every metric against a loop over its definition, and against scikit-learn and pytorch-metric-learning."""

import numpy as np
import pytest
import torch
from oracles import metrics as oracle
from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

from nearkin import metrics
from nearkin.evaluation.retrieval import evaluate
from nearkin.registry import METRICS

KS = (1, 5, 30)


def data(n=120, dim=5, classes=11, seed=0):
    """Small integers: many ties and duplicates; the last class is lone."""
    random = np.random.default_rng(seed)
    z = random.integers(-2, 3, (n, dim)).astype(np.float32)
    z[~z.any(1)] = 1
    z[(z == z[:, :1]).all(1), 0] += 1
    labels = random.integers(0, classes, n)
    labels[7] = classes
    return z, labels


def names():
    per_query = [name for name in METRICS.names() if METRICS[name].kind == "query"]
    return [f"{name}@{k}" for name in per_query if METRICS[name].takes_k for k in KS] + [
        name for name in per_query if not METRICS[name].takes_k
    ]


def assert_equal(result, expected):
    for name in names():
        np.testing.assert_allclose(result.per_query[name], expected[name], atol=1e-12, err_msg=name)
        assert result.metrics[name] == pytest.approx(np.nanmean(expected[name]), abs=1e-12)


@pytest.mark.parametrize("distance", ["cosine", "euclid", "snr"])
def test_query_is_gallery(distance):
    z, labels = data(dim=4)
    if distance == "cosine":
        z = np.where(z > 0, 3, -3)  # length 6: ties are exact in float32, too
    if distance == "snr":
        z = np.random.default_rng(1).normal(size=z.shape)  # no ties: quotients are not exact
    own = np.arange(len(z))
    order = oracle.ranking(z, z, own, distance)
    result = evaluate(z, labels, metrics=names(), distance=distance)
    assert_equal(result, oracle.retrieval(order, labels, labels, own, KS))


@pytest.mark.parametrize("overlap", [0, 25])
def test_query_and_gallery_apart(overlap):
    """In-Shop: two sets; also sets that share items, which are excluded by index. Some query classes are absent."""
    z, labels = data(160, classes=14)
    query, gallery = np.arange(0, 60), np.arange(60 - overlap, 160)
    gallery = gallery[labels[gallery] > 1]
    own = np.array([np.flatnonzero(gallery == i)[0] if i in gallery else -1 for i in query])
    own = own if overlap else None
    order = oracle.ranking(z[query], z[gallery], own, "euclid")
    expected = oracle.retrieval(order, labels[query], labels[gallery], own, KS)
    result = evaluate(z, labels, query=query, gallery=gallery, metrics=names(), distance="euclid")
    assert_equal(result, expected)
    assert result.excluded["lone_queries"] == sum(np.isnan(expected["mrr"])) > 0
    if not overlap:
        apart = evaluate(
            z[query], labels[query], gallery=(z[gallery], labels[gallery]), metrics=names(), distance="euclid"
        )
        assert_equal(apart, expected)


def test_mrr_counts_over_the_whole_gallery():
    """The only relevant items are the farthest ones: behind a few tiles, among ties."""
    n = 2300
    z = np.ones((n, 2), np.float32)
    z[:, 1] = np.arange(n) // 4
    labels = np.arange(n)
    labels[[0, n - 1]] = 0
    labels[[5, 1200]] = 5
    result = evaluate(z, labels, metrics=["mrr"], distance="euclid").per_query["mrr"]
    order = oracle.ranking(z[[0, 5, 1200, n - 1]], z, [0, 5, 1200, n - 1], "euclid")
    ranks = [1 + order[0].index(n - 1), 1 + order[1].index(1200), 1 + order[2].index(5), 1 + order[3].index(0)]
    np.testing.assert_allclose(1 / result[[0, 5, 1200, n - 1]], ranks)
    assert np.isfinite(result).sum() == 4


def test_hubness():
    z, labels = data()
    order = oracle.ranking(z, z, np.arange(len(z)), "euclid")
    result = evaluate(z, labels, metrics=["hubness@10"], distance="euclid").metrics["hubness@10"]
    assert result == pytest.approx(oracle.occurrence_skewness(order, 10, len(z)), abs=1e-9)
    assert metrics.hubness(np.full(5, 10)) == 0


def test_space():
    z, labels = data()
    result = evaluate(z, labels, metrics=["rho", "pi_intra", "pi_inter", "uniformity"]).metrics
    intra, inter = oracle.density(z, labels)
    assert result["pi_intra"] == pytest.approx(intra, abs=1e-9)
    assert result["pi_inter"] == pytest.approx(inter, abs=1e-9)
    assert result["uniformity"] == pytest.approx(oracle.uniformity(z), abs=1e-6)
    assert result["rho"] == pytest.approx(oracle.rho(z, 1), abs=1e-7)
    for few in (3, 4, 5):  # fewer rows than dimensions, and about as many
        wide = np.random.default_rng(few).normal(size=(few, 4))
        assert metrics.rho(torch.from_numpy(wide)) == pytest.approx(oracle.rho(wide, 1), abs=1e-7)


def test_class_spectra():
    z, labels = data()
    spectra = []
    for c in np.unique(labels):
        rows = z[labels == c].astype(float)
        sigma = np.linalg.svd(rows / np.linalg.norm(rows, axis=1, keepdims=True), compute_uv=False)
        spectra.append(np.pad(sigma, (0, 35 - len(sigma))))
    np.testing.assert_allclose(metrics.class_spectra(torch.from_numpy(z), labels), np.mean(spectra, 0), atol=1e-7)


def partitions():
    random = np.random.default_rng(3)
    yield np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0])
    yield np.zeros(5, int), np.zeros(5, int)
    yield np.arange(5), np.arange(5)
    yield np.arange(6), np.zeros(6, int)
    yield random.integers(0, 3, 50), random.integers(0, 40, 50)
    yield np.repeat(np.arange(40), random.integers(1, 30, 40)), None
    yield np.r_[np.zeros(300, int), np.arange(1, 20)], None  # one large class


@pytest.mark.parametrize("case", range(7))
def test_clustering_equals_scikit_learn(case):
    labels, clusters = list(partitions())[case]
    if clusters is None:
        random = np.random.default_rng(case)
        clusters = np.where(random.random(len(labels)) < 0.5, labels, random.integers(0, 25, len(labels)))
    assert metrics.nmi(labels, clusters) == pytest.approx(normalized_mutual_info_score(labels, clusters), abs=1e-10)
    assert metrics.ami(labels, clusters) == pytest.approx(adjusted_mutual_info_score(labels, clusters), abs=1e-8)


def test_pair_f1():
    random = np.random.default_rng(0)
    labels, clusters = random.integers(0, 9, 80), random.integers(0, 7, 80)
    assert metrics.pair_f1(labels, clusters) == pytest.approx(oracle.pair_f1(labels, clusters), abs=1e-12)
    assert metrics.pair_f1(np.arange(4), np.arange(4)) == 1


def test_kmeans_finds_separate_clusters():
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(6), 40)
    z = 20 * np.eye(6)[labels] + random.normal(size=(240, 6))
    result = evaluate(z, labels.astype(str), metrics=["nmi", "ami", "f1"], distance="euclid").metrics
    assert min(result.values()) > 0.5  # Lloyd from random rows may merge two of them
    shuffled = evaluate(z, random.permutation(labels), metrics=["ami"], distance="euclid").metrics
    assert abs(shuffled["ami"]) < 0.1


def test_equals_pytorch_metric_learning():
    from pytorch_metric_learning.distances import CosineSimilarity
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
    from pytorch_metric_learning.utils.inference import CustomKNN

    random = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 40, (400,), generator=random)
    labels[3] = 40  # a lone query, which both leave out
    z = torch.randn(41, 16, generator=random)[labels] + 1.5 * torch.randn(400, 16, generator=random)
    ours = {
        "precision_at_1": "p@1",
        "r_precision": "r_precision",
        "mean_average_precision_at_r": "map_at_r",
        "mean_reciprocal_rank": "mrr",
    }
    theirs = AccuracyCalculator(
        include=tuple(ours), device=torch.device("cpu"), knn_func=CustomKNN(CosineSimilarity()), kmeans_func=print
    )
    result = evaluate(z, labels, metrics=list(ours.values())).metrics
    for name, value in theirs.get_accuracy(z, labels).items():
        assert result[ours[name]] == pytest.approx(value, abs=1e-6), name
