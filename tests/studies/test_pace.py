"""What a batch costs, from a few steps: nothing else of a run is computed for it."""

import pytest

from nearkin.config.spec import make_spec
from nearkin.runs import begin, fit
from nearkin.runs.prepare import prepare
from nearkin.runs.store import Store
from nearkin.studies.pace import seconds_per_batch


@pytest.mark.parametrize(
    "words", [{}, {"model.init": "pca"}, {"train.blend": 0.5, "train.average": 0.9}, {"epochs": 0}]
)
def test_steps_are_tried_without_embedding_anything(tiny, tmp_path, monkeypatch, words):
    def refuse(*args, **more):
        raise AssertionError("images are embedded")

    monkeypatch.setattr(fit, "embed", refuse)
    monkeypatch.setattr(begin, "embed", refuse)
    prepared = prepare(make_spec(tiny, words))
    assert seconds_per_batch(prepared.spec, prepared.data_hash, Store(tmp_path)) > 0
