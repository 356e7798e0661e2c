"""Every method against loops and a general convex solver; LMNN, NCA, ITML and MMC against values of metric-learn."""

import numpy as np
import pytest
import torch
from oracles import metrics_on_vectors as oracle

from nearkin.classical import ITML, LMNN, MCML, MMC, POLA, GeneralMetric, KwokTsang, SchultzJoachims
from nearkin.classical.constraints import draw_pairs, draw_triplets, nearest_of_class
from nearkin.classical.vectors import vectors
from nearkin.models import NCAHead

X = np.random.default_rng(1).normal(size=(24, 3)) + np.eye(3)[np.arange(24) % 3] * 1.5
Y = np.arange(24) % 3
SIMILAR, DISSIMILAR = draw_pairs(Y, 20, 0)
TRIPLETS = draw_triplets(Y, 30, 0)


def close(ours, best):
    """As good as the general solver, to 1e-3."""
    assert best - 1e-4 * abs(best) - 1e-5 <= ours <= best + 1e-3 * abs(best)


@pytest.mark.parametrize("regulariser", ["frobenius", "scatter", "trace"])
def test_the_general_model(regulariser):
    pairs = GeneralMetric(regulariser=regulariser, lower=3, weight=0.7).fit_pairs(X, SIMILAR, DISSIMILAR)
    close(pairs.objective_, oracle.general_pairs(X, SIMILAR, DISSIMILAR, regulariser, 1, 3, 0.7))
    triplets = GeneralMetric(regulariser=regulariser, margin=2.0, weight=3).fit_triplets(X, TRIPLETS)
    close(triplets.objective_, oracle.general_triplets(X, TRIPLETS, regulariser, 2.0, 3))


def test_schultz_joachims():
    learner = SchultzJoachims(weight=0.3).fit_triplets(X, TRIPLETS)
    close(learner.objective_, oracle.general_triplets(X, TRIPLETS, "frobenius", 1.0, 0.3, diagonal=True))
    assert (learner.matrix_ == np.diag(np.diag(learner.matrix_))).all()


def test_kwok_tsang():
    learner = KwokTsang(similar=2, dissimilar=3, nu=0.4).fit_pairs(X, SIMILAR, DISSIMILAR)
    close(learner.objective_, oracle.kwok_tsang(X, SIMILAR, DISSIMILAR, 2, 3, 0.4))


def test_itml():
    learner = ITML(gamma=0.5, bounds=(1.0, 6.0)).fit_pairs(X, SIMILAR, DISSIMILAR)
    close(learner.objective_, oracle.itml(X, SIMILAR, DISSIMILAR, 1.0, 6.0, 0.5))


def test_mmc():
    learner = MMC().fit_pairs(X, SIMILAR, DISSIMILAR)
    close(learner.objective_, oracle.mmc(X, SIMILAR, DISSIMILAR))
    roots = sum(np.sqrt(oracle.distance(learner.matrix_, X[i], X[j])) for i, j in DISSIMILAR)
    assert roots == pytest.approx(1)


def test_mcml():
    learner = MCML().fit(X, Y)
    assert learner.objective_ == pytest.approx(oracle.mcml_value(learner.matrix_, X, Y))
    close(learner.objective_, oracle.mcml(X, Y))
    lone = np.concatenate([Y[:-1], [9]])  # a class of one row
    learner = MCML().fit(X, lone)
    assert learner.objective_ == pytest.approx(oracle.mcml_value(learner.matrix_, X, lone))


def test_lmnn():
    learner, targets = LMNN(k=2, weight=2.0, margin=0.5).fit(X, Y), nearest_of_class(X, Y, 2)
    assert learner.objective_ == pytest.approx(oracle.lmnn_value(learner.matrix_, X, Y, targets, 2.0, 0.5))
    every = np.array([(i, j, l) for i, j in targets for l in range(len(X)) if Y[l] != Y[i]])
    scatter = GeneralMetric(regulariser="scatter", margin=0.5, weight=2.0).fit_triplets(X, every)
    # the same problem but for C, which counts a target once for each of its triplets there
    more = oracle.lmnn_value(scatter.matrix_, X, Y, targets, 2.0, 0.5)
    assert learner.objective_ < more


def test_pola():
    learner = POLA(seed=4).fit_pairs(X, SIMILAR[:8], DISSIMILAR[:8])
    pairs = np.concatenate([SIMILAR[:8], DISSIMILAR[:8]])
    order = np.random.default_rng(4).permutation(16)
    steps = [(X[pairs[p, 0]] - X[pairs[p, 1]], 1 if p < 8 else -1) for p in order]
    matrix, threshold = oracle.pola(steps, 3)
    np.testing.assert_allclose(learner.matrix_, matrix, atol=1e-4)
    assert learner.threshold_ == pytest.approx(threshold, abs=1e-4)


# Objectives of metric-learn 0.7.0 beside scikit-learn 1.5.2 and NumPy 1.26.4, on columns of mean 0 and variance 1: LMNN
# (3 neighbours, from the identity, 1,000 iterations), NCA (from the principal components, 300; the sum of p_i), ITML
# (10,000 iterations, tolerance 1e-6, these bounds) and MMC (300 iterations) on the pairs of draw_pairs(y, 200, 0).
METRIC_LEARN = {
    "iris": {"ITML": 141.9303, "MMC": 0.0002105164, "LMNN": 469.3305, "NCA": 149.0},
    "wine": {"ITML": 42.22611, "MMC": 0.0007113966, "LMNN": 420.5566, "NCA": 178.0},
    "balance": {"ITML": 143.1781, "MMC": 0.004577194, "LMNN": 6572.996, "NCA": 605.0},
    "digits": {"ITML": 77.85708},
}


@pytest.mark.parametrize(("name", "method"), [(n, m) for n, values in METRIC_LEARN.items() for m in values])
def test_not_above_metric_learn(name, method):
    x, y = vectors(name)
    pairs, theirs = draw_pairs(y, 200, 0), METRIC_LEARN[name][method]
    if method == "LMNN":
        ours = LMNN().fit(x, y).objective_
    elif method == "MMC":
        ours = MMC().fit_pairs(x, *pairs).objective_
    elif method == "ITML":
        d = np.concatenate([np.square(x[i] - x[j]).sum(1) for i, j in (side.T for side in pairs)])
        ours = ITML(bounds=tuple(np.percentile(d, [5, 95]))).fit_pairs(x, *pairs).objective_
    else:  # the head's; the sum of p_i is to be large
        head = NCAHead(x.shape[1], x.shape[1]).double()
        head.fit(torch.from_numpy(x), torch.from_numpy(y))
        z = head(torch.from_numpy(x)).numpy()
        d = np.square(z[:, None] - z).sum(2) + np.diag(np.full(len(z), np.inf))
        p = np.exp(d.min(1, keepdims=True) - d)
        ours, theirs = -(p / p.sum(1, keepdims=True))[y[:, None] == y].sum(), -theirs
    assert ours <= theirs + 1e-3 * abs(theirs)
