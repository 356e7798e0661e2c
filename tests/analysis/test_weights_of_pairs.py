"""Pair weights: closed forms against autograd, finite differences of the loss itself, and table 1 of the thesis."""

import json

import numpy as np
import pytest
from oracles.weight_forms import FORMS
from typer.testing import CliRunner

from nearkin.analysis import weights
from nearkin.analysis._pair_weights import CLOSED_FORMS, LABELS, Place, all_tuples
from nearkin.cli.app import app
from nearkin.registry import LOSSES

NAMES = [name for name in LOSSES.names() if LOSSES[name].__module__.startswith("nearkin.")]


SLOPES = ["fastap", "histogram", "snr_contrastive", "quadruplet", "soft_triple", "hist", "angular"]


def spots(place):
    one, other = place.pairs["positive"], place.pairs["negative"]
    return [[], [(one, 0.7)], [(other, 0.5)], [(one, -0.2), (other, 0.3)]]


@pytest.mark.parametrize("name", NAMES)
def test_a_loss_depends_on_products_alone(name):
    """w is symmetric and gives the gradient back."""
    place = Place(name)
    for moved in spots(place):
        v = place.vectors(moved)
        w = place.weights(moved)
        np.testing.assert_allclose(w, w.T, atol=1e-9 * (1 + np.abs(w).max()))
        np.testing.assert_allclose(w @ v.numpy(), place.gradient(v).numpy(), atol=1e-9 * (1 + np.abs(w).max()))


def test_closed_forms_are_those_that_are_said_to_be():
    assert set(CLOSED_FORMS) == set(FORMS)


@pytest.mark.parametrize("name", sorted(FORMS))
def test_closed_forms_equal_autograd(name):
    place = Place(name)
    for moved in spots(place):
        v = place.vectors(moved)
        s = (v @ v.T).numpy()
        labels = place.labels.numpy()
        b = len(LABELS)
        w = place.weights(moved)
        if place.proxies is None:
            positive = (labels[:, None] == labels) & ~np.eye(b, dtype=bool)
            expected = FORMS[name](s, positive, labels[:, None] != labels, place.objective.loss)
            expected, found = expected + expected.T, w
        else:
            positive = labels[:b, None] == labels[b:]
            expected, found = FORMS[name](s[:b, b:], positive, ~positive, place.objective.loss), w[:b, b:]
        off = ~np.eye(b, dtype=bool) if place.proxies is None else np.ones_like(found, dtype=bool)
        np.testing.assert_allclose(found[off], expected[off], atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("name", SLOPES)
def test_the_weight_is_the_slope_of_the_loss(name):
    """Where there is no closed form: move the similarity a little and look at the loss."""
    place = Place(name)

    def value(moved):
        z = place.put(place.vectors(moved))
        return place.objective.loss(z, LABELS, all_tuples(place.objective.loss)).item()

    for kind, s in (("positive", 0.45), ("negative", 0.33)):
        pair = place.pairs[kind]
        slope = (value([(pair, s + 1e-6)]) - value([(pair, s - 1e-6)])) / 2e-6
        assert place.weights([(pair, s)])[pair] == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_similarities_that_no_vectors_have():
    assert Place("triplet").weights([((0, 1), -0.99), ((0, 2), -0.99)]) is None


def test_what_moves_the_weight_of_a_pair(monkeypatch):
    monkeypatch.setattr(weights, "GRID", weights.GRID[::3])

    def moves(place):
        return weights.moves(place, weights.curve(place))

    told = moves(Place("proxy_nca"))
    assert told["positive"] == {"S": "no", "N": "no", "P": "no"}  # -18/B whatever happens
    assert told["negative"] == {"S": "yes", "N": "yes", "P": "no"}
    told = moves(Place("multi_similarity"))
    assert told["negative"] == {"S": "yes", "N": "yes", "P": "no"}
    assert told["positive"] == {"S": "yes", "N": "no", "P": "yes"}
    told = moves(Place("multi_similarity", miner=("multi_similarity", ())))
    assert told["negative"]["P"] != "no"  # the miner compares with the positives
    told = moves(Place("triplet"))
    assert told["negative"]["P"] == told["negative"]["S"] == "step"
    assert told["negative"]["N"] == "no"
    told = moves(Place("norm_softmax"))
    assert told["positive"] == {"S": "yes", "N": "yes", "P": "no"}


def test_the_command_without_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(weights, "registered", lambda: ["multi_similarity", "triplet"])
    monkeypatch.setattr(weights, "GRID", weights.GRID[::6])
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["analyse", "weights", "-o", "there", "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    told = json.loads(done.stdout)
    by_name = {row["name"]: row for row in told["losses"]}
    assert by_name["triplet"]["published"] == {"S": False, "N": False, "P": True}
    assert by_name["multi_similarity with its miner"]["negative"]["P"] != "no"
    files = {path.name for path in (tmp_path / "there").iterdir()}
    assert files == {
        "weights.json",
        "weights.md",
        "weights-curves.parquet",
        "weights-curves.png",
        "weights-marks.parquet",
    }
