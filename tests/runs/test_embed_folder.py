"""`nearkin embed RUN FOLDER`: classes as `dataset=folder` reads them, and which images the run was trained on."""

import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.evaluation.readers import evaluate_files
from nearkin.runs.embed_folder import labels_of, trained_on
from nearkin.runs.store import Run

WORDS = {"dataset": "folder", "data.size": 16, "data.crop": 16, "data.resize": 16, "backbone": "convnet", "dim": 8}
TRAINED = WORDS | {"train.batch": 8, "sampler.per_class": 2, "epochs": 1, "train.batches_per_epoch": 2}


def save(path, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (20, 20, 3), dtype=np.uint8)).save(path)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Twelve classes of six images, two folders deep."""
    root = tmp_path_factory.mktemp("shop") / "x"
    for c in range(12):
        for i in range(6):
            save(root / "AB"[c % 2] / f"c{c:02d}" / f"{i}.png", 6 * c + i)
    return root


@pytest.fixture(scope="module")
def run(images, tmp_path_factory):
    return nearkin.train(TRAINED | {"root": str(images)}, runs=tmp_path_factory.mktemp("runs"))


def embedded(run, images, output, *words):
    done = CliRunner().invoke(
        app, ["embed", run.hash, str(images), "-o", str(output), "--runs", str(run.path.parent), *map(str, words)]
    )
    assert done.exit_code == 0, (done.output, done.exception)
    with np.load(output) as file:
        return {name: file[name] for name in file.files}, done.stdout


def test_the_honest_number_is_that_of_the_test(run, images, tmp_path):
    told, said = embedded(run, images, tmp_path / "emb.npz")
    split = run.read_json("split.json")
    assert told["trained"].sum() == len(split["train"]) + len(split["val"]) > 0
    assert str(told["run"]) == run.hash
    assert set(told["labels"]) == {f"c{c:02d}" for c in range(12)}
    assert f"was trained on {told['trained'].sum()} of them; nearkin evaluate leaves these out" in said
    result = evaluate_files(tmp_path / "emb.npz")
    assert result.n == len(told["trained"]) - told["trained"].sum() == run.result["test_n"]
    for metric, value in result.metrics.items():
        assert value == pytest.approx(run.result["test"][metric], abs=1e-6)
    assert evaluate_files(tmp_path / "emb.npz", include_trained=True).n == 72


def test_images_are_known_by_their_content(run, images, tmp_path):
    told, _ = embedded(run, images, tmp_path / "emb.npz")
    learnt = [path for path, trained in zip(told["paths"], told["trained"], strict=True) if trained]
    (tmp_path / "new").mkdir()
    shutil.copy(learnt[0], tmp_path / "new" / "renamed.png")
    save(tmp_path / "new" / "other.png", 999)
    again, said = embedded(run, tmp_path / "new", tmp_path / "again.npz")
    assert again["trained"].tolist() == [False, True]
    assert "labels" not in again
    assert "without labels: " in said
    assert "no class folder" in said


def test_an_untrained_run_knows_no_image(images, tmp_path):
    run = nearkin.train(WORDS | {"root": str(images), "epochs": 0}, runs=tmp_path / "runs", test=False)
    told, said = embedded(run, images, tmp_path / "emb.npz")
    assert not told["trained"].any()
    assert "was trained on" not in said
    assert evaluate_files(tmp_path / "emb.npz").n == 72


def test_a_run_without_records(run, images, tmp_path):
    """An older nearkin stored no contents of images: what is not known is not said to be untrained."""
    copy = Run(shutil.copytree(run.path, tmp_path / "runs" / run.hash))
    state = torch.load(copy.path / "model.pt", weights_only=True)
    for record in state["seen"]:
        del record["images"]
    torch.save(state, copy.path / "model.pt")
    (copy.path / "files.json").unlink()
    assert trained_on(copy, list(images.rglob("*.png"))) is None
    told, said = embedded(copy, images, tmp_path / "emb.npz")
    assert "trained" not in told
    assert "which of the images it was trained on is not known" in said.replace("\n", " ")


def test_which_folders_are_classes(run, images, tmp_path):
    told, _ = embedded(run, images, tmp_path / "emb.npz", "--classes-from", "top")
    assert set(told["labels"]) == {"A", "B"}
    mixed = shutil.copytree(images, tmp_path / "mixed")
    save(mixed / "A" / "loose.png", 500)
    told, said = embedded(run, mixed, tmp_path / "emb.npz")
    assert set(told["labels"]) == {"A", "B"}
    assert "--classes-from leaf makes 13" in said
    told, said = embedded(run, mixed, tmp_path / "emb.npz", "--classes-from", "leaf")
    assert len(set(told["labels"])) == 13
    assert "--classes-from" not in said
    refused = CliRunner().invoke(
        app, ["embed", run.hash, str(mixed), "--classes-from", "deep", "--runs", str(run.path.parent)]
    )
    assert str(refused.exception).startswith("data.classes_from=deep: choices: leaf, top, depth:N")


def test_labels_of_splits_and_of_loose_images(images, tmp_path):
    for split in ("train", "test"):
        shutil.copytree(images, tmp_path / "x" / split)
    paths = sorted((tmp_path / "x").rglob("*.png"))
    labels, notes = labels_of(tmp_path / "x", paths, None)
    assert (len(set(labels)), notes) == (12, [])
    save(tmp_path / "x" / "train" / "loose.png", 1)
    (tmp_path / "x" / "readme.txt").touch()
    labels, notes = labels_of(tmp_path / "x", [tmp_path / "x" / "train" / "loose.png", *paths], None)
    assert labels is None
    assert notes == [
        "without labels: 1 image of 145 in no class folder (loose.png)",
        "not read: 1 .txt file (readme.txt)",
    ]
    assert labels_of(paths[0], paths[:1], None) == (None, [])
