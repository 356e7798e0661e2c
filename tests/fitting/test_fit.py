"""`nearkin.fit` from a folder to a model: its folds, its verdict, what is stored, and that it goes on after a kill."""

import os
import signal

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from stores import beside

import nearkin
from nearkin.errors import NearkinError
from nearkin.fitting.fit import Fitting
from nearkin.runs.store import Store
from nearkin.runs.tested import TestSet

QUICK = {
    "dataset": "glyphs",
    "data.classes": 8,
    "data.per_class": 8,
    "backbone": "convnet",
    "dim": 8,
    "epochs": 1,
    "train.batch": 16,
    "sampler.per_class": 4,
}


def quiet(line):
    pass


def fit(words, runs, **more):
    return nearkin.fit(words, runs=runs, workers=1, say=quiet, losses=["contrastive"], **more)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    return fit(QUICK, tmp_path_factory.mktemp("fitted"))


def test_every_class_is_tested_once_by_both_networks(fitted):
    for runs in (fitted.untrained, fitted.method.runs):
        tables = [pq.read_table(run.path / "test.parquet", columns=["class"]) for run in runs]
        classes = [name for table in tables for name in set(table["class"].to_pylist())]
        assert len(classes) == len(set(classes)) == 8


def test_the_model_has_all_classes_or_is_the_untrained_network(fitted):
    assert fitted.run.final
    assert not fitted.run.testable
    stored = fitted.run.stored
    assert stored["protocol"]["name"] == "all"
    assert (stored["train"]["epochs"] > 0) == fitted.helps
    estimate = fitted.run.read_json("estimate.json")
    assert estimate["verdict"] == fitted.verdict
    assert set(estimate["folds"]) == {run.hash for run in fitted.chosen}
    assert fitted.verdict in str(fitted)
    assert len(nearkin.embed(fitted.run, np.zeros((2, 32, 32, 3), np.uint8))) == 2
    for refused in (nearkin.test, lambda run: nearkin.compare(run.hash, runs=fitted.store.root), TestSet.of):
        with pytest.raises(NearkinError, match="trained on all classes"):
            refused(fitted.run)
    assert fitted.verdict in str(fitted.run)


def test_the_same_call_trains_nothing(fitted):
    said = []
    again = nearkin.fit(QUICK, runs=fitted.store.root, workers=1, say=said.append, losses=["contrastive"])
    assert again.run.hash == fitted.run.hash
    assert again.verdict == fitted.verdict
    assert not any("steps" in line for line in said)


def killed(runs, at):
    """What became of a fit beside this process that is killed when it keeps its state the `at`-th time."""
    return os.waitstatus_to_exitcode(os.waitpid(beside(lambda: fit_and_die(runs, at)), 0)[1])


def fit_and_die(runs, at):
    keep, kept = Fitting._keep, []

    def counted(self):
        keep(self)
        kept.append(1)
        if len(kept) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    Fitting._keep = counted
    fit(QUICK, runs)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_killed_it_ends_with_the_same_model(fitted, tmp_path):
    runs = tmp_path / "runs"
    for at in (1, 2):  # when the plan is stored, when the folds are over
        assert killed(runs, at) == -signal.SIGKILL
    run = fit(QUICK, runs).run
    assert run.hash == fitted.run.hash
    one, other = (which.load("model.pt")["model"] for which in (run, fitted.run))
    assert all(torch.equal(one[key], other[key]) for key in one)


def folder(root, classes, images, side=40):
    rng = np.random.default_rng(0)
    for number in range(classes):
        (root / f"class{number}").mkdir(parents=True)
        for i in range(images):
            pixels = rng.integers(0, 256, (side, side, 3), np.uint8)
            Image.fromarray(pixels).save(root / f"class{number}" / f"{i}.png")
    return root


SMALL = {"backbone": "convnet", "data.size": 32}


@pytest.mark.parametrize(
    ("classes", "images", "words"),
    [
        (1, 4, "1 class: too few"),
        (3, 4, "3 classes: too few"),
        (2, 2, "2 classes: too few"),
        (6, 1, "6 classes, 6 of them with one image: too few"),
    ],
)
def test_a_small_folder_is_told_what_is_possible(classes, images, words, tmp_path):
    root = folder(tmp_path / "images", classes, images)
    made = nearkin.fit(root, runs=tmp_path / "runs", workers=1, say=quiet, minutes=0.01, **SMALL)
    assert words in made.verdict
    assert not made.helps
    assert len(nearkin.embed(made.run, root)) == classes * images


