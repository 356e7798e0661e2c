"""The command line as a user meets it: the commands of the README, and bad input in one line with exit code 2."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from nearkin.cli.app import app
from nearkin.errors import NearkinError
from nearkin.registry import ALL_REGISTRIES


def nearkin(*words):
    return CliRunner().invoke(app, [str(w) for w in words])


def words_of(tiny, **more):
    return [f"{k}={v}" for k, v in (tiny | more).items()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ten classes of six small pictures, each class of its own colour."""
    root = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for c in range(10):
        (root / f"class{c}").mkdir()
        colour = rng.integers(0, 255, 3)
        for i in range(6):
            pixels = np.clip(colour + rng.integers(-30, 30, (40, 48, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(root / f"class{c}" / f"{i}.png")
    return root


@pytest.mark.parametrize("registry", ALL_REGISTRIES, ids=lambda registry: registry.plural)
def test_list(registry):
    shown, plain = nearkin("list", registry.plural, "--json"), nearkin("list", registry.plural)
    entries = json.loads(shown.stdout)
    assert {e["name"] for e in entries} == set(registry.names())
    assert all(e["about"] for e in entries), [e["name"] for e in entries if not e["about"]]
    assert plain.exit_code == 0


def test_doctor():
    findings = json.loads(nearkin("doctor", "--json").stdout)
    assert {f["what"] for f in findings} >= {"machine", "device", "bf16 product", "timm", "cache"}
    assert {f["state"] for f in findings} <= {"ok", "missing", "trap"}


def test_train_embed_and_look_at_runs_from_a_folder(folder, tmp_path):
    runs = ("--runs", tmp_path / "runs")
    words = ["dataset=folder", f"root={folder}", "dim=8", "epochs=1", "train.batch=6", "sampler.per_class=2"]
    done = nearkin("train", *words, *runs)
    assert done.exit_code == 0, done.output
    assert "recall@1" in done.stdout
    listed = json.loads(nearkin("runs", "list", "--json", *runs).stdout)
    run_hash = listed[0]["hash"]
    assert nearkin("runs", "list", *runs).exit_code == 0
    assert run_hash in nearkin("runs", "show", run_hash[:5], *runs).stdout
    out = tmp_path / "emb.npz"
    assert nearkin("embed", run_hash, folder, "-o", out, *runs).exit_code == 0
    with np.load(out) as stored:
        assert stored["embeddings"].shape == (60, 8)
        assert len(stored["paths"]) == 60
    assert nearkin("runs", "rm", run_hash, "--yes", *runs).exit_code == 0
    left = json.loads(nearkin("runs", "list", "--json", *runs).stdout)
    assert [row["loss"] for row in left] == ["(untrained)"]  # measured beside it, and kept


def test_evaluate(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "emb.npy", rng.normal(size=(30, 4)).astype(np.float32))
    np.save(tmp_path / "labels.npy", np.arange(30) % 5)
    shown = nearkin("evaluate", tmp_path / "emb.npy", tmp_path / "labels.npy", "--k", "1,3", "--json")
    result = json.loads(shown.stdout)
    assert result["n"] == 30
    assert {"recall@1", "recall@3", "p@1", "r_precision", "map_at_r"} <= set(result["metrics"])
    assert nearkin("evaluate", tmp_path / "emb.npy", tmp_path / "labels.npy").exit_code == 0


def test_a_data_set_is_verified(folder):
    good = nearkin("data", "verify", "folder", "--root", folder, "--json")
    assert good.exit_code == 0
    assert json.loads(good.stdout)["images"] == 60


def copy_of(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "pictures")


class TestBadInput:
    """Each: one line that names the value, the reason and the choices; never a traceback."""

    def refused(self, *words):
        done = nearkin(*words)
        assert isinstance(done.exception, NearkinError), done.output
        assert "\n" not in str(done.exception)
        return str(done.exception)

    def test_unknown_loss(self):
        assert "did you mean margin" in self.refused("train", "loss=margn")

    def test_unknown_key(self):
        assert "did you mean lr" in self.refused("train", "train.lrr=1")

    def test_dim_zero(self):
        assert "model.dim=0" in self.refused("train", "dim=0")

    def test_root_that_does_not_exist(self):
        assert "/no/such/place" in self.refused("train", "dataset=cub", "root=/no/such/place")

    def test_root_that_is_missing(self):
        assert "root=" in self.refused("train", "dataset=cub")

    def test_empty_folder(self, tmp_path):
        assert str(tmp_path) in self.refused("train", "dataset=folder", f"root={tmp_path}")

    def test_a_class_with_one_image(self, folder, tmp_path):
        for c in range(10):
            shutil.copytree(folder / f"class{c}", tmp_path / "data" / ("train" if c < 5 else "test") / f"class{c}")
        for i in range(1, 6):
            (tmp_path / "data" / "train" / "class0" / f"{i}.png").unlink()
        words = ["dataset=folder", f"root={tmp_path}/data", "train.batch=4", "sampler.per_class=2", "protocol=standard"]
        assert "have one image" in self.refused("train", *words, "--runs", tmp_path)

    def test_a_text_file_named_jpg(self, folder, tmp_path):
        root = copy_of(folder, tmp_path)
        (root / "class3" / "notes.jpg").write_text("shopping list")
        words = ["dataset=folder", f"root={root}", "train.batch=4", "sampler.per_class=2", "epochs=0"]
        assert "notes.jpg" in self.refused("train", *words, "--runs", tmp_path)
        skipped = nearkin("train", *words, "data.on_error=skip", "--runs", tmp_path)
        assert skipped.exit_code == 0, skipped.output
        assert "skipped: 1 unreadable" in skipped.stdout
        verified = nearkin("data", "verify", "folder", "--root", root)
        assert verified.exit_code == 1
        assert "notes.jpg" in verified.stdout

    def test_labels_of_another_length(self, tmp_path):
        np.save(tmp_path / "emb.npy", np.ones((3, 2)))
        np.save(tmp_path / "labels.npy", np.arange(4))
        said = self.refused("evaluate", tmp_path / "emb.npy", tmp_path / "labels.npy")
        assert "3" in said
        assert "4" in said

    def test_nan_in_embeddings(self, tmp_path):
        z = np.random.default_rng(0).normal(size=(6, 2))
        z[4, 1] = np.nan
        np.save(tmp_path / "emb.npy", z)
        np.save(tmp_path / "labels.npy", np.arange(6) % 2)
        assert "row (4)" in self.refused("evaluate", tmp_path / "emb.npy", tmp_path / "labels.npy")

    def test_few_classes_propose_within(self, folder, tmp_path):
        root = copy_of(folder, tmp_path)
        for c in range(4, 10):
            shutil.rmtree(root / f"class{c}")
        words = ["train", "dataset=folder", f"root={root}", "train.batch=4", "sampler.per_class=2", "epochs=1"]
        assert "protocol=within" in self.refused(*words, "--runs", tmp_path)
        assert nearkin(*words, "protocol=within", "--runs", tmp_path).exit_code == 0

    def test_no_such_run(self, tmp_path):
        assert "no run 'abc'" in self.refused("runs", "show", "abc", "--runs", tmp_path)

    def test_not_a_word(self):
        assert "is not key=value" in self.refused("train", "loss=triplet", "fast")

    def test_not_a_study(self, tmp_path):
        (tmp_path / "s.yaml").write_text("- 1\n")
        assert "not a mapping" in self.refused("study", tmp_path / "s.yaml")

    def test_in_a_shell_it_is_one_line_and_exit_code_two(self):
        done = subprocess.run([sys.executable, "-m", "nearkin", "train", "dim=0"], capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stdout == ""
        assert len(done.stderr.strip().splitlines()) == 1
        assert done.stderr.startswith("nearkin: model.dim=0")


def test_ctrl_c_says_how_to_go_on(tiny, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("nearkin.train", interrupted)
    done = nearkin("train", *words_of(tiny))
    assert done.exit_code == 130
    assert "the same command goes on" in done.output
