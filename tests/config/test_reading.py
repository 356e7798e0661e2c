"""One meaning, one name: a setting that nothing reads is not part of a run's name, one that is read is."""

import pytest
import torch
from pydantic import BaseModel

import nearkin
from nearkin.config.born import trait_of, tree_in
from nearkin.config.reading import Reading, unread
from nearkin.config.spec import RunSpec, make_spec, stored_spec
from nearkin.data import Augment
from nearkin.models import convnet
from nearkin.runs import defaults
from nearkin.runs.defaults import resolve

PHOTOS = {"dataset": "cub", "root": "anywhere"}
UNTRAINED, TRAINED = {"epochs": 0}, {"epochs": 3}
CUT = {"cut": "block2", "model.freeze_bn": True}
NO_VALIDATION, VALIDATION = {"validates": False}, {"validates": True}

# setting -> a value; words (and what is known of the data) with which nothing reads it; those with which something does
CASES = {
    "data.crop": (48, [UNTRAINED, CUT], [TRAINED]),
    "data.augment": ("resize_crop", [UNTRAINED, CUT | {"model.views": 1}], [TRAINED, CUT | {"model.views": 3}]),
    "data.crop_scale": ([0.3, 0.5], [UNTRAINED, CUT | {"model.views": 1}], [TRAINED, CUT | {"data.flip": False}]),
    "data.crop_ratio": ([0.5, 2], [UNTRAINED, CUT | {"data.flip": True}], [TRAINED, CUT | {"model.views": 3}]),
    "data.flip": (False, [UNTRAINED, CUT | {"model.views": 1}], [TRAINED, CUT]),
    "data.on_error": ("skip", [(TRAINED, {"skips": False})], [(TRAINED, {"skips": True}), TRAINED]),
    "sampler": ("spc", [UNTRAINED], [TRAINED]),
    "loss": ("triplet", [UNTRAINED], [TRAINED]),
    "miner": ("random", [UNTRAINED], [{"loss": "triplet"}]),
    "regulariser": ("norm", [UNTRAINED], [TRAINED]),
    "method": ("drml", [UNTRAINED | {"model.head": "linear"}], [{"model.head": "drml"}]),
    "model.dim": (16, [{"model.head": "none"}], [TRAINED, UNTRAINED, {"epochs": 0, "model.head": "pca"}]),
    "model.init": ("torch", [{"model.head": "none"}, {"model.head": "drml"}], [TRAINED, UNTRAINED]),
    "model.parts": (2, [TRAINED, {"model.head": "none"}], [{"model.head": "drml"}, {"method": "drml"}]),
    "model.freeze_bn": (True, [UNTRAINED, {"cut": "all"}], [TRAINED, {"cut": "block2"}]),
    "model.bn_affine": (False, [UNTRAINED, {"cut": "all"}], [{"model.freeze_bn": True}, CUT]),
    "model.views": (3, [TRAINED, UNTRAINED | CUT], [CUT]),
    "memory.size": (64, [UNTRAINED], [{"loss": "nt_xent"}]),
    "memory.warmup": (3, [TRAINED, UNTRAINED | {"memory.size": 8}], [{"memory.size": 8, "loss": "nt_xent"}]),
    "train.optimiser": ("sgd", [UNTRAINED], [TRAINED]),
    "train.lr": (0.5, [UNTRAINED], [TRAINED]),
    "train.weight_decay": (0.5, [UNTRAINED], [TRAINED]),
    "train.momentum": (
        0.5,
        [TRAINED, {"train.optimiser": "adam"}],
        [{"train.optimiser": "sgd"}, {"train.optimiser": "rmsprop"}],
    ),
    "train.eps": (0.5, [{"train.optimiser": "sgd"}], [TRAINED, {"train.optimiser": "rmsprop"}]),
    "train.batches_per_epoch": (3, [UNTRAINED], [TRAINED]),
    "train.batch": (32, [UNTRAINED], [TRAINED]),
    "train.chunk": (8, [UNTRAINED], [{"model.freeze_bn": True}]),
    "train.schedule": ("cosine", [UNTRAINED], [TRAINED]),
    "train.step": (3, [TRAINED, {"train.schedule": "cosine"}], [{"train.schedule": "step"}]),
    "train.gamma": (0.1, [TRAINED, {"train.schedule": "cosine"}], [{"train.schedule": "step"}]),
    "train.warmup": (
        3,
        [UNTRAINED, TRAINED, {"weights": "imagenet", "backbone": "resnet50", "cut": "all"}],
        [{"weights": "imagenet", "backbone": "resnet50"}, {"train.warmup_counts": False}],
    ),
    "train.warmup_counts": (False, [TRAINED], [{"weights": "imagenet", "backbone": "resnet50", "train.warmup": 2}]),
    "train.clip": (1, [UNTRAINED], [TRAINED]),
    "train.clip_by": ("norm", [TRAINED], [{"train.clip": 1}]),
    "train.average": (0.9, [UNTRAINED], [TRAINED]),
    "train.blend": (0.5, [UNTRAINED], [TRAINED]),
    "train.groups": ({"loss": {"lr": 0.5}}, [UNTRAINED], [TRAINED]),
    "train.groups.head.eps": (0.5, [{"train.optimiser": "sgd"}], [TRAINED]),
    "train.eval_every": (2, [UNTRAINED, (TRAINED, NO_VALIDATION)], [(TRAINED, VALIDATION), TRAINED]),
    "train.patience": (2, [UNTRAINED, (TRAINED, NO_VALIDATION)], [(TRAINED, VALIDATION), TRAINED]),
    "train.select": ("recall@1", [UNTRAINED, (TRAINED, NO_VALIDATION)], [(TRAINED, VALIDATION), TRAINED]),
    "train.amp": (True, [UNTRAINED], [TRAINED]),
}


