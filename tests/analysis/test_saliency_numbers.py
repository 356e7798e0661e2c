"""Measures, agreement of maps and its mean over images: against scipy, by hand and by loops."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.spatial.distance import jensenshannon

from nearkin.analysis._alike import correlations, divergences, fisher, plain
from nearkin.analysis._saliency_maps import MEASURES, VARIANTS, compared, measure_of
from nearkin.errors import NearkinError
from nearkin.registry import LOSSES, hyperparameters


def maps(m=4, p=60, seed=0):
    return np.random.default_rng(seed).random((m, p)) ** 2


def test_correlation_and_divergence_equal_scipy():
    x = maps()
    x[2, :30] = 0  # zeros: 0 log 0 = 0
    r, jsd = correlations(x), divergences(x)
    for i in range(4):
        for j in range(4):
            assert r[i, j] == pytest.approx(stats.pearsonr(x[i], x[j]).statistic, abs=1e-12)
            assert jsd[i, j] == pytest.approx(jensenshannon(x[i], x[j]) ** 2, abs=1e-12)  # natural logarithm


def test_by_hand():
    x = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]])
    np.testing.assert_allclose(correlations(x)[0], [1, -1 / 3, 1 / math.sqrt(3)])
    jsd = divergences(x)
    assert jsd[0, 1] == pytest.approx(math.log(2))  # nothing in common: the largest there is
    # p = (1, 0), q = (1/2, 1/2): m = (3/4, 1/4)
    assert jsd[0, 2] == pytest.approx(0.5 * math.log(4 / 3) + 0.5 * (0.5 * math.log(2 / 3) + 0.5 * math.log(2)))


def test_a_model_with_itself():
    x = maps(1)
    both = np.concatenate([x, x])
    assert (correlations(both) == 1).all()
    assert (divergences(both) == 0).all()
    assert (correlations(np.concatenate([x, 3 * x + 1]))).min() == 1  # whatever the scale
    found = fisher(np.ones(5), np.arange(5))
    assert (found.mean, found.spread, found.low, found.n, found.equal) == (1, 0, None, 0, 5)
    mixed = fisher(np.array([1.0, 0.5, 0.7]), np.arange(3))  # an infinite z is left out of the mean
    assert mixed.mean == pytest.approx(fisher(np.array([0.5, 0.7]), np.arange(2)).mean)
    assert (mixed.n, mixed.equal) == (2, 1)


def test_a_constant_map_has_no_correlation():
    x = maps()
    x[1], x[2] = 0, 0.3
    for found in (correlations(x), divergences(x)):
        assert np.isnan(found[1]).all()
        assert np.isnan(found[:, 2]).all()
        assert np.isfinite(found[0, 3])
    r, each = np.array([np.nan, 0.2, 0.4]), np.arange(3)
    assert fisher(r, each).undefined == 1
    assert fisher(r, each).mean == pytest.approx(math.tanh((math.atanh(0.2) + math.atanh(0.4)) / 2))
    assert fisher(np.full(3, np.nan), each).mean is None
    assert plain(np.full(3, np.nan), each).mean is None
    assert plain(r, each).mean == pytest.approx(0.3)
    assert plain(r, each).undefined == 1


def test_fisher_by_hand():
    r = np.array([0.9, 0.8, 0.5, -0.2])
    z = [math.atanh(x) for x in r]
    mean = sum(z) / 4
    std = math.sqrt(sum((x - mean) ** 2 for x in z) / 3)
    half = 3.182446305284263 * std / 2  # t(0.975, 3)
    found = fisher(r, np.array(list("abcd")))
    assert found.mean == pytest.approx(math.tanh(mean))
    assert found.spread == pytest.approx(math.tanh(std))
    assert found.low == pytest.approx(math.tanh(mean - half))
    assert found.high == pytest.approx(math.tanh(mean + half))
    several = fisher(np.array([[0.9, 0.7], [0.5, np.nan], [0.1, 0.2]]), np.arange(3))  # pairs of models first
    z = [(math.atanh(0.9) + math.atanh(0.7)) / 2, math.atanh(0.5), (math.atanh(0.1) + math.atanh(0.2)) / 2]
    assert several.mean == pytest.approx(math.tanh(sum(z) / 3))
    one = fisher(np.array([0.5]), np.zeros(1))
    assert (one.spread, one.low) == (None, None)
    values = plain(np.array([1.0, 2.0, 6.0]), np.arange(3))
    assert (values.mean, values.spread) == pytest.approx((3, math.sqrt(7)))


def test_images_of_one_class_are_one_unit():
    """Each value stands for three images of a class: mean and spread are over images, the interval over classes."""
    r, classes = np.repeat([0.9, 0.8, 0.5, -0.2], 3), np.repeat(list("abcd"), 3)
    once, thrice = fisher(r[::3], classes[::3]), fisher(r, classes)
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))
    assert (thrice.n, thrice.classes) == (12, 4)
    d = plain(r, classes)
    assert (d.low, d.high) == pytest.approx((plain(r[::3], classes[::3]).low, plain(r[::3], classes[::3]).high))
    lost = r.copy()
    lost[:3] = np.nan  # a class without any value is no unit
    assert plain(lost, classes).classes == fisher(lost, classes).classes == 3


def test_every_loss_has_a_measure():
    assert len(MEASURES) >= 26
    assert set(MEASURES) <= set(LOSSES.names())  # others: that of the evaluation
    for name, key, _, _ in VARIANTS:
        assert key in hyperparameters(LOSSES[name])
    assert measure_of({"loss.name": "contrastive", "loss.form": "distance", "train.epochs": 3}).name == "euclid"
    assert measure_of({"loss.name": "contrastive", "loss.form": "similarity", "train.epochs": 3}).name == "cosine"
    assert measure_of({"loss.name": "npair", "train.epochs": 0}).name == "euclid"
    assert measure_of({"loss.name": "my.Loss", "train.epochs": 2}).name == "cosine"


@pytest.mark.parametrize("measure", sorted({m.name for m in MEASURES.values()}))
def test_measures_are_those_of_the_formulas(measure):
    torch.manual_seed(0)
    z, z0 = torch.randn(3, 5, dtype=torch.float64), torch.randn(1, 5, dtype=torch.float64)
    found = compared(measure, z, z0)
    for b in range(3):
        a, o = z[b].numpy(), z0[0].numpy()
        e, e0 = a / np.linalg.norm(a), o / np.linalg.norm(o)
        expected = {
            "euclid": np.linalg.norm(e - e0),
            "squared_euclid": np.linalg.norm(e - e0) ** 2,
            "cosine": e @ e0,
            "dot": a @ o,
            "raw_euclid": np.linalg.norm(a - o),
            "snr": np.var(e - e0) / np.var(e),
        }[measure]
        assert found[b].item() == pytest.approx(expected)


def test_an_unknown_measure():
    with pytest.raises(NearkinError, match="did you mean cosine"):
        compared("cosin", torch.ones(1, 2), torch.ones(1, 2))
