"""spc and spc_r: what they guarantee, and that the rest is drawn with replacement and uniformly."""

import numpy as np
import pytest

from nearkin.errors import NearkinError
from nearkin.samplers import SPC, SPCR

LABELS = np.repeat([5, 0, 9, 2], [1, 2, 7, 50])  # labels need be neither sorted nor 0..C-1


def batches(sampler, number):
    return [sampler.next() for _ in range(number)]


@pytest.mark.parametrize("per_class", [1, 2, 4])
def test_spc_groups_are_of_one_class(per_class):
    for batch in batches(SPC(LABELS, 8, 0, per_class=per_class), 50):
        groups = LABELS[batch].reshape(-1, per_class)
        assert (groups == groups[:, :1]).all()


def test_spc_classes_and_images_are_uniform_and_with_replacement():
    drawn = np.stack(batches(SPC(LABELS, 8, 0), 2000)).reshape(-1, 2)  # 8000 pairs
    for c, size in zip(*np.unique(LABELS, return_counts=True), strict=True):
        pairs = drawn[LABELS[drawn[:, 0]] == c]
        assert len(pairs) / len(drawn) == pytest.approx(1 / 4, abs=0.02)
        assert (pairs[:, 0] == pairs[:, 1]).mean() == pytest.approx(1 / size, abs=0.04)  # an image as its own positive
        counts = np.bincount(pairs.ravel(), minlength=len(LABELS))[c == LABELS]
        assert counts.max() / counts.sum() < 1.6 / size
        assert counts.min() > 0
    classes = LABELS[drawn.reshape(-1, 8)[:, ::2]]
    assert any(len(set(batch)) < 4 for batch in classes)  # a class twice in a batch


def test_spc_r_has_a_pair_of_different_images_with_the_last():
    partners = set()
    for batch in batches(SPCR(LABELS, 8, 0), 500):
        *earlier, last = batch
        same = [row for row in earlier if LABELS[row] == LABELS[last]]
        assert same
        if LABELS[last] != 5:  # class 5 has one image only
            assert any(row != last for row in same)
        partners.add(LABELS[last])
    assert partners == set(LABELS)


def test_spc_r_draws_classes_uniformly():
    drawn = np.stack(batches(SPCR(LABELS, 8, 0), 2000))[:, :-1]
    counts = np.unique(LABELS[drawn], return_counts=True)[1] / drawn.size
    np.testing.assert_allclose(counts, 1 / 4, atol=0.02)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SPC(LABELS, 9, 0), r"train.batch=9 is not divisible by sampler.per_class=2; the nearest are 8 and 10"),
        (lambda: SPC(LABELS, 3, 0, per_class=4), "not divisible by sampler.per_class=4; the smallest is 4"),
        (lambda: SPC(LABELS, 8, 0, per_class=0), "sampler.per_class=0: must be at least 1"),
        (lambda: SPCR(LABELS, 1, 0), "train.batch=1: a positive pair needs at least 2 images"),
    ],
)
def test_what_cannot_be_done_is_refused(make, said):
    with pytest.raises(NearkinError, match=said):
        make()
