"""Values worked out by independent code for one small batch; class 3 has a single item."""

import numpy as np
import pytest
import torch

from nearkin import metrics
from nearkin.evaluation.retrieval import evaluate

Y = np.array([0, 0, 0, 1, 1, 2, 2, 3])
CLUSTERS = np.array([0, 0, 1, 1, 1, 2, 2, 2])


def batch():
    i, j, y = np.arange(1, 9)[:, None], np.arange(1, 5)[None], Y[:, None]
    return (np.cos(1.7 * y + 0.9 * j + 0.6 * y * j) + 0.8 * np.sin(1.3 * i + 0.7 * j + 0.2 * i * j)) * (0.6 + 0.1 * i)


RETRIEVAL = {
    "recall@1": 0.125,
    "recall@2": 0.375,
    "recall@4": 0.75,
    "p@1": 0.142857,
    "r_precision": 0.285714,
    "map_at_r": 0.214286,
    "map_at_c": 0.180556,
}


@pytest.mark.parametrize("name", RETRIEVAL)
def test_retrieval(name):
    assert evaluate(batch(), Y, metrics=[name]).metrics[name] == pytest.approx(RETRIEVAL[name], abs=1e-6)


@pytest.mark.parametrize(("name", "value"), [("nmi", 0.702017), ("ami", 0.461712), ("pair_f1", 0.5)])
def test_clustering(name, value):
    assert getattr(metrics, name)(Y, CLUSTERS) == pytest.approx(value, abs=1e-6)


def test_spectrum():
    z = torch.from_numpy(batch())
    np.testing.assert_allclose(metrics.singular_values(z), [2.017111, 1.560122, 1.052433, 0.624233], atol=1e-6)
    assert metrics.rho(z, drop=0) == pytest.approx(0.0911, abs=1e-6)
    assert metrics.rho(z) == metrics.rho(z, drop=1) == pytest.approx(0.067757, abs=1e-6)
    assert metrics.rho(z, drop=0, direction="spectrum") == pytest.approx(0.083031, abs=1e-6)


def test_density():
    z = torch.from_numpy(batch())
    assert metrics.pi_inter(z, Y) == pytest.approx(1.24692, abs=1e-5)
    assert metrics.pi_intra(z, Y) == pytest.approx(0.931875, abs=1e-6)
    assert metrics.pi_ratio(z, Y) == pytest.approx(0.747342, abs=1e-6)


def test_settings_reach_the_metric():
    by_name = evaluate(batch(), Y, metrics=["rho"], settings={"rho.drop": 0}).metrics["rho"]
    assert by_name == pytest.approx(0.0911, abs=1e-6)
