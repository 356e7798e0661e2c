"""Spectra and densities of training embeddings: against plain SVDs, of runs, with and without a regulariser."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from scipy import stats
from stores import add_run, add_study

import nearkin
from nearkin.analysis import spectrum as module
from nearkin.analysis._spectrum_charts import ALL
from nearkin.analysis.embedded import training_set
from nearkin.analysis.spectrum import KEEP, Spectrum, spectrum
from nearkin.comparison.gather import gather
from nearkin.present import read


def embeddings(c=5, n=12, d=8, noise=0.5, seed=0):
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(c), n)
    return torch.from_numpy(random.normal(size=(c, d))[labels] + noise * random.normal(size=(c * n, d))), labels


def test_against_plain_svds():
    z, labels = embeddings()
    e = (z / z.norm(dim=1, keepdim=True)).numpy()
    found = spectrum(z, labels)
    sigma = np.linalg.svd(e, compute_uv=False)
    np.testing.assert_allclose(found.singular, sigma, rtol=1e-6)
    p = sigma[1:] / sigma[1:].sum()
    assert found.measured["rho"] == pytest.approx(np.mean(-np.log(len(p) * p)))
    p = sigma / sigma.sum()
    assert found.measured["rho_all"] == pytest.approx(np.mean(-np.log(len(p) * p)))
    mean = np.mean([np.linalg.svd(e[labels == c], compute_uv=False) for c in range(5)], axis=0)
    assert len(found.classes) == KEEP == 35
    np.testing.assert_allclose(found.classes[:8], mean, rtol=1e-6)
    assert (found.classes[8:] == 0).all()  # padded
    inside = [
        1 - e[i] @ e[j]
        for c in range(5)
        for i in np.flatnonzero(labels == c)
        for j in np.flatnonzero(labels == c)
        if i != j
    ]
    assert found.measured["pi_intra"] == pytest.approx(np.mean(inside))
    assert found.measured["pi_ratio"] == pytest.approx(found.measured["pi_intra"] / found.measured["pi_inter"])


def test_labels_may_be_words(tmp_path):
    """Of an .npz file, and of a .parquet file, whose words are Python objects."""
    z, labels = embeddings()
    words = np.array(["wren", "robin", "$_$x", "007", "1_2"])[labels]
    np.savez(tmp_path / "words.npz", embeddings=z.numpy(), labels=words)
    table = pa.table({"embeddings": list(z.numpy()), "label": words.tolist()})
    pq.write_table(table, tmp_path / "words.parquet")
    expected = spectrum(z, labels)
    for file in ("words.npz", "words.parquet"):
        found = Spectrum.of_files([tmp_path / file])
        assert found.measured == pytest.approx(expected.measured, rel=1e-5)
        np.testing.assert_allclose(found.classes, expected.classes, rtol=1e-4, atol=1e-6)


def test_collapse_raises_rho_and_lowers_density():
    free, packed = (spectrum(*embeddings(noise=noise)).measured for noise in (2.0, 0.02))
    assert packed["rho"] > free["rho"]
    assert packed["pi_ratio"] < free["pi_ratio"]


def test_a_run_is_what_training_stored(tiny, tmp_path, monkeypatch):
    run = nearkin.train(tiny | {"epochs": 1}, runs=tmp_path)
    found = Spectrum.of(run)
    for name, value in run.result["train"].items():
        assert found.measured[name] == pytest.approx(value, rel=1e-4), name
    seen = training_set(run)
    np.testing.assert_allclose(found.singular, np.linalg.svd(seen.x, compute_uv=False), rtol=1e-3, atol=1e-3)
    names = {path.name for path in found.save(run.path / "analysis")}
    assert {"spectrum.json", "spectrum.npz", "spectrum-curves.png", "spectrum-singular.parquet"} <= names
    monkeypatch.setattr(module, "training_set", None)  # what is stored is not computed again
    np.testing.assert_array_equal(Spectrum.of(run).singular, found.singular)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Two losses, without, with ρ switching of chance 0 (which is none), with it, and with mixup; three seeds."""
    cells = []
    kinds = {
        "none": {},
        "zero": {"regulariser": "rho", "regulariser.p_switch": 0.0},
        "rho": {"regulariser": "rho", "regulariser.p_switch": 0.3},
        "mixup": {"regulariser": "mixup"},
    }
    values = {}
    for i, loss in enumerate(("contrastive", "margin")):
        for j, (kind, words) in enumerate(kinds.items()):
            if kind == "zero" and loss == "margin":
                continue
            for seed in (0, 1, 2):
                name = f"{loss[:4]}{kind}{seed}".ljust(12, "0")
                score = 0.5 + 0.1 * i + {"none": 0, "zero": 0, "rho": 0.02, "mixup": -0.03}[kind] + 0.01 * seed
                add_run(tmp_path, name, {"loss": loss, **words}, {"recall@1": score, "map_at_r": score / 2}, seed=seed)
                cells.append({"labels": [loss, kind], "seed": seed, "run": name})
                rho = {"none": 0.6, "zero": 0.6, "rho": 0.4, "mixup": 0.5}[kind] + 0.05 * seed + 0.1 * i
                values[name] = embeddings(noise=1, seed=j), rho
    add_study(tmp_path, "reg", ["loss", "regulariser"], cells)

    def of(cls, run):
        (z, labels), rho = values[run.hash]
        found = spectrum(z, labels)
        return Spectrum(found.measured | {"rho": rho}, found.singular, found.classes)

    monkeypatch.setattr(Spectrum, "of", classmethod(of))
    monkeypatch.setattr(Spectrum, "charts", ())  # no figure of every run
    return Spectrum.between(gather(["reg"], tmp_path))