def test_classes_of_one_image_train_and_are_not_tested(tmp_path):
    """Batches are random then: balanced ones, which contrastive has by default, need two images of a class."""
    root, said = folder(tmp_path / "images", 7, 3), []
    folder(tmp_path / "more", 1, 1)
    (tmp_path / "more" / "class0").rename(root / "lone")
    words = {**SMALL, "epochs": 1, "dim": 8, "losses": ["contrastive"]}
    made = nearkin.fit(root, runs=tmp_path / "runs", workers=1, say=said.append, **words)
    assert "1 class has one image: they train, and are not tested" in said
    assert [method.error for method in made.methods] == [None]
    assert {run.stored["sampler"]["name"] for run in made.method.runs} == {"random"}
    sides = made.by_class(made.chosen, "map_at_r"), made.by_class(made.untrained, "map_at_r")
    assert all(set(side.classes) == {f"class{number}" for number in range(7)} for side in sides)


def test_an_image_that_cannot_be_read_is_named(tmp_path):
    root = folder(tmp_path / "images", 6, 2)
    (root / "class3" / "1.png").write_bytes(b"no image")
    with pytest.raises(NearkinError, match=r"class3.1\.png.*on_error"):
        nearkin.fit(root, runs=tmp_path / "runs", workers=1, say=quiet, **SMALL)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"minutes": 0}, "minutes=0: above 0"),
        ({"loss": "triplet"}, "fit decides this itself.*losses"),
        ({"protocol": "kfold"}, "protocol.name=kfold: fit decides this itself"),
        ({"losses": ["tripplet"]}, "tripplet.*triplet"),
    ],
)
def test_what_it_decides_itself_is_refused(words, reason, tmp_path):
    with pytest.raises(NearkinError, match=reason):
        nearkin.fit(QUICK, **{"runs": tmp_path, "workers": 1, "say": quiet, **words})


def test_a_misspelt_loss_is_named_before_anything_is_trained(tmp_path):
    with pytest.raises(NearkinError, match="did you mean margin"):
        nearkin.fit(QUICK, runs=tmp_path, workers=1, say=quiet, losses=["contrastive", "margn"])
    assert not list(tmp_path.iterdir())


def test_where_training_harms_the_model_is_the_network_without_it(tmp_path):
    """Weights that know these letters, and a learning rate that ruins them within an epoch."""
    taught = nearkin.train({**QUICK, "protocol": "all", "epochs": 4}, runs=tmp_path, test=False, watch=quiet)
    torch.save(nearkin.load(taught).model.backbone.state_dict(), tmp_path / "letters.pt")
    made = fit({**QUICK, "weights": str(tmp_path / "letters.pt"), "lr": 1.0}, tmp_path / "runs")
    assert made.gain(made.chosen, "map_at_r").high < 0
    assert not made.helps
    assert "Training does not help here: take the pretrained network" in made.verdict
    assert made.run.stored["train"]["epochs"] == 0
    images = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), np.uint8)
    first, last = (nearkin.embed(run, images) for run in (made.untrained[0], made.run))
    assert np.array_equal(first, last)


def test_too_little_time_gives_the_untrained_network(tmp_path):
    made = nearkin.fit(QUICK, minutes=0.001, runs=tmp_path, workers=1, say=quiet)
    assert "no time to train" in made.verdict
    assert made.run.stored["train"]["epochs"] == 0
    assert Store(tmp_path).runs()


def test_the_table_says_who_is_tied_with_the_first(tmp_path):
    made = nearkin.fit(QUICK, losses=["contrastive", "triplet"], runs=tmp_path, workers=1, say=quiet)
    rows = {row["network"]: row["tied"] for row in made.tables[0]}
    assert next(iter(rows)) == made.method.name
    assert rows[made.method.name] is None
    assert set(rows) == {"contrastive", "triplet", "without training"}
    assert {word for name, word in rows.items() if name != made.method.name} <= {"tied", "better", "worse"}
