"""Preparing many runs of the same data: what they share is read, divided, checked and hashed once."""

import os
from collections import Counter
from functools import wraps

import numpy as np
import pytest
import torch
from PIL import Image

from nearkin.config import identity
from nearkin.config.spec import make_spec
from nearkin.data import hashing
from nearkin.errors import NearkinError
from nearkin.models.build import create_backbone
from nearkin.protocols.folds import KFold
from nearkin.runs import data as data_module
from nearkin.runs import seen
from nearkin.runs.prepare import prepare
from nearkin.samplers import Balanced


@pytest.fixture
def words(tmp_path):
    """A run on a folder of 48 images in 12 classes, which begins with a file of weights."""
    for label in range(12):
        for i in range(4):
            path = tmp_path / "images" / f"class{label:02d}" / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (20 * label, 60 * i, 0)).save(path)
    torch.save(create_backbone("convnet").network.state_dict(), tmp_path / "weights.pt")
    return {
        "dataset": "folder",
        "root": str(tmp_path / "images"),
        "backbone": "convnet",
        "epochs": 1,
        "data.size": 8,
        "weights": str(tmp_path / "weights.pt"),
        "train.batch": 4,
        "sampler.per_class": 2,
        "protocol": "kfold",
        "protocol.folds": 3,
    }


@pytest.fixture
def calls(monkeypatch):
    """How often each of the costly functions is called."""
    counted = Counter()

    def count(place, name):
        function = getattr(place, name)

        @wraps(function)  # a sampler's signature says its hyper-parameters
        def counting(*positional, **named):
            counted[name] += 1
            return function(*positional, **named)

        monkeypatch.setattr(place, name, counting)

    count(data_module, "load_table")
    count(data_module, "data_hash")
    count(hashing, "fingerprint")
    count(KFold, "split")
    count(seen, "read")
    count(identity.hashlib, "file_digest")
    count(Balanced, "__init__")
    return counted


def test_a_further_run_of_the_same_data_costs_none_of_it(words, calls):
    known = {}
    runs = [prepare(make_spec(words, {"loss": "contrastive", "seed": 0}), known)]
    names = {runs[0].hash}
    first = Counter(calls)
    assert all(first[name] for name in ("load_table", "data_hash", "fingerprint", "split", "read", "file_digest"))
    for loss in ("contrastive", "triplet", "margin"):
        for seed in (1, 2):
            for dim in (8, 16):
                runs.append(prepare(make_spec(words, {"loss": loss, "seed": seed, "dim": dim}), known))
                names.add(runs[-1].hash)
    assert len(names) == len(runs)
    assert calls == first


def test_they_share_their_arrays(words):
    known = {}
    one, two = (prepare(make_spec(words, {"seed": seed}), known) for seed in (0, 1))
    assert one.split is two.split
    assert one.labels is two.labels
    assert one.val_labels is two.val_labels
    assert one.pixels.images is two.pixels.images
    assert one.seen[0] is two.seen[0]
    glyphs = {"dataset": "glyphs", "data.classes": 12, "data.per_class": 6, "backbone": "convnet", "train.batch": 8}
    drawn = [prepare(make_spec(glyphs, {"seed": seed}), known) for seed in (0, 1)]
    assert drawn[0].pixels.images is drawn[1].pixels.images


def test_other_crops_are_cut_from_the_same_data_and_other_folds_are_other_rows(words, calls):
    known = {}
    plain = prepare(make_spec(words), known)
    first = Counter(calls)
    for more in ({"data.flip": False}, {"data.crop": 8}, {"epochs": 0}):
        assert prepare(make_spec(words, more), known).split is plain.split
    assert not prepare(make_spec(words, {"data.flip": False}), known).pixels.augment.flip
    other = prepare(make_spec(words, {"protocol.fold": 1}), known)
    assert calls - first == {"split": 1, "__init__": 1}
    assert other.split.hash() != plain.split.hash()
    assert other.seen[0]["rows"].tolist() == np.concatenate([other.split.train, other.split.val]).tolist()


def test_a_file_of_weights_that_changes_is_another_run(words, tmp_path):
    known, weights, names = {}, tmp_path / "weights.pt", []
    state = torch.load(weights)
    for shift in (1, 2):
        torch.save({name: value + shift for name, value in state.items()}, weights)
        os.utime(weights, ns=(0, 0))
        names.append(prepare(make_spec(words), known).hash)
    assert names[0] != names[1]


def test_what_is_refused_once_is_refused_again(words):
    known = {}
    prepare(make_spec(words), known)
    for _ in range(2):
        with pytest.raises(NearkinError, match=r"train\.batch=300"):
            prepare(make_spec(words, {"train.batch": 300}), known)
