"""Fit and test are two acts: what each may do, what a test can be asked later, what a trial may never."""

import json
from contextlib import suppress

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.errors import NearkinError
from nearkin.evaluation import retrieval
from nearkin.runs.store import Store


def never(*args, **kwargs):
    raise AssertionError("this must not happen again")


@pytest.fixture
def run(tiny, tmp_path):
    return nearkin.train(tiny, runs=tmp_path, epochs=1)


@pytest.fixture
def shop(tmp_path):
    """A csv data set with queries and a gallery, in mixed order."""
    rng = np.random.default_rng(0)
    lines = ["path,label,split"]
    for c in range(12):
        colour = rng.integers(0, 255, 3)
        for i in range(6):
            split = "train" if c < 6 else ("gallery", "query", "gallery")[i % 3]
            name = f"{c:02d}_{i}.png"
            pixels = np.clip(colour + rng.integers(-60, 60, (32, 32, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / name)
            lines.append(f"{name},thing{c:02d},{split}")
    (tmp_path / "shop.csv").write_text("\n".join(lines))
    return {
        "dataset": "csv",
        "root": str(tmp_path / "shop.csv"),
        "dim": 8,
        "epochs": 1,
        "train.batch": 8,
        "sampler.per_class": 2,
        "protocol": "standard",
    }


class TestTheTest:
    def test_training_can_end_before_it(self, tiny, tmp_path):
        run = nearkin.train(tiny, runs=tmp_path, test=False)
        assert run.final
        assert not run.tested
        assert not (run.path / "test.parquet").exists()
        nearkin.test(run)
        whole = nearkin.train(tiny, runs=tmp_path / "whole")
        assert run.metrics() == whole.metrics()
        assert nearkin.train(tiny, runs=tmp_path).result == run.result

    def test_other_metrics_come_from_stored_embeddings(self, run, monkeypatch):
        for place in ("nearkin.runs.test.read_data", "nearkin.runs.test.embed", "nearkin.runs.fit._fit"):
            monkeypatch.setattr(place, never)
        before = (run.path / "result.json").read_bytes()
        found = nearkin.test(run, metrics=["nmi", "ami", "f1", "map@1000", "recall@100"])
        assert list(found) == ["nmi", "ami", "f1", "map_at_1000", "recall@100"]
        assert all(0 <= value <= 1 for value in found.values())
        assert (run.path / "result.json").read_bytes() == before
        assert set(found) <= set(run.metrics())
        with np.load(run.path / "embeddings.npz") as held:
            fresh = nearkin.evaluate(held["embeddings"], held["labels"], metrics=list(found))
        assert found == pytest.approx(fresh.metrics)

    def test_what_is_stored_is_not_computed_again(self, run, monkeypatch):
        first = nearkin.test(run, metrics=["nmi"])
        monkeypatch.setattr("nearkin.runs.tested.evaluate", never)
        assert nearkin.test(run, metrics=["nmi", "recall@1"]) == first | {"recall@1": run.result["test"]["recall@1"]}

    def test_another_distance_has_its_own_figures(self, run):
        euclid = nearkin.test(run, distance="euclid")
        assert euclid.keys() == run.metrics().keys()
        assert euclid != run.metrics()
        assert run.metrics("euclid") == euclid

    def test_embeddings_are_raw(self, run):
        with np.load(run.path / "embeddings.npz") as test, np.load(run.path / "validation.npz") as validation:
            for z in (test["embeddings"], validation["embeddings"]):
                assert abs(np.linalg.norm(z, axis=1) - 1).max() > 0.01
            assert len(validation["embeddings"]) == len(validation["labels"]) == len(validation["rows"])

    def test_a_new_meaning_of_evaluation_repeats_the_test_only(self, run, tiny, monkeypatch):
        before = run.metrics()
        monkeypatch.setattr(retrieval, "VERSION", 2)
        monkeypatch.setattr("nearkin.runs.fit._fit", never)
        with np.load(run.path / "embeddings.npz") as held:
            stored = dict(held)
        stored["labels"] = np.roll(stored["labels"], 1)  # so that one sees that it was measured again
        np.savez(run.path / "embeddings.npz", **stored)
        (run.path / "files.json").unlink()  # else their checksum would say it
        assert nearkin.test(run)["map_at_r"] != before["map_at_r"]
        assert json.loads((run.path / "tests.json").read_text())["cosine"]["evaluation"] == 2
        assert nearkin.train(tiny, runs=run.path.parent, epochs=1).hash == run.hash

    def test_customary_k(self, tiny, tmp_path, monkeypatch):
        from nearkin.data import Glyphs

        monkeypatch.setattr(Glyphs, "ks", (1, 3, 1000), raising=False)
        run = nearkin.train(tiny, runs=tmp_path, epochs=0)
        assert [m for m in run.metrics() if m.startswith("recall")] == ["recall@1", "recall@3"]
        assert nearkin.data.SOP.ks == (1, 10, 100, 1000)
        assert nearkin.data.InShop.ks == (1, 10, 20, 30)

    def test_on_the_command_line(self, run):
        where = ["--runs", str(run.path.parent)]
        done = CliRunner().invoke(app, ["test", run.hash[:6], "--metrics", "nmi,f1", "--k", "1,10", "--json", *where])
        assert list(json.loads(done.stdout)[run.hash]) == ["nmi", "f1"]
        shown = CliRunner().invoke(app, ["test", run.hash, "--distance", "snr", *where])
        assert "recall@1" in shown.stdout
        assert "was opened 3 times" in shown.stdout

    def test_openings_are_counted(self, run, tiny):
        store = Store(run.path.parent)
        split = run.head()["split_hash"]
        assert store.openings() == {split: 1}
        nearkin.test(run, metrics=["nmi"])
        nearkin.test(run, metrics=["nmi"])  # stored: nothing was opened
        assert store.openings() == {split: 2}
        other = nearkin.train(tiny, runs=run.path.parent, epochs=1, seed=1)
        assert store.openings() == {other.head()["split_hash"]: 3}


class TestRoles:
    def test_a_query_and_gallery_run_gives_its_figures_again_from_its_own_files(self, shop, tmp_path):
        run = nearkin.train(shop, runs=tmp_path / "runs")
        with np.load(run.path / "embeddings.npz") as held:
            z, labels, roles = held["embeddings"], held["labels"], held["roles"]
        again = nearkin.evaluate(z, labels, query=roles == "query", gallery=roles == "gallery")
        assert again.metrics == pytest.approx(run.metrics())
        assert nearkin.test(run, metrics=["recall@1", "r_precision"])["recall@1"] == run.metrics()["recall@1"]

    def test_every_test_image_is_listed(self, shop, tmp_path):
        run = nearkin.train(shop, runs=tmp_path / "runs")
        listed = pq.read_table(run.path / "test.parquet").to_pydict()
        assert set(listed["role"]) == {"query", "gallery"}
        assert listed["path"][0].endswith(".png")
        assert "/" not in listed["path"][0]  # relative to the root
        table = nearkin.data.load_table("csv", shop["root"])
        for row, path, name in zip(listed["row"], listed["path"], listed["class"], strict=True):
            assert table.shown(row) == path
            assert table.classes[table.labels[row]] == name
        split = run.read_json("split.json")
        assert split["hash"] == run.head()["split_hash"]
        assert sorted(split["query"] + split["gallery"]) == sorted(listed["row"])


class TestTrials:
    def test_a_trial_is_never_tested_and_never_promoted(self, tiny, tmp_path):
        trial = nearkin.train(tiny, runs=tmp_path, purpose="trial")
        assert trial.done
        assert not trial.tested
        assert trial.read_json("final.json")["validation"]
        for attempt in (lambda: nearkin.test(trial), lambda: nearkin.test(trial.hash, runs=tmp_path)):
            with pytest.raises(NearkinError, match=r"is a trial .*never tested"):
                attempt()
        final = nearkin.train(tiny, runs=tmp_path)
        assert final.hash != trial.hash
        done = CliRunner().invoke(app, ["test", trial.hash, "--runs", str(tmp_path)])
        assert isinstance(done.exception, NearkinError)
        assert not (trial.path / "embeddings.npz").exists()

    def test_final_is_what_is_stored_not_what_is_said(self, tiny, tmp_path):
        class Liar(nearkin.runs.store.Run):
            final = True
            tested = False

        begun = Liar(tmp_path / "abc")
        run = nearkin.train(tiny, runs=tmp_path, test=False)
        (run.path / "final.json").rename(run.path / "aside.json")
        (run.path / "files.json").unlink()
        begun.path = run.path
        with pytest.raises(NearkinError, match="is not final"):
            nearkin.test(begun)


class TestCurve:
    def test_a_test_curve_is_read_after_the_run_is_final(self, tiny, tmp_path):
        plain = nearkin.train(tiny, runs=tmp_path / "plain", epochs=3)
        run = nearkin.train(tiny, runs=tmp_path / "curve", epochs=3, **{"train.curve": True})
        assert run.hash == plain.hash  # it changes nothing
        assert run.metrics() == plain.metrics()
        curve = run.read_json("curve.json")
        assert [point["epoch"] for point in curve["epochs"]] == [1, 2, 3]
        assert (curve["last"], curve["validated"]) == (3, run.result["epoch"])
        chosen = curve["epochs"][run.result["epoch"] - 1]["metrics"]
        assert chosen == pytest.approx(run.metrics(), abs=0.03)  # float32
        for key, best in curve["best_on_test"].items():
            assert best["value"] == max(point["metrics"][key] for point in curve["epochs"])
        rows = run.curve()
        assert [row["epoch"] for row in rows] == [1, 2, 3]
        assert {"loss", "validation.map_at_r", "test.map_at_r"} <= rows[0].keys()

    def test_before_that_it_holds_no_labels(self, tiny, tmp_path):
        run = nearkin.train(tiny, runs=tmp_path, test=False, **{"train.curve": True})
        files = sorted((run.path / "curve").iterdir())
        assert [f.name for f in files] == ["epoch-0001.npy", "epoch-0002.npy"]
        assert np.load(files[0]).dtype == np.float32
        assert not (run.path / "curve.json").exists()


class TestCheckedBefore:
    """What can be known before training is checked before training."""

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ({"train.select": "recall"}, "which k.*train.select=recall@1"),
            ({"train.select": "maps"}, "unknown metric 'maps'"),
            ({"train.select": "pi_ratio"}, "neither high nor low is better"),
            ({"train.select": "recall@500"}, "k=500, but there are 20 validation images"),
            ({"train.patience": 1, "train.eval_every": 2}, "is below train.eval_every"),
            ({"model.head": "none", "cut": "all", "loss": "contrastive"}, "there is nothing to train"),
        ],
    )
    def test_refused(self, tiny, tmp_path, words, said):
        with pytest.raises(NearkinError, match=said):
            nearkin.train(tiny, runs=tmp_path, watch=lambda entry: never() if "step" in entry else None, **words)

    def test_a_metric_that_is_better_when_low_selects_the_lowest(self, tiny, tmp_path):
        run = nearkin.train(tiny, runs=tmp_path, epochs=4, **{"train.select": "rho"})
        rho = {line["epoch_end"]: line["validation"]["rho"] for line in run.log_lines() if "validation" in line}
        assert run.result["epoch"] == min(rho, key=rho.get)

    def test_two_dimensions_train_and_have_no_rho(self, tiny, tmp_path):
        run = nearkin.train(tiny, runs=tmp_path, dim=2, epochs=1)
        assert run.result["train"]["rho"] is None
        assert run.result["train"]["pi_ratio"] > 0

    def test_nothing_to_train_is_fine_untrained(self, tiny, tmp_path):
        words = {"model.head": "none", "cut": "all", "loss": "contrastive"}
        assert nearkin.train(tiny, runs=tmp_path, epochs=0, **words).tested


