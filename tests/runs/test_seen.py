"""Weights of a run as the start of another, and what they have seen: nothing that the other run tests."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import nearkin
from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError
from nearkin.runs.prepare import prepare
from nearkin.runs.seen import seen_by


def pictures(root, seed):
    """Twelve classes of six pictures each; half of the classes are tested, which half says protocol.seed."""
    rng = np.random.default_rng(seed)
    for c in range(12):
        (root / f"class{c:02d}").mkdir(parents=True)
        for i in range(6):
            Image.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(root / f"class{c:02d}" / f"{i}.png")
    return str(root)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Words, and a run that was trained with them."""
    words = {
        "dataset": "folder",
        "root": pictures(tmp_path_factory.mktemp("data") / "a", 0),
        "dim": 8,
        "train.batch": 8,
        "sampler.per_class": 2,
        "epochs": 1,
    }
    return words, nearkin.train(words, runs=tmp_path_factory.mktemp("runs"))


def refusal(words, path):
    with pytest.raises(NearkinError) as error:
        prepare(make_spec(words | {"weights": str(path)}))
    assert "\n" not in str(error.value)
    return str(error.value)


def forget(run, tmp_path):
    """The run as an older nearkin stored it."""
    folder = tmp_path / run.hash
    folder.mkdir()
    for name in ("spec.yaml", "split.json"):
        (folder / name).write_bytes((run.path / name).read_bytes())
    torch.save({k: v for k, v in run.load("model.pt").items() if k != "seen"}, folder / "model.pt")
    return folder / "model.pt"


def test_a_run_goes_on_from_the_backbone_of_another(trained, tmp_path):
    words, run = trained
    given = run.load("model.pt")["model"]
    start = nearkin.train(
        words | {"weights": str(run.path / "model.pt"), "epochs": 0, "model.freeze_bn": False, "model.pool": "avg"},
        runs=tmp_path,
    )
    state = start.load("model.pt")["model"]
    backbone = [k for k in given if k.startswith("backbone.")]
    assert backbone
    assert all(torch.equal(given[k], state[k]) for k in backbone)
    assert not torch.equal(given["head.weight"], state["head.weight"])  # the head begins anew
    with pytest.raises(NearkinError, match=r"is the folder of a run; its weights are .*model.pt"):
        prepare(make_spec(words | {"weights": str(run.path)}))


def test_the_record_of_a_run(trained):
    run = trained[1]
    split = run.read_json("split.json")
    (record,) = run.load("model.pt")["seen"]
    assert (record["run"], record["data"], record["data_hash"]) == (run.hash, "folder", run.head()["data_hash"])
    assert record["rows"].tolist() == [*split["train"], *split["val"]]
    assert len(record["classes"]) == 6  # half of 12; hashes, not names
    assert not any("class" in name for name in record["classes"])


@pytest.mark.parametrize("how", ["as it is", "copied", "older"])
def test_test_images_and_classes_that_the_weights_have_seen(trained, tmp_path, how):
    words, run = trained
    path = {"as it is": run.path / "model.pt", "copied": tmp_path / "net.pt"}.get(how) or forget(run, tmp_path)
    if how == "copied":
        path.write_bytes((run.path / "model.pt").read_bytes())
    prepare(make_spec(words | {"weights": str(path)}))  # the same division: nothing of its test was seen
    message = refusal(words | {"protocol.seed": 1}, path)
    mine, theirs = (prepare(make_spec(words | {"protocol.seed": seed})).split for seed in (0, 1))
    images = len({*mine.train, *mine.val} & set(theirs.test.images))
    assert 0 < images < len(theirs.test.images)
    assert f"run {run.hash} learned from {images} of the {len(theirs.test.images)} images" in message
    assert f"and {images // 6} of the 6 classes (such as 'class" in message
    assert str(path) in message


def test_classes_by_name_where_the_data_differ(trained, tmp_path):
    """Other pictures of the same classes."""
    words, run = trained
    words = words | {"root": pictures(tmp_path / "b", 1)}
    message = refusal(words | {"protocol.seed": 1}, run.path / "model.pt")
    assert "learned from 0 of the 36 images and" in message
    prepare(make_spec(words | {"weights": str(run.path / "model.pt")}))
    prepare(make_spec(words | {"protocol.seed": 1, "weights": str(forget(run, tmp_path))}))  # it names no classes
    prepare(
        make_spec({"dataset": "glyphs", "data.classes": 24, "data.per_class": 8, "weights": str(run.path / "model.pt")})
    )  # another data set


def test_known_classes_are_right_within_but_known_images_are_not(trained, tmp_path):
    words = trained[0] | {"protocol": "within"}
    first = nearkin.train(words, runs=tmp_path, test=False)
    prepare(make_spec(words | {"weights": str(first.path / "model.pt")}))
    message = refusal(words | {"protocol.seed": 1}, first.path / "model.pt")
    assert "and 0 of the 12 classes that this run tests" in message


def test_records_are_handed_on(trained, tmp_path):
    """Weights of a run that began with weights of a run."""
    words, run = trained
    second = nearkin.train(words | {"weights": str(run.path / "model.pt"), "seed": 1}, runs=tmp_path, test=False)
    seen = seen_by(str(second.path / "model.pt"))
    assert [record["run"] for record in seen] == [second.hash, run.hash]
    untrained = nearkin.train(words | {"weights": str(run.path / "model.pt"), "epochs": 0}, runs=tmp_path, test=False)
    assert [record["run"] for record in seen_by(str(untrained.path / "model.pt"))] == [run.hash]
    nothing = nearkin.train(words | {"epochs": 0}, runs=tmp_path, test=False)
    assert seen_by(str(nothing.path / "model.pt")) == ()
    (tmp_path / "old").mkdir()
    assert seen_by(str(forget(nothing, tmp_path / "old"))) == ()
    assert len(seen_by(str(forget(run, tmp_path / "old")))) == 1


def test_files_that_are_of_no_run(trained, tmp_path):
    state = {k.removeprefix("backbone."): v for k, v in trained[1].load("model.pt")["model"].items()}
    torch.save(state, tmp_path / "plain.pth")
    assert seen_by(str(tmp_path / "plain.pth")) == seen_by(None) == seen_by("imagenet") == ()


def test_images_are_known_again_by_their_content(trained, tmp_path):
    """Known classes, one image less: another data hash, and yet most test images were trained on."""
    words, _ = trained
    within = words | {"protocol": "within"}
    first = sorted((Path(words["root"]) / "class00").iterdir())[0]
    (tmp_path / "without.txt").write_text(f"class00/{first.name}\n")
    run = nearkin.train(within | {"data.exclude": str(tmp_path / "without.txt")}, runs=tmp_path, test=False)
    assert "learned from" in refusal(within | {"protocol.seed": 1}, run.path / "model.pt")
    copies = tmp_path / "other"
    shutil.copytree(words["root"], copies)
    (copies / "class00").rename(copies / "renamed")
    renamed = within | {"root": str(copies), "protocol.seed": 1}
    assert "learned from" in refusal(renamed, run.path / "model.pt")
