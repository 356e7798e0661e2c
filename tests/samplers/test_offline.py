"""Triplets found over all training images: what is found, when it is looked for, and with which weights."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from oracles.samplers import positive_and_negative
from test_bank import LABELS, embeddings, filled, one_pass

import nearkin
from nearkin.engine import loop
from nearkin.errors import NearkinError
from nearkin.miners import Hard
from nearkin.samplers import Offline

either = pytest.mark.parametrize("tuples", ["semihard", "hard"])


@either
@pytest.mark.parametrize("spread", [0.1, 0.6, 3.0])  # classes far apart: no negative is nearer; mixed: none is farther
def test_triplets_equal_the_loop(tuples, spread):
    sampler = Offline(LABELS, 16, 0, tuples=tuples)
    sampler.fill(embeddings(spread=spread))
    z = sampler.bank.double().numpy()
    for a, p, n in sampler.find(np.arange(60), np.random.default_rng(0)).tolist():
        assert LABELS[p] == LABELS[a]
        assert p != a or LABELS[a] == 5  # one image
        assert (p, n) == positive_and_negative(z, LABELS, a, p, tuples)


def test_of_negatives_that_are_all_nearer_than_the_positive_the_farthest_is_taken():
    labels = np.array([0, 0, 1, 1])
    sampler = Offline(labels, 3, 0)
    sampler.fill(torch.tensor([[1.0, 0], [-1, 0], [1, 0.1], [1, 0.5]]))
    assert sampler.find(np.array([0]), np.random.default_rng(0)).tolist() == [[0, 1, 3]]


def test_random_positives_are_uniform():
    sampler = Offline(LABELS, 16, 0)
    rng = np.random.default_rng(0)
    anchor = int(np.flatnonzero(LABELS == 1)[3])
    drawn = np.bincount(sampler.random_positives(np.full(7000, anchor), rng), minlength=60)
    assert drawn[anchor] == 0
    assert (drawn[LABELS != 1] == 0).all()
    assert abs(drawn[(LABELS == 1) & (np.arange(60) != anchor)] - 1000).max() < 150


@either
@pytest.mark.parametrize("batch", [3, 16, 59, 60])
def test_a_batch_has_no_image_twice_and_begins_with_a_triplet(tuples, batch):
    sampler = filled(Offline, batch, tuples=tuples)
    for rows in one_pass(sampler):
        assert len(set(rows.tolist())) == batch
        a, p, n = rows[:3]
        assert LABELS[a] == LABELS[p] != LABELS[n]


def test_the_hard_miner_finds_in_the_batch_what_was_found_among_all():
    sampler = filled(Offline, tuples="hard")
    rows = sampler.next()
    inside = Hard()(sampler.bank[rows], torch.from_numpy(LABELS[rows]))
    mined = {tuple(rows[list(t)].tolist()) for t in zip(*(x.tolist() for x in inside), strict=True)}
    assert tuple(rows[:3].tolist()) in mined


def test_one_class_and_lone_images_are_refused():
    for labels in (np.zeros(9, int), np.arange(9)):
        with pytest.raises(NearkinError, match="needs two classes, one of them with two images; training has"):
            Offline(labels, 6, 0)


@pytest.mark.parametrize(("every", "when"), [(None, [0, 3, 6]), (1, [*range(8)]), (2, [0, 2, 4, 6]), (5, [0, 5])])
def test_it_says_when_the_images_are_to_be_embedded(every, when):
    """A pass has 3 batches."""
    sampler = Offline(LABELS, 16, 0, every=every)
    wanted = []
    for step in range(8):
        if sampler.due:
            wanted.append(step)
            sampler.fill(embeddings(seed=step))
        assert not sampler.due
        sampler.next()
    assert wanted == when
    bank = filled(Offline, every=every, latest=False)
    assert [bank.due or bank.next() is None for _ in range(8)] == [False] * 8


def test_a_search_within_a_pass_keeps_the_anchors_and_finds_new_triplets():
    fixed, again = filled(Offline), filled(Offline, every=2)
    first = one_pass(fixed)
    batches = []
    for _ in range(3):
        if again.step == 2:
            again.fill(embeddings(seed=9))
        batches.append(again.next())
    assert all((a == b).all() for a, b in zip(first[:2], batches[:2], strict=True))
    assert batches[2][0] == first[2][0]
    assert (batches[2] != first[2]).any()


class Stop(Exception):
    pass


def test_a_run_searches_with_the_latest_weights_and_resumes_to_the_bit(tiny, tmp_path, monkeypatch):
    """Stopped right before a search."""
    monkeypatch.setattr("nearkin.engine.loop.CHECKPOINT_SECONDS", 0)
    words = tiny | {"data.size": 16, "loss": "triplet", "sampler": "offline", "sampler.every": 2, "epochs": 1}
    del words["sampler.per_class"]
    searched, embed = [], loop.embed

    def noted(*given, **settings):
        searched.append(embed(*given, **settings))
        return searched[-1]

    monkeypatch.setattr("nearkin.engine.loop.embed", noted)
    straight = nearkin.train(words, runs=tmp_path / "straight", test=False)
    steps = max(line.get("step", 0) for line in straight.log_lines())
    assert len(searched) == (steps - 1) // 2  # the first one came before the loop
    assert not any(torch.equal(a, b) for a, b in pairwise(searched))

    def watch(entry):
        if entry.get("step") == 2:
            raise Stop

    with pytest.raises(Stop):
        nearkin.train(words, runs=tmp_path / "stopped", watch=watch, test=False)
    resumed = nearkin.train(words, runs=tmp_path / "stopped", test=False)
    one, two = (run.load("model.pt")["model"] for run in (straight, resumed))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert [x["loss"] for x in straight.log_lines() if "step" in x] == [
        x["loss"] for x in resumed.log_lines() if "step" in x
    ]