def test_the_untrained_network_is_computed_once(tiny, tmp_path):
    runs = {nearkin.train(tiny, runs=tmp_path, epochs=0, loss=loss).hash for loss in ("triplet", "nt_xent", "softmax")}
    assert len(runs) == 1
    run = Store(tmp_path).find(next(iter(runs)))
    assert run.result["validation"]["map_at_r"] > 0  # measured, though nothing was chosen by it
    assert run.result["select"] is None


def test_the_chosen_weights_and_the_checkpoint_belong_together(tiny, tmp_path, monkeypatch):
    """Killed between the two: the weights of epoch 2 are written, the checkpoint that names them is not."""
    monkeypatch.setattr("nearkin.engine.loop.CHECKPOINT_SECONDS", 0)
    straight = nearkin.train(tiny, runs=tmp_path / "straight", epochs=4)
    for kill_at in range(1, 5):
        saves = []

        def save(self, name, state, *, kill_at=kill_at, saves=saves, original=nearkin.runs.store.Run.save):
            original(self, name, state)
            saves.append(name)
            if sum(n.startswith("model-") for n in saves) == kill_at and name.startswith("model-"):
                raise KeyboardInterrupt  # right after the weights, before the checkpoint

        runs = tmp_path / f"kill{kill_at}"
        with monkeypatch.context() as patched:
            patched.setattr("nearkin.runs.run.Run.save", save)
            with suppress(KeyboardInterrupt):
                nearkin.train(tiny, runs=runs, epochs=4)
        run = nearkin.train(tiny, runs=runs, epochs=4)
        assert run.result["epoch"] == straight.result["epoch"]
        a, b = (r.load("model.pt")["model"] for r in (run, straight))
        assert all(torch.equal(a[k], b[k]) for k in a)
        assert [p.name for p in run.path.glob("model-*")] == []
