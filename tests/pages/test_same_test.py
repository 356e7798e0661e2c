"""The page of a run shows an untrained network beside it only where both were tested on the same images."""

import json

import pytest
from pages.stored import write_run

from nearkin.comparison.gather import Member
from nearkin.pages._twins import twins_of
from nearkin.runs.store import Store


@pytest.mark.parametrize(
    ("split", "twins"),
    [
        ({"query": [1, 2, 3], "gallery": None}, 1),
        ({"query": [1, 2, 4], "gallery": None}, 0),
        ({"query": [1, 2, 3], "gallery": [5]}, 0),
        ({}, 0),
    ],
    ids=str,
)
def test_an_untrained_network_on_other_test_images_is_no_twin(tmp_path, split, twins):
    mine = write_run(tmp_path, {"loss": "margin"}, 0.6, fold=0)
    plain = write_run(tmp_path, {"epochs": 0}, 0.3, fold=1)  # of another fold: the splits have other hashes
    (tmp_path / mine / "split.json").write_text(json.dumps({"train": [0], "query": [1, 2, 3], "gallery": None}))
    (tmp_path / plain / "split.json").write_text(json.dumps({"train": [9]} | split))
    store = Store(tmp_path)
    assert len(twins_of(Member({}, 0, None, store.run(mine)), store)) == twins
