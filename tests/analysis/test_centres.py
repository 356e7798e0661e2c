"""SoftTriple's centres: how many stay apart, by hand and on a stored run."""

import math

import numpy as np
import pytest
import torch

import nearkin
from nearkin.analysis import Centres, analyse
from nearkin.errors import NearkinError


def on_a_circle(*angles):
    """Distances between unit vectors at these angles, in degrees."""
    points = np.exp(1j * np.radians(angles))
    return np.abs(points[:, None] - points)


def test_centres_that_no_embedding_tells_apart_are_one():
    """γ ln 2 = 0.069 for γ = 0.1: 3 degrees are 0.052, 5 degrees 0.087; steps of 3 degrees make a chain."""
    classes = [on_a_circle(0, 3, 90, 180), on_a_circle(0, 5, 90, 180), on_a_circle(0, 3, 6, 9)]
    centres = Centres(0.1, np.stack(classes))
    assert centres.distinct(centres.threshold).tolist() == [3, 4, 1]
    numbers = centres.numbers
    assert {key: numbers[key] for key in ("classes", "centres", "fewest", "most", "one", "all")} == {
        "classes": 3,
        "centres": 4,
        "fewest": 1,
        "most": 4,
        "one": 1,
        "all": 1,
    }
    assert numbers["distinct"] == pytest.approx(8 / 3)
    assert centres.tables[1].column("classes") == [1, 0, 1, 1]
    curve = centres.tables[2].column("distinct")
    assert curve == sorted(curve, reverse=True)
    assert (curve[0], curve[-1]) == (4.0, 1.0)


def test_below_the_threshold_no_weight_is_twice_another():
    """The worst embedding lies along the difference of two centres."""
    gamma, threshold = 0.1, Centres(0.1, np.zeros((1, 2, 2))).threshold
    half = math.asin(threshold / 2)
    v = torch.tensor([[math.cos(half), math.sin(half)], [math.cos(half), -math.sin(half)]])
    angles = torch.linspace(0, 2 * math.pi, 721)
    shares = (torch.stack([angles.cos(), angles.sin()], 1) @ v.T / gamma).softmax(1)
    assert float((shares[:, 0] / shares[:, 1]).max()) == pytest.approx(2, rel=1e-4)


def test_of_a_stored_run(tiny, tmp_path):
    centres = 3
    words = {"loss": "soft_triple", "loss.centres": centres, "loss.gamma": 0.2, "dim": 8, "epochs": 1}
    run = nearkin.train({**tiny, **words}, runs=tmp_path)
    proxies = run.load("model.pt")["objective"]["loss.proxies"]
    analysis = Centres.of(run)
    assert analysis.distances.shape == (len(proxies) // centres, centres, centres)
    v = torch.nn.functional.normalize(proxies.double(), dim=1)
    c = len(proxies) // centres
    expected = float((v[0] - v[(centres - 1) * c]).norm())  # centre k of class 0 is row k·C
    assert analysis.distances[0, 0, -1] == pytest.approx(expected, abs=1e-12)
    assert analysis.numbers["distinct"] <= centres
    written = analyse("centres", run.path)
    assert "centres left, mean over classes" in str(written)


def test_another_loss_is_refused(tiny, tmp_path):
    run = nearkin.train({**tiny, "epochs": 0}, runs=tmp_path)
    with pytest.raises(NearkinError, match="centres are learned with loss=soft_triple"):
        Centres.of(run)
