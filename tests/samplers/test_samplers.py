"""Batch samplers: every guarantee of their docstrings, over uneven classes."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nearkin.errors import NearkinError
from nearkin.registry import SAMPLERS
from nearkin.samplers import Balanced, Random

LABELS = np.repeat(np.arange(12), [2, 3, 4, 5, 8, 8, 8, 8, 9, 10, 16, 41])


def one_pass(sampler):
    return [sampler.next() for _ in range(len(sampler))]


@pytest.mark.parametrize("name", SAMPLERS.names())
class TestEverySampler:
    def make(self, name, seed=0):
        return SAMPLERS[name](LABELS, 16, seed)

    def test_batches_have_the_asked_size(self, name):
        assert all(len(batch) == 16 for batch in one_pass(self.make(name)))

    def test_the_seed_decides(self, name):
        first, same, other = (one_pass(self.make(name, seed)) for seed in (0, 0, 1))
        assert all((a == b).all() for a, b in zip(first, same, strict=True))
        assert any((a != b).any() for a, b in zip(first, other, strict=False))

    def test_passes_differ(self, name):
        sampler = self.make(name)
        assert any((a != b).any() for a, b in zip(one_pass(sampler), one_pass(sampler), strict=False))

    @pytest.mark.parametrize("stop", [0, 3, 11, 40])
    def test_resumed_equals_never_stopped(self, name, stop):
        straight, stopped, resumed = (self.make(name) for _ in range(3))
        wanted = [straight.next() for _ in range(50)]
        for _ in range(stop):
            stopped.next()
        resumed.load_state_dict(stopped.state_dict())
        for batch in wanted[stop:]:
            assert (resumed.next() == batch).all()

    def test_a_batch_larger_than_the_data_is_refused(self, name):
        with pytest.raises(NearkinError, match=r"train.batch=500 is larger than the 122 training images"):
            SAMPLERS[name](LABELS, 500, 0)


def test_random_sees_no_image_twice_and_leaves_out_less_than_a_batch():
    seen = np.concatenate(one_pass(Random(LABELS, 16, 0)))
    assert len(seen) == len(set(seen)) > len(LABELS) - 16


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(2, 30), min_size=4, max_size=12), per_class=st.sampled_from([2, 3, 4]),
       seed=st.integers(0, 9))  # fmt: skip
def test_balanced_keeps_its_guarantees(sizes, per_class, seed):
    assume(sum(sizes) >= 4 * per_class)                             # a batch is no larger than the data
    labels = np.repeat(np.arange(len(sizes)) * 7, sizes)            # labels need not be 0..C-1
    sampler = Balanced(labels, 4 * per_class, seed, per_class=per_class)
    batches = one_pass(sampler)
    for batch in batches:
        classes, counts = np.unique(labels[batch], return_counts=True)
        assert len(classes) == 4
        assert (counts == per_class).all()
        for c in classes:
            rows = batch[labels[batch] == c]
            size = (labels == c).sum()
            assert len(set(rows)) == min(per_class, size)           # distinct while the class has enough
    assert set(np.concatenate(batches)) == set(range(len(labels)))
    groups = [-(-size // per_class) for size in sizes]
    assert len(batches) == max(-(-sum(groups) // 4), max(groups))


@pytest.mark.parametrize(
    ("labels", "batch", "per_class", "said"),
    [
        (LABELS, 18, 4, "not divisible by sampler.per_class=4; the nearest are 16 and 20"),
        (LABELS, 64, 4, "needs 16 classes, training has 12; the largest batch is 48"),
        (np.array([0, 0, 1, 1, 2]), 4, 2, "have one image, balanced batches need two"),
    ],
)
def test_balanced_refuses_what_it_cannot_do(labels, batch, per_class, said):
    with pytest.raises(NearkinError, match=said):
        Balanced(labels, batch, 0, per_class=per_class)