def test_a_regulariser_against_none_on_the_same_seeds(study):
    found = {(row["loss"], row["regulariser"]): row for row in study.numbers["regularisers"]}
    assert set(found) == {
        ("contrastive", "rho p_switch=0.3"),
        ("margin", "rho p_switch=0.3"),
        ("contrastive", "mixup"),
        ("margin", "mixup"),
    }
    own = found["margin", "rho p_switch=0.3"]
    assert own["rho"]["mean"] == pytest.approx(-0.2)
    assert own["recall@1"]["mean"] == pytest.approx(0.02)
    assert own["recall@1"]["n"] == 3
    assert own["recall@1"]["verdict"].startswith("distinguishable: margin, rho is ahead by 2.00 points")
    assert own["rho"]["family"] == 16  # 4 pairs by 4 numbers
    assert found["margin", "mixup"]["map_at_r"]["mean"] == pytest.approx(-0.015)


def test_a_panel_for_each_loss_with_and_without(study):
    """Spectra of a class as Roth et al. draw them; two regularisers stand in one panel, p_switch=0 is none."""
    charts = {chart.name: chart for chart in study.charts}
    panels = {chart.title: chart.series() for chart in charts["spectra"].charts}
    assert {title: [group for group, _ in series] for title, series in panels.items()} == {
        "contrastive": ["none", "rho", "mixup"],
        "margin": ["none", "rho", "mixup"],
    }
    (_, rows), *_ = panels["margin"]
    assert [row["number"] for row in rows] == list(range(1, 9))  # of 8 dimensions
    plain = [run.classes for name, run in study.runs.items() if name.startswith("margnone")]
    assert rows[0]["value"] == pytest.approx(np.mean(plain, 0)[0])


def test_means_in_the_colours_of_the_regularisers(study):
    charts = {chart.name: chart for chart in study.charts}
    (rho, *_) = charts["test"].charts
    assert rho.groups() == ["none", "rho", "mixup"]
    means = {row["method"]: row for row in rho.records()}
    margin = means["margin, rho"]
    assert (margin["rho"], margin["recall@1"]) == (pytest.approx(0.55), pytest.approx(0.63))
    half = stats.t.ppf(0.975, 2) * 0.01 / np.sqrt(3)
    assert (margin["recall@1_low"], margin["recall@1_high"]) == pytest.approx((0.63 - half, 0.63 + half))
    (trace, *_), _ = rho.traces()
    assert (
        len(trace["error_x"]["array"]) == len(trace["error_y"]["array"]) == 3
    )  # contrastive twice: none and p_switch=0
    recall, decay = charts["regularisers"].charts
    assert recall.names() == decay.names() == ["contrastive", "margin"]


def test_rho_against_the_test(study):
    """Rank correlation over methods: seeds are averaged first."""
    told = study.numbers
    rows = list(told["methods"].values())
    own = told["correlations"]["rho"]["recall@1"]
    x, y = ([row[key]["mean"] for row in rows] for key in ("rho", "recall@1"))
    assert own["spearman"] == pytest.approx(stats.spearmanr(x, y).statistic)
    assert own["methods"] == len(rows) == 7
    assert (own["seeds"], own["family"]) == (3, 8)
    assert own["p_holm"] >= own["p"]


def test_the_study_in_files(study, tmp_path):
    names = {path.name for path in study.save(tmp_path / "there")}
    assert {"spectrum.json", "spectrum-curves.png", "spectrum-test.png", "spectrum.md"} <= names
    assert json.loads((tmp_path / "there" / "spectrum.json").read_text())["numbers"] == study.numbers
    stored = read(tmp_path / "there" / "spectrum-methods.parquet")
    rho = {row["method"]: (row["rho"], row["seeds"]) for row in stored}
    assert rho == {name: (row["rho"]["mean"], row["rho"]["seeds"]) for name, row in study.numbers["methods"].items()}
    singular = {row["method"]: row for row in study.tables[-1] if (row["of"], row["number"]) == (ALL, 1)}
    first = next(name for name in singular if name.startswith("margin"))
    runs = [run.run.hash for method in study.methods if method.name == first for run in method.members]
    assert singular[first]["value"] == pytest.approx(np.mean([study.runs[run].singular[0] for run in runs]))
