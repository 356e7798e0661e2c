"""Pairs: geometry, masks, references, labels."""

import inspect
import textwrap

import pytest
import torch

import nearkin
from nearkin.errors import NearkinError
from nearkin.memory import Memory
from nearkin.pairs import Embedded, PairMasks, Pairs, draw_one

Z = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = torch.tensor([0, 0, 1, 1, 1, 2])


def test_geometry_by_loops():
    pairs = Pairs.of(Z, Y)
    for i in range(6):
        for j in range(6):
            a, b = Z[i] / Z[i].norm(), Z[j] / Z[j].norm()
            assert pairs.s[i, j] == pytest.approx(float(a @ b))
            assert pairs.d[i, j] == pytest.approx(float((a - b).norm()), abs=1e-7)
            assert pairs.d2[i, j] == pytest.approx(float((a - b).square().sum()), abs=1e-12)
            assert pairs.dot[i, j] == pytest.approx(float(Z[i] @ Z[j]))
            assert pairs.raw_d[i, j] == pytest.approx(float((Z[i] - Z[j]).norm()), abs=1e-7)
            assert pairs.positive[i, j] == (i != j and Y[i] == Y[j])
            assert pairs.negative[i, j] == (Y[i] != Y[j])


def test_self_is_excluded_by_index_so_that_duplicates_stay():
    pairs = Pairs.of(torch.ones(3, 4), torch.zeros(3, dtype=torch.long))
    assert pairs.positive.sum() == 6


def test_references_with_the_anchors_among_them():
    """A memory: the batch, then rows that are no anchors."""
    pairs = Pairs(Z[:3], Y[:3], references=Z, reference_labels=Y, self_index=torch.arange(3))
    square = Pairs.of(Z, Y)
    torch.testing.assert_close(pairs.s, square.s[:3])
    torch.testing.assert_close(pairs.d_at(torch.tensor([0, 1]), torch.tensor([5, 4])), square.d[[0, 1], [5, 4]])
    assert torch.equal(pairs.positive, square.positive[:3])
    assert torch.equal(pairs.negative, square.negative[:3])
    strangers = Pairs(Z[:3], Y[:3], references=Z, reference_labels=Y)
    assert torch.equal(strangers.positive, strangers.same)


@pytest.mark.parametrize("count", [3, 400])
def test_listed_distances_equal_the_matrix_few_or_many(count):
    pairs = Pairs.of(Z, Y)
    row, column = torch.randint(6, (2, count), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(pairs.d_at(row, column), pairs.d[row, column], atol=1e-7, rtol=0)
    torch.testing.assert_close(pairs.d2_at(row, column), pairs.d2[row, column])


def test_relabelling_shares_the_geometry():
    pairs = Pairs.of(Z, Y)
    s, _ = pairs.s, pairs.positive
    other = pairs.relabel(Y.flip(0))
    assert other.s is s
    assert torch.equal(other.positive, Pairs.of(Z, Y.flip(0)).positive)
    assert torch.equal(pairs.positive, Pairs.of(Z, Y).positive)


def test_restricting_never_adds_pairs():
    pairs = Pairs.of(Z, Y)
    everything = torch.ones(6, 6, dtype=torch.bool)
    assert torch.equal(pairs.restrict(PairMasks(everything, everything)).positive, pairs.positive)
    assert not pairs.restrict(PairMasks(~everything, everything)).positive.any()


@pytest.mark.parametrize(
    ("given", "computed"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_at_least_float32(given, computed):
    assert Pairs.of(Z.to(given), Y).s.dtype == computed


def test_full_precision_inside_a_mixed_precision_region():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert Pairs.of(Z.float(), Y).s.dtype == torch.float32


def test_draw_one_is_uniform_and_inside_the_mask():
    mask = torch.tensor([[True, False, True, True], [False, False, False, False], [False, True, False, False]])
    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack([draw_one(mask, generator) for _ in range(3000)])
    shares = torch.bincount(drawn[:, 0], minlength=4) / 3000
    assert shares.tolist() == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3], abs=0.04)
    assert set(drawn[:, 1].tolist()) == {0}  # nothing to draw
    assert set(drawn[:, 2].tolist()) == {1}


def test_bad_batches_are_refused():
    with pytest.raises(NearkinError, match="one label per embedding"):
        Pairs.of(Z, Y[:3])
    with pytest.raises(NearkinError, match="class labels are integers"):
        Pairs.of(Z, Y.double())


@pytest.mark.parametrize("cls", [Pairs, Embedded, Memory])
def test_the_example_runs(cls):
    space = {"nearkin": nearkin, "torch": torch, "Embedded": Embedded, "embeddings": torch.randn(6, 8), "labels": Y}
    exec(textwrap.dedent(inspect.getdoc(cls).partition("\nExample:\n")[2]), space)