def both(key, value, case):
    """The resolved spec of a case without the setting, and with it."""
    words, known = case if isinstance(case, tuple) else (case, {})
    plain = PHOTOS | words
    return [resolve(make_spec(each), **known) for each in (plain, plain | {key: value})]


def id_of(case):
    return str(case) if isinstance(case, dict) else f"{case[0]} {case[1]}" if isinstance(case, tuple) else str(case)


def flat(which):
    return [
        pytest.param(key, case[0], each, id=f"{key} {id_of(each)}")
        for key, case in CASES.items()
        for each in case[which]
    ]


def fields(model, prefix=""):
    for name, field in model.model_fields.items():
        inner = tree_in(field.annotation)
        if trait_of(field, "read") is not None:
            yield f"{prefix}{name}"
        elif inner is not None and issubclass(inner, BaseModel):
            yield from fields(inner, f"{prefix}{name}.")


def test_every_setting_that_says_when_it_is_read_is_tried():
    said = {key.replace("train.groups.eps", "train.groups.head.eps") for key in fields(RunSpec)}
    assert said | {"train.groups.head.eps"} == set(CASES)


@pytest.mark.parametrize(("key", "value", "case"), flat(1))
def test_what_nothing_reads_gives_the_same_run(key, value, case):
    without, with_it = both(key, value, case)
    assert without == with_it  # the same settings to the last, so the same result
    assert without.hash("d", "s") == with_it.hash("d", "s")
    assert stored_spec(with_it.whole()).hash("d", "s") == with_it.hash("d", "s")


@pytest.mark.parametrize(("key", "value", "case"), flat(2))
def test_what_is_read_gives_another(key, value, case):
    without, with_it = both(key, value, case)
    assert without.hash("d", "s") != with_it.hash("d", "s")


@pytest.mark.parametrize(
    ("words", "other", "same"),
    [
        ({"train.groups.head.lr": 0.01, "lr": 0.01}, {"lr": 0.01}, True),
        ({"train.groups.head.lr": 1e-3}, {}, True),  # the rate that is filled in
        ({"train.groups.head.lr": 0.02, "lr": 0.01}, {"lr": 0.01}, False),
        ({"train.groups.loss.lr": 0.01, "lr": 0.01}, {"lr": 0.01}, False),  # proxies have a rate of their own
        ({"train.groups.loss.weight_decay": 1e-4}, {}, True),
        ({"train.groups.loss.eps": 1e-8}, {}, True),
        ({"data.flip": True}, {}, True),
        ({"data.flip": False}, {}, False),
        ({"data.crop_scale": "0.08-1"}, {}, True),
        ({"data.crop_scale": "0.16-1"}, {}, False),
        ({"data.crop_ratio": [3 / 4, 4 / 3]}, {}, True),
        ({"data.keep": 32}, {}, True),  # the convnet's own size
        ({"data.keep": 64}, {}, False),
        ({"dataset": "glyphs", "data.flip": True}, {"dataset": "glyphs"}, True),
    ],
    ids=str,
)
def test_a_value_that_null_stands_for_is_null(words, other, same):
    one, two = (resolve(make_spec({"dataset": "cub", **each}), augment=Augment()) for each in (words, other))
    assert (one.hash("d", "s") == two.hash("d", "s")) is same
    assert (one == two) is same


def test_glyphs_do_not_flip_by_themselves():
    one, two = (
        resolve(make_spec(words), augment=Augment(crop_scale=None, flip=False)) for words in ({}, {"data.flip": True})
    )
    assert one.hash("d", "s") != two.hash("d", "s")


def test_one_that_goes_may_be_the_last_reader_of_others():
    words = {"train.warmup": 2, "train.clip_by": "norm", "memory.warmup": 3, "epochs": 0, "memory.size": 9}
    assert resolve(make_spec(words)) == resolve(make_spec({"epochs": 0}))


