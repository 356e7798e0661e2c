"""Batch samplers: every guarantee of their docstrings, over uneven classes."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nearkin.errors import NearkinError
from nearkin.registry import SAMPLERS
from nearkin.samplers import Balanced, Covering, Random

LABELS = np.repeat(np.arange(12), [2, 3, 4, 5, 8, 8, 8, 8, 9, 10, 16, 41])


def one_pass(sampler):
    return [sampler.next() for _ in range(len(sampler))]


def embeddings(number, seed=0, dim=6):
    return torch.randn(number, dim, generator=torch.Generator().manual_seed(seed))


def step(sampler, number):
    """A batch and what training would do with it; the embeddings differ from step to step."""
    batch = sampler.next()
    sampler.update(batch, embeddings(len(batch), 1000 + number))
    return batch


@pytest.mark.parametrize("name", SAMPLERS.names())
class TestEverySampler:
    def make(self, name, seed=0):
        sampler = SAMPLERS[name](LABELS, 16, seed)
        if sampler.needs_bank:
            sampler.fill(embeddings(len(LABELS)))
        return sampler

    def test_batches_have_the_asked_size(self, name):
        for batch in one_pass(self.make(name)):
            assert batch.shape == (16,)
            assert batch.dtype == np.int64
            assert ((batch >= 0) & (batch < len(LABELS))).all()

    def test_the_seed_decides(self, name):
        first, same, other = (one_pass(self.make(name, seed)) for seed in (0, 0, 1))
        assert all((a == b).all() for a, b in zip(first, same, strict=True))
        assert any((a != b).any() for a, b in zip(first, other, strict=False))

    def test_passes_differ(self, name):
        sampler = self.make(name)
        assert any((a != b).any() for a, b in zip(one_pass(sampler), one_pass(sampler), strict=False))

    @pytest.mark.parametrize("stop", [0, 3, 7, 11, 40])
    def test_resumed_equals_never_stopped(self, name, stop, tmp_path):
        straight, stopped, resumed = self.make(name), self.make(name), SAMPLERS[name](LABELS, 16, 0)
        wanted = [step(straight, t) for t in range(50)]
        for t in range(stop):
            step(stopped, t)
        torch.save(stopped.state_dict(), tmp_path / "state.pt")
        resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
        for t in range(stop, 50):
            assert (step(resumed, t) == wanted[t]).all()

    def test_the_length_is_known_before_the_first_batch(self, name):
        sampler = SAMPLERS[name](LABELS, 16, 0)
        passes = len(sampler)
        assert passes == len(LABELS) // 16 or name == "covering"
        assert len(self.make(name).plan(np.random.default_rng(0))) == passes

    def test_a_batch_larger_than_the_data_is_refused(self, name):
        with pytest.raises(NearkinError, match=r"train.batch=500 is larger than the 122 training images"):
            SAMPLERS[name](LABELS, 500, 0)


def test_random_sees_no_image_twice_and_leaves_out_less_than_a_batch():
    seen = np.concatenate(one_pass(Random(LABELS, 16, 0)))
    assert len(seen) == len(set(seen)) > len(LABELS) - 16


@pytest.mark.parametrize("form", [Balanced, Covering])
@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(2, 30), min_size=4, max_size=12),
    per_class=st.sampled_from([2, 3, 4]),
    seed=st.integers(0, 9),
)
def test_balanced_and_covering_keep_their_guarantees(form, sizes, per_class, seed):
    assume(sum(sizes) >= 4 * per_class)  # a batch is no larger than the data
    labels = np.repeat(np.arange(len(sizes)) * 7, sizes)  # labels need not be 0..C-1
    batches = one_pass(form(labels, 4 * per_class, seed, per_class=per_class))
    for batch in batches:
        classes, counts = np.unique(labels[batch], return_counts=True)
        assert len(classes) == 4
        assert (counts == per_class).all()
        for c in classes:
            size = (labels == c).sum()
            times = np.unique(batch[labels[batch] == c], return_counts=True)[1]
            assert len(times) == min(per_class, size)  # different while the class has enough
            assert times.max() == -(-per_class // size)  # and repeated as little as can be
    if form is Covering:
        assert set(np.concatenate(batches)) == set(range(len(labels)))
        groups = [-(-size // per_class) for size in sizes]
        assert len(batches) == max(-(-sum(groups) // 4), max(groups))
    else:
        assert len(batches) == len(labels) // (4 * per_class)


def test_balanced_draws_the_classes_of_every_batch_at_random():
    """Whatever their size, at the beginning of a pass as at its end: 4,000 batches of 4 of 12 classes."""
    first, last = np.zeros(12), np.zeros(12)
    for seed in range(4000):
        batches = one_pass(Balanced(LABELS, 16, seed))
        first[LABELS[batches[0][::4]]] += 1
        last[LABELS[batches[-1][::4]]] += 1
    for seen in (first, last):
        assert seen.sum() == 4 * 4000
        assert abs(seen - 4000 / 3).max() < 4 * np.sqrt(4000 * 1 / 3 * 2 / 3)


def test_balanced_draws_the_images_of_a_class_uniformly():
    times = np.zeros(len(LABELS))
    for seed in range(3000):
        for batch in one_pass(Balanced(LABELS, 16, seed)):
            times[batch] += 1
    for c, size in enumerate(np.bincount(LABELS)):
        if size >= 4:
            own = times[np.isin(LABELS, c)]
            assert abs(own - own.mean()).max() < 5 * np.sqrt(own.mean())


def test_covering_begins_with_the_largest_classes_and_balanced_does_not():
    labels = np.repeat(np.arange(60), [40] * 4 + [2] * 56)
    covering, balanced = (one_pass(form(labels, 8, 0, per_class=2)) for form in (Covering, Balanced))
    assert all(set(labels[batch]) == {0, 1, 2, 3} for batch in covering[:19])
    assert not any(set(labels[batch]) == {0, 1, 2, 3} for batch in balanced)
    assert len(covering) >= len(balanced) == len(labels) // 8


@pytest.mark.parametrize(
    ("labels", "batch", "per_class", "said"),
    [
        (LABELS, 18, 4, "not divisible by sampler.per_class=4; the nearest are 16 and 20"),
        (LABELS, 64, 4, "needs 16 classes, training has 12; the largest batch is 48"),
        (np.array([0, 0, 1, 1, 2]), 4, 2, "have one image, balanced batches need two"),
    ],
)
@pytest.mark.parametrize("form", [Balanced, Covering])
def test_balanced_and_covering_refuse_what_they_cannot_do(form, labels, batch, per_class, said):
    with pytest.raises(NearkinError, match=said):
        form(labels, batch, 0, per_class=per_class)
