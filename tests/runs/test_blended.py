"""Averaged and blended weights in whole runs: the ends, their names, and exact resuming of every kind of run."""

import json

import pytest
import torch

import nearkin
from nearkin.config.spec import make_spec
from nearkin.engine.precision import trap
from nearkin.errors import NearkinError
from nearkin.runs.prepare import prepare
from nearkin.runs.reproduce import reproduce
from nearkin.runs.run import FIRST
from nearkin.studies.readings import read

MIXED = {"train.average": 0.9, "train.blend": 0.6}


def weights(run):
    return run.load("model.pt")["model"]


def same(a, b):
    return all(torch.equal(a[key], b[key]) for key in a)


@pytest.fixture(scope="module")
def as_ever(tmp_path_factory):
    from tiny import TINY

    return nearkin.train(TINY, runs=tmp_path_factory.mktemp("as_ever"))


def test_off_is_the_run_of_ever_with_its_name_and_its_bits(tiny, tmp_path, as_ever):
    off = nearkin.train(tiny | {"train.average": 0, "train.blend": 1}, runs=tmp_path)
    assert off.hash == as_ever.hash
    assert same(weights(off), weights(as_ever))
    names = {
        prepare(make_spec(tiny | words, {})).hash
        for words in ({}, MIXED, {"train.blend": 0.6}, {"train.blend": "auto"})
    }
    assert len(names) == 4


def test_a_blend_of_0_is_the_network_as_it_began(tiny, tmp_path):
    start = nearkin.train(tiny | {"epochs": 0}, runs=tmp_path)
    back = nearkin.train(tiny | {"train.blend": 0}, runs=tmp_path)
    floats = [name for name, value in weights(start).items() if value.is_floating_point()]
    assert all(torch.equal(weights(start)[name], weights(back)[name]) for name in floats)
    assert back.result["test"] == start.result["test"]


def test_auto_stores_what_validation_likes_best_and_what_it_tried(tiny, tmp_path, as_ever):
    run = nearkin.train(tiny | {"train.blend": "auto"}, runs=tmp_path)
    final = json.loads((run.path / "final.json").read_text())
    scores = {point["a"]: point["map_at_r"] for point in final["blends"]}
    assert scores[final["blend"]] == max(scores.values()) == final["validation"]["map_at_r"]
    assert scores[1.0] == as_ever.result["validation"]["map_at_r"]  # a=1: the run of ever
    assert not (run.path / FIRST).exists()
    assert run.result["validation"] == final["validation"]


def test_auto_without_validation_images_is_refused_before_training(tiny, tmp_path):
    with pytest.raises(NearkinError, match=r"train\.blend=auto chooses on validation images.*0 to 1"):
        nearkin.train(tiny | {"train.blend": "auto", "protocol": "standard"}, runs=tmp_path)
    assert not list(tmp_path.glob("*/log.jsonl"))


KINDS = {
    "batch norm": {},
    "hist": {"loss": "hist"},
    "drml": {"method": "drml", "loss": "margin", "dim": 16},
    "cut": {"model.cut": "block2"},
    "chunks": {"model.freeze_bn": True, "train.chunk": 8},
    "memory": {"loss": "nt_xent", "memory.size": 24, "memory.warmup": 0},
    "bank": {"sampler": "gc"},
    "fp16": {"train.amp": "fp16", "train.device": "cpu", "loss": "multi_similarity", "data.size": 16},
}


@pytest.mark.parametrize("kind", KINDS)
def test_paused_and_resumed_is_never_paused(kind, tiny, tmp_path, monkeypatch):
    words = tiny | KINDS[kind] | MIXED | {"train.blend": "auto"}
    if "train.amp" in words:
        if trap("fp16") is not None:
            pytest.skip("fp16 does not work on this CPU")
        monkeypatch.setattr("nearkin.runs.fit.trap", lambda kind: None)  # it asks for another product in every run
    whole = nearkin.train(words, runs=tmp_path / "whole", test=False)
    nearkin.train(words, runs=tmp_path / "paused", until=1)
    run = nearkin.train(words, runs=tmp_path / "paused", test=False)
    assert same(weights(run), weights(whole))
    assert same(run.load("model.pt")["objective"], whole.load("model.pt")["objective"])
    assert run.read_json("final.json")["blends"] == whole.read_json("final.json")["blends"]


def test_without_its_first_weights_a_begun_run_is_damaged(tiny, tmp_path):
    run = nearkin.train(tiny | MIXED, runs=tmp_path, until=1)
    (run.path / FIRST).unlink()
    with pytest.raises(NearkinError, match=r"first\.pt is missing.*train again"):
        nearkin.train(tiny | MIXED, runs=tmp_path)


def test_it_is_trained_again_to_the_same_bits(tiny, tmp_path):
    run = nearkin.train(tiny | MIXED, runs=tmp_path)
    assert reproduce(run.hash, runs=tmp_path).same_bits


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"train.blend": 1.5}, "train.blend"),
        ({"train.blend": "half"}, "train.blend"),
        ({"train.average": 1}, "train.average"),
        ({"train.average": -0.1}, "train.average"),
    ],
)
def test_what_lies_outside_is_refused(words, reason, tiny):
    with pytest.raises(NearkinError, match=reason):
        make_spec(tiny | words, {})


def test_three_readings_of_one_run(tiny, tmp_path):
    """As trained, averaged and blended: what three runs would give, told by one."""
    words = tiny | {"protocol": "standard", "train.curve": True}
    one = nearkin.train(words | MIXED, runs=tmp_path)
    nearkin.test(one, metrics=["nmi"], runs=tmp_path)  # a further metric joins all points
    for reading, more in (("trained", {}), ("averaged", {"train.average": MIXED["train.average"]}), ("chosen", MIXED)):
        alone = nearkin.train(words | more, runs=tmp_path)
        values = read(one, reading, "map_at_r")
        assert {key: values[key] for key in alone.result["test"]} == alone.result["test"], reading
        assert values["nmi"] == nearkin.test(alone, metrics=["nmi"], runs=tmp_path)["nmi"]
    assert len({read(one, reading, "map_at_r")["map_at_r"] for reading in ("trained", "averaged", "chosen")}) == 3
    (one.path / "curve" / "trained-0001.npy").unlink()
    with pytest.raises(NearkinError, match=r"trained-0001.npy is missing"):
        nearkin.test(one, metrics=["ami"], runs=tmp_path)
