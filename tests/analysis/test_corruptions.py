"""Corrupted test images of a run: the clean result is the stored one, own image excluded, resumed, behind a cut."""

import json
import shutil

import numpy as np
import pytest

import nearkin
from nearkin.analysis import corruptions as module
from nearkin.analysis._corrupt import CORRUPTIONS, METRICS, Measured, corrupt
from nearkin.analysis.corruptions import Corruptions
from nearkin.comparison.gather import gather
from nearkin.data import load_table
from nearkin.errors import NearkinError
from nearkin.runs.store import Run


def by_loops(query, gallery, labels):
    """Recall@1 and MAP@R of corrupted queries in a clean gallery; the image itself is no neighbour."""
    query, gallery = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (query, gallery))
    recall, precision = [], []
    for i, q in enumerate(query):
        order = sorted((j for j in range(len(gallery)) if j != i), key=lambda j: -float(q @ gallery[j]))
        hits = [labels[j] == labels[i] for j in order]
        r = sum(hits)
        recall.append(hits[0])
        precision.append(sum(sum(hits[: k + 1]) / (k + 1) for k in range(r) if hits[k]) / r)
    return {"recall@1": np.mean(recall), "map_at_r": np.mean(precision)}


@pytest.fixture(scope="module", params=["none", "block3"])
def run(request, tmp_path_factory):
    words = {
        "dataset": "glyphs",
        "data.classes": 24,
        "data.per_class": 10,
        "backbone": "convnet",
        "dim": 16,
        "train.batch": 16,
        "sampler.per_class": 4,
        "epochs": 1,
        "train.batches_per_epoch": 1,
        "model.cut": request.param,
    }
    return nearkin.train(words, runs=tmp_path_factory.mktemp("runs"))


def test_every_number_of_a_run(run, monkeypatch):
    chosen = {name: CORRUPTIONS[name] for name in ("uniform_noise", "rotation")}
    monkeypatch.setattr(module, "CORRUPTIONS", chosen)
    found = Corruptions.of(run)
    stored = run.result["test"]
    assert found.measured["clean"] == {metric: stored[metric] for metric in METRICS}
    again = Measured(run, None, 0).embedded(None).numpy()  # no corruption by the same road
    with np.load(run.path / "embeddings.npz") as held:
        clean, labels = held["embeddings"], held["labels"]
    if run.spec.model.cut == "none":
        np.testing.assert_array_equal(again, clean)
    else:
        np.testing.assert_allclose(again, clean, atol=1e-2 * np.abs(clean).max())

    table = load_table("glyphs", classes=24, per_class=10)
    images = [corrupt("rotation", table.images[row], 0, row) for row in range(120, 240)]
    other = nearkin.load(run).embed(images)  # by another road
    own = found.measured["corruptions"]["rotation"]
    assert own["queries"] == pytest.approx(by_loops(other, clean, labels), abs=0.02)
    assert own["all"] == pytest.approx(nearkin.evaluate(other, labels, metrics=list(METRICS)).metrics, abs=0.02)
    mean = np.mean([found.measured["corruptions"][name]["all"]["map_at_r"] for name in chosen])
    assert found.measured["mean"]["all"]["map_at_r"] == pytest.approx(mean)
    assert found.measured["drop"]["all"]["map_at_r"] == pytest.approx(1 - mean / stored["map_at_r"])
    assert found.strip.shape == (3, 3, 32, 32, 3)


def test_it_is_resumed_stored_and_summed_up(run, monkeypatch, tmp_path):
    calls = []

    def counted(self, name, rows=None, whole=Measured.embedded):
        calls.append(name)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return whole(self, name, rows)

    monkeypatch.setattr(Measured, "embedded", counted)
    with pytest.raises(KeyboardInterrupt):
        Corruptions.of(run, images=40, seed=1)
    begun = list(calls)
    found = Corruptions.of(run, images=40, seed=1)
    assert begun == [None, "gaussian_noise", "salt_and_pepper", "uniform_noise"]
    assert calls[4:] == [None, *list(CORRUPTIONS)[2:]]  # the first two were kept
    assert found.measured["images"] == 40
    assert set(found.measured["corruptions"]) == set(CORRUPTIONS)
    names = {path.name for path in found.save(run.path / "analysis")}
    assert {"corruptions.json", "corruptions-strip.png", "corruptions-bars.png"} <= names
    before = len(calls)
    study = Corruptions.between(gather([run.hash], run.path.parent), images=40, seed=1)
    assert len(calls) == before
    (own,) = study.numbers["methods"].values()
    assert own["all"]["recall@1"]["jpeg"]["mean"] == found.measured["corruptions"]["jpeg"]["all"]["recall@1"]
    table = study.tables[0]
    assert table.name == "recall-1-all"
    assert table.column("value clean") == [found.measured["clean"]["recall@1"]]
    assert table.texts()[0][2] == f"{100 * found.measured['clean']['recall@1']:.1f}"
    assert {(row["cut"], row["seeds"]) for row in study.tables[-1]} == {(False, 1)}
    assert "corruptions-drops.png" in {path.name for path in study.save(tmp_path)}
    assert json.loads((tmp_path / "corruptions.json").read_text())["options"] == {"images": 40, "seed": 1}


def test_a_model_that_embeds_otherwise_is_refused(run, tmp_path):
    copy = Run(shutil.copytree(run.path, tmp_path / run.hash))
    (copy.path / "files.json").unlink()  # as of a run that has no checksums
    with np.load(copy.path / "embeddings.npz") as held:
        arrays = dict(held)
    np.savez(copy.path / "embeddings.npz", **arrays | {"embeddings": arrays["embeddings"][::-1].copy()})
    with pytest.raises(NearkinError, match=f"run {run.hash} embeds its test images otherwise here"):
        Corruptions.of(copy)
    (copy.path / "model.pt").unlink()
    with pytest.raises(NearkinError, match=f"run {run.hash} has no model"):
        Corruptions.of(copy)
