"""What is drawn from labels."""

import numpy as np
import pytest

from nearkin.classical.constraints import draw_pairs, draw_triplets, nearest_of_class

LABELS = np.array([2, 0, 0, 1, 1, 1, 2, 5, 0, 0])


@pytest.mark.parametrize("seed", range(5))
def test_pairs_and_triplets_are_what_they_say(seed):
    similar, dissimilar = draw_pairs(LABELS, 400, seed)
    assert (LABELS[similar[:, 0]] == LABELS[similar[:, 1]]).all()
    assert (LABELS[dissimilar[:, 0]] != LABELS[dissimilar[:, 1]]).all()
    assert (similar[:, 0] != similar[:, 1]).all()
    assert len(np.unique(similar, axis=0)) == len(similar) == 3 + 1 + 6  # all there are
    i, j, k = draw_triplets(LABELS, 400, seed).T
    assert ((LABELS[i] == LABELS[j]) & (i != j) & (LABELS[i] != LABELS[k])).all()
    assert {(a, b) for a, b in zip(i, j, strict=True)} == {
        (a, b) for a in range(10) for b in range(10) if a != b and LABELS[a] == LABELS[b]
    }


def test_the_seed_decides():
    assert (draw_triplets(LABELS, 9, 1) == draw_triplets(LABELS, 9, 1)).all()
    assert draw_pairs(LABELS, 9, 1)[0].tolist() != draw_pairs(LABELS, 9, 2)[0].tolist()


def test_where_there_is_nothing_to_draw():
    assert draw_triplets(np.zeros(5, int), 10, 0).shape == draw_triplets(np.arange(5), 10, 0).shape == (0, 3)
    assert len(draw_pairs(np.arange(5), 10, 0)[0]) == 0
    assert len(draw_pairs(np.zeros(5, int), 10, 0)[1]) == 0


def test_targets_are_the_nearest_of_the_class():
    x = np.random.default_rng(0).normal(size=(30, 2))
    y = np.arange(30) % 3
    found = nearest_of_class(x, y, 2)
    expected = []
    for i in range(30):
        others = [j for j in range(30) if j != i and y[j] == y[i]]
        expected += [(i, j) for j in sorted(sorted(others, key=lambda j: ((x[i] - x[j]) ** 2).sum())[:2])]
    assert [tuple(pair) for pair in found] == expected
