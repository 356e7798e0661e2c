"""HIST's prototypes: every number against loops, the figures by what is drawn, bad input in one line."""

import csv
import json
import sys

import numpy as np
import pytest
import torch
from oracles.prototypes import prototypes as oracle
from typer.testing import CliRunner

import nearkin
from nearkin.analysis import prototypes, prototypes_of, training_set
from nearkin.cli.app import app
from nearkin.errors import NearkinError
from nearkin.runs.prepare import prepare, read_data


def arrays(seed=0, c=7, d=5, n=60, noise=0.6):
    """Learned means near the class means, classes of different sizes and spreads."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(c), rng.integers(0, c, n - c)])
    centres = rng.normal(size=(c, d))
    x = centres[labels] + rng.normal(size=(n, d)) * np.linspace(0.2, 1.5, c)[labels, None]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    mu = 3 * (centres + noise * rng.normal(size=(c, d)))
    return mu, rng.normal(size=(c, d)) * 4, x, labels  # v on both sides of ReLU6's bends


@pytest.mark.parametrize("seed", range(5))
def test_equals_the_loops(seed):
    mu, v, x, labels = arrays(seed)
    found, expected = prototypes(mu, v, x, labels), oracle(mu.tolist(), v.tolist(), x.tolist(), labels.tolist())
    for name in ("cosine", "spread", "size"):
        np.testing.assert_allclose(getattr(found, name), expected[name], rtol=1e-10, atol=1e-12)
    for name in ("diagonal", "off_diagonal", "own_class_share", "pearson", "spearman"):
        assert found.numbers[name] == pytest.approx(expected[name], abs=1e-10), name
    assert found.numbers["n"] == found.numbers["classes"] == 7
    assert found.images.tolist() == [int((labels == c).sum()) for c in range(7)]


def test_a_case_by_hand():
    """Two images of class 0 at right angles, its mean between them; class 1 opposite to one of them."""
    x = np.array([[1.0, 0], [0, 1], [-1, 0]])
    found = prototypes(np.array([[2.0, 2], [-5, 0]]), np.array([[0.0, -3], [9, 0]]), x, np.array([0, 0, 1]))
    half = np.sqrt(0.5)
    np.testing.assert_allclose(found.cosine, [[1, -half], [-half, 1]])
    np.testing.assert_allclose(found.spread, [2 - 2 * half, 0], atol=1e-15)
    np.testing.assert_allclose(found.size, [np.sqrt(2), np.sqrt(1 + np.exp(12))])
    assert found.numbers["own_class_share"] == 1
    assert found.numbers["undefined"] == "2 classes are too few"


def test_one_variance_for_all_leaves_the_correlations_undefined():
    mu, v, x, labels = arrays()
    for constant in (None, np.zeros_like(v), np.full_like(v, 0.3)):
        found = prototypes(mu, constant, x, labels)
        assert found.numbers["pearson"] is None
        assert found.numbers["spearman"] is None
        assert "same for all classes" in found.numbers["undefined"]
        assert "same for all classes" in found.tables[0].notes[-1]
    np.testing.assert_allclose(prototypes(mu, None, x, labels).size, np.sqrt(5))


def test_a_zero_mean_stays_finite():
    mu, v, x, labels = arrays()
    mu[2] = 0
    found = prototypes(mu, v, x, labels)
    assert np.isfinite(found.cosine).all()
    assert (found.cosine[2] == 0).all()


@pytest.mark.parametrize(("means", "labels"), [(1, [0, 0]), (3, [0, 1]), (2, [0, 2])])
def test_means_and_classes_must_match(means, labels):
    with pytest.raises(NearkinError, match=f"^{means} learned means for images of"):
        prototypes(np.ones((means, 2)), None, np.ones((2, 2)), np.array(labels))


def test_files_and_figures_hold_the_numbers(tmp_path):
    found = prototypes(*arrays(), tuple("abcdefg"))
    files = found.save(tmp_path / "new")
    assert {f.name for f in (tmp_path / "new").iterdir()} == {f.name for f in files}
    assert json.loads((tmp_path / "new" / "prototypes.json").read_text())["numbers"] == found.numbers
    with np.load(tmp_path / "new" / "prototypes.npz") as held:
        np.testing.assert_allclose(held["cosine"], found.cosine, rtol=1e-6)
    with open(tmp_path / "new" / "prototypes.csv") as file:
        rows = list(csv.DictReader(file))
    assert [r["class"] for r in rows] == list("abcdefg")
    for c, row in enumerate(rows):
        others = {e: found.cosine[c, e] for e in range(7) if e != c}
        best = max(others, key=others.get)
        assert (row["number"], row["best_other_class"]) == (str(c), "abcdefg"[best])
        numbers = [row[k] for k in ("spread", "size", "own_cosine", "best_other_cosine")]
        expected = [found.spread[c], found.size[c], found.cosine[c, c], others[best]]
        assert [float(n) for n in numbers] == pytest.approx(expected, abs=1e-6)

    matrix, spread = found.charts
    np.testing.assert_array_equal(matrix.matrix()[2], found.cosine)
    low, high = matrix.band
    assert low == -high == -np.abs(found.cosine).max()
    assert f"{100 * found.numbers['own_class_share']:.2f} %" in matrix.alt
    (drawn,) = spread.traces()[0]
    np.testing.assert_array_equal([drawn["x"], drawn["y"]], [found.spread, found.size])
    assert f"Pearson {found.numbers['pearson']:.3f}" in spread.alt


def test_very_many_classes_are_a_picture(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules["nearkin.analysis.prototypes"], "MOST", 6)
    found = prototypes(*arrays())
    matrix, _ = found.charts
    assert matrix.images[0][0].shape == (7, 7, 3)
    assert found.tables[2].rows == []
    assert (tmp_path / "prototypes-matrix.png") in found.save(tmp_path)


def test_the_training_set_of_a_run(tiny, tmp_path):
    run = nearkin.train(tiny, runs=tmp_path)
    seen = training_set(run)
    assert sorted(set(seen.labels)) == list(range(len(seen.classes)))
    np.testing.assert_allclose(np.linalg.norm(seen.x, axis=1), 1, rtol=1e-5)
    measured = nearkin.evaluate(seen.x, seen.labels, metrics=["rho", "pi_ratio"]).metrics
    assert measured == pytest.approx({m: run.result["train"][m] for m in measured})


@pytest.mark.parametrize("words", [{}, {"model.cut": "all"}, {"loss.variance": False}], ids=str)
def test_a_run_from_the_command_line(words, tiny, tmp_path):
    """Against the loops, on embeddings that come by another road: nearkin.load on the pictures of the table."""
    tiny = {k: v for k, v in tiny.items() if not k.startswith("sampler")} | {"loss": "hist", "sampler": "random"}
    run = nearkin.train(tiny, runs=tmp_path, **words)
    called = CliRunner().invoke(app, ["analyse", "prototypes", run.hash[:6], "--runs", str(tmp_path), "--json"])
    assert called.exit_code == 0, called.output
    summary = json.loads(called.stdout)
    assert json.loads((run.path / "prototypes.json").read_text())["numbers"] == summary

    prepared = prepare(run.spec)
    table, rows = read_data(prepared.spec.data).table, prepared.split.train
    numbers = sorted(set(table.labels[rows].tolist()))
    labels = [numbers.index(label) for label in table.labels[rows]]
    x = nearkin.load(run).embed(list(table.images[rows]))
    learned = run.load("model.pt")["objective"]
    mu = learned["loss.proxies"]
    v = learned.get("loss.v", torch.zeros_like(mu))
    expected = oracle(mu.tolist(), v.tolist(), x.tolist(), labels)
    tolerance = 1e-2 if words.get("model.cut") else 1e-5  # features behind a cut are kept in half precision
    for name in ("diagonal", "off_diagonal", "pearson"):
        assert summary[name] == pytest.approx(expected[name], abs=tolerance), name
    assert (summary["pearson"] is None) == (words == {"loss.variance": False})
    with open(run.path / "prototypes.csv") as file:
        assert [row["class"] for row in csv.DictReader(file)] == [table.classes[n] for n in numbers]

    printed = CliRunner().invoke(app, ["analyse", "prototypes", str(run.path), "-o", str(tmp_path / "there")])
    assert f"{summary['diagonal']:.3f}" in printed.stdout
    assert (tmp_path / "there" / "prototypes-matrix.png").stat().st_size > 10_000


def test_untrained_prototypes_are_refused(tiny, tmp_path):
    words = {"loss": "hist", "loss.graph": "none", "loss.distribution_loss": False, "epochs": 1}
    run = nearkin.train(tiny | words, runs=tmp_path)
    with pytest.raises(NearkinError, match=r"loss\.graph=none loss\.distribution_loss=false: nothing trained"):
        prototypes_of(run)


def test_other_losses_and_unfinished_runs_are_refused(tiny, tmp_path):
    run = nearkin.train(tiny, runs=tmp_path, loss="proxy_anchor")
    with pytest.raises(NearkinError, match="has loss=proxy_anchor; prototypes are learned with loss=hist"):
        prototypes_of(run)
    hist = nearkin.train(tiny, runs=tmp_path, loss="hist", epochs=1)
    for unfinished, look in ((run, training_set), (hist, prototypes_of)):
        unfinished.path.joinpath("result.json").unlink()
        with pytest.raises(NearkinError, match=f"run {unfinished.hash} is not finished"):
            look(unfinished)


def test_a_run_on_other_data_is_refused(tiny, tmp_path):
    run = nearkin.train(tiny | {"epochs": 0}, runs=tmp_path)
    run.write_json("result.json", run.result | {"data_hash": "0123"})
    with pytest.raises(NearkinError, match=r"was trained on data 0123; glyphs is data .* here"):
        training_set(run)
