"""Every method against loops and a general convex solver; LMNN, NCA, ITML and MMC against values of metric-learn."""

import numpy as np
import pytest
from oracles import metrics_on_vectors as oracle

from nearkin.classical import ITML, LMNN, MCML, MMC, POLA, GeneralMetric, KwokTsang, SchultzJoachims
from nearkin.classical.constraints import draw_pairs, draw_triplets, nearest_of_class

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