def test_resolving_twice_changes_nothing():
    for words in ({"epochs": 0, "lr": 5, "dim": 8}, {"model.head": "none", "dim": 7}, {"train.momentum": 0.1}):
        once = resolve(make_spec(words))
        assert resolve(once) == once
        assert resolve(stored_spec(once.whole())) == once


def test_an_open_spec_is_asked_nothing_that_it_cannot_know():
    """The head of method=drml is filled in later: until then its parts may be read."""
    assert "model.parts" not in unread(Reading(make_spec({"method": "drml"})))
    assert make_spec({"method": "drml", "model.parts": 2}).changes()["model.parts"] == 2


NUMBERS = """
from nearkin.losses import PairLoss

class Mine(PairLoss):
    def __init__(self, *, neg_margin=0.5, margins=(1, 2)):
        super().__init__()

    def compute(self, pairs, tuples=None):
        return pairs.d.mean()

class Typed(Mine):
    def __init__(self, *, neg_margin: float = 0.5):
        super().__init__()
"""


@pytest.fixture
def own_loss(tmp_path, monkeypatch):
    (tmp_path / "loss_with_numbers.py").write_text(NUMBERS)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("own_loss")
@pytest.mark.parametrize("name", ["Mine", "Typed"])
def test_2_and_2_0_of_an_own_class_are_the_same(name):
    def hashed(**settings):
        words = {f"loss.{key}": value for key, value in settings.items()}
        return resolve(make_spec({"loss": f"loss_with_numbers.{name}", **words})).hash("d", "s")

    assert hashed(neg_margin=2) == hashed(neg_margin=2.0) != hashed(neg_margin=2.5)
    if name == "Mine":
        assert hashed(margins=[1.0, 3]) == hashed(margins=[1, 3]) != hashed(margins=[1, 2.5])


# -- is it true that nothing reads it? --------------------------------------------------------------------------

TINY = {
    "dataset": "glyphs",
    "data.classes": 12,
    "data.per_class": 8,
    "data.size": 16,
    "backbone": "convnet",
    "dim": 8,
    "train.batch": 8,
    "train.batches_per_epoch": 2,
    "epochs": 2,
    "train.device": "cpu",
}


@pytest.fixture
def as_given(monkeypatch, tmp_path):
    """Nothing is set to its default: what is trained has every value as it was given."""
    monkeypatch.setattr(convnet, "WIDTHS", (4, 8, 8, 16))
    monkeypatch.setattr(convnet.ConvNet, "features", 16)
    monkeypatch.setattr(defaults, "settled", lambda reading: reading.spec)

    def weights(words, folder):
        run = nearkin.train(TINY | words, runs=tmp_path / folder, test=False)
        return run.load("model.pt")

    return weights


@pytest.mark.parametrize(
    "words",
    [
        {
            "train.momentum": 0.3,
            "train.step": 1,
            "train.gamma": 0.1,
            "train.clip_by": "norm",
            "memory.warmup": 0,
            "model.parts": 2,
            "model.views": 5,
            "train.warmup": 1,
            "train.groups.head.lr": 1e-3,
            "train.groups.loss.eps": 1e-8,
        },
        {"train.optimiser": "sgd", "lr": 0.01, "train.eps": 0.5, "train.groups.head.eps": 0.3},
        {"model.head": "none", "dim": 3, "model.init": "torch"},
        {"protocol": "standard", "train.eval_every": 2, "train.patience": 2, "train.select": "nmi"},
        {"cut": "block2", "data.crop": 24, "data.flip": True, "data.crop_scale": "0.3-0.5"},
        {"cut": "all", "model.freeze_bn": True, "model.bn_affine": False, "train.warmup": 1},
        {
            "epochs": 0,
            "lr": 3,
            "train.batch": 4,
            "model.freeze_bn": True,
            "model.bn_affine": False,
            "loss": "triplet",
            "sampler": "balanced",
            "data.crop": 24,
        },
    ],
    ids=lambda words: ",".join(list(words)[:3]),
)
def test_a_run_with_all_idle_settings_has_the_same_bits(as_given, words):
    kept = {
        key: words[key]
        for key in ("train.optimiser", "lr", "model.head", "protocol", "cut", "data.flip", "epochs")
        if key in words and not (key == "lr" and words.get("epochs") == 0)
    }
    one, two = as_given(words, "given"), as_given(kept, "plain")
    assert set(words) > set(kept)
    assert one["model"].keys() == two["model"].keys()
    assert all(torch.equal(value, two["model"][key]) for key, value in one["model"].items())


def test_one_that_is_read_changes_them(as_given):
    words = {"train.optimiser": "sgd", "lr": 0.01}
    one, two = as_given(words, "plain"), as_given(words | {"train.momentum": 0.3}, "given")
    assert any(not torch.equal(value, two["model"][key]) for key, value in one["model"].items())
