"""Samplers that plan from a bank of embeddings: the bank, its state, and every plan against a loop-written twin."""

import numpy as np
import pytest
import torch
from oracles import samplers as oracles

from nearkin.config import bounds
from nearkin.errors import NearkinError
from nearkin.registry import SAMPLERS
from nearkin.samplers import DDM, FRD, GC, HardNeighbours, Offline

LABELS = np.repeat([5, 0, 9, 2, 1, 3, 4, 7], [1, 2, 3, 5, 8, 9, 12, 20])  # 60 images
BANKED = [name for name in SAMPLERS.names() if SAMPLERS[name].needs_bank]


def embeddings(labels=LABELS, dim=5, seed=0, spread=0.6):
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(int(labels.max()) + 1, dim, generator=generator)
    return centres[labels] + spread * torch.randn(len(labels), dim, generator=generator)


def filled(cls, batch=16, seed=0, labels=LABELS, dim=5, **settings):
    sampler = cls(labels, batch, seed, **settings)
    sampler.fill(embeddings(labels, dim))
    return sampler


def one_pass(sampler):
    return [sampler.next() for _ in range(len(sampler))]


def groups(batch, per_class):
    rows = batch.reshape(-1, per_class)
    assert (LABELS[rows] == LABELS[rows[:, :1]]).all()
    return rows


@pytest.mark.parametrize("name", BANKED)
class TestEveryBank:
    def make(self, name, **settings):
        return filled(SAMPLERS[name], **settings)

    def test_holds_unit_vectors_in_float32(self, name):
        sampler = SAMPLERS[name](LABELS, 16, 0)
        z = embeddings().double().requires_grad_()
        sampler.fill(z)
        assert sampler.bank.dtype == torch.float32
        assert not sampler.bank.requires_grad
        torch.testing.assert_close(sampler.bank, (z / z.norm(dim=1, keepdim=True)).float().detach())

    def test_update_overwrites_the_rows_of_the_batch_alone(self, name):
        sampler = self.make(name)
        before = sampler.bank.clone()
        sampler.update(np.array([3, 50]), torch.tensor([[0.0, 3, 0, 0, 4], [2.0, 0, 0, 0, 0]]))
        assert sampler.bank[3].tolist() == pytest.approx([0, 0.6, 0, 0, 0.8])
        assert sampler.bank[50].tolist() == [1, 0, 0, 0, 0]
        others = np.setdiff1d(np.arange(60), [3, 50])
        assert torch.equal(sampler.bank[others], before[others])

    def test_of_a_row_twice_in_a_batch_the_last_stays(self, name):
        sampler = self.make(name)
        sampler.update(np.array([7, 2, 7, 2, 7]), torch.eye(5))
        assert sampler.bank[[7, 2]].argmax(1).tolist() == [4, 3]

    def test_without_refresh_the_bank_stays(self, name):
        sampler = self.make(name, refresh=False)
        before = sampler.bank.clone()
        sampler.update(sampler.next(), torch.ones(16, 5))
        assert torch.equal(sampler.bank, before)

    def test_a_pass_is_planned_from_the_bank_as_it_is_at_its_beginning(self, name):
        touched, untouched = self.make(name), self.make(name)
        first = []
        for _ in range(len(touched)):
            first.append(touched.next())
            touched.update(np.arange(60), embeddings(seed=9))
        assert all((a == b).all() for a, b in zip(first, one_pass(untouched), strict=True))
        assert any((a != b).any() for a, b in zip(one_pass(touched), one_pass(untouched), strict=True))

    def test_the_state_is_numbers_and_tensors_and_is_no_longer_shared_when_loaded(self, name):
        sampler, other = self.make(name), self.make(name)
        sampler.next()
        state = sampler.state_dict()
        assert set(state) == {"pass", "position", "bank", "plan"}
        assert state["plan"].shape == (3, 16)
        other.load_state_dict(state)
        sampler.update(np.arange(60), torch.ones(60, 5))
        assert not torch.equal(other.bank, sampler.bank)

    def test_a_state_from_before_the_bank_leaves_it(self, name):
        state = SAMPLERS[name](LABELS, 16, 0).state_dict()
        assert state == {"pass": 0, "position": 0}
        sampler = self.make(name)
        before = sampler.bank.clone()
        sampler.load_state_dict(state)
        assert torch.equal(sampler.bank, before)

    def test_no_bank_is_an_error(self, name):
        sampler = SAMPLERS[name](LABELS, 16, 0)
        with pytest.raises(NearkinError, match=rf"sampler={name} plans from a bank .* call fill\(z\) before next"):
            sampler.next()

    def test_a_bank_of_another_size_is_refused(self, name):
        with pytest.raises(NearkinError, match=r"needs 60 embeddings, got 59 x 5"):
            SAMPLERS[name](LABELS, 16, 0).fill(embeddings()[:-1])

    def test_a_bank_of_what_is_not_finite_is_refused(self, name):
        z = embeddings()
        z[3, 2] = torch.nan
        with pytest.raises(NearkinError, match=r"1 of 60 embeddings are not finite"):
            SAMPLERS[name](LABELS, 16, 0).fill(z)

    def test_a_bank_larger_than_memory_is_refused_with_the_arithmetic(self, name, monkeypatch):
        monkeypatch.setattr(bounds, "available_memory", lambda: 3 * 2**30)
        sampler = SAMPLERS[name](np.arange(2**20) % 9, 16, 0)
        sampler.reserve(768)  # 3 GiB exactly
        said = r"1048576 embeddings x 1024 dimensions x 4 bytes = 4.00 GiB, 3.00 GiB are available; use a smaller"
        with pytest.raises(NearkinError, match=said):
            sampler.reserve(1024)


def test_available_memory_is_a_sane_number_or_unknown():
    room = bounds.available_memory()
    assert room is None or 2**20 < room < 2**50


def test_hard_neighbours_needs_a_class_with_a_pair():
    with pytest.raises(NearkinError, match="classes of two images or more, training has 0"):
        HardNeighbours(np.arange(20), 16, 0)


def recorded(sampler, monkeypatch):
    """Every (big batch, candidates, costs) of a pass, beside its batches."""
    seen, costs = [], sampler.costs

    def record(big, picks):
        found = costs(big, picks)
        seen.append((big, picks.numpy(), found.numpy()))
        return found

    monkeypatch.setattr(sampler, "costs", record)
    return one_pass(sampler), seen


@pytest.mark.parametrize(("cls", "cost"), [(DDM, oracles.ddm_cost), (FRD, oracles.frd_cost)])
@pytest.mark.parametrize(
    ("dim", "settings"), [(5, {}), (24, {}), (5, {"per_class": 4, "candidates": 4}), (5, {"big_batch": 20})]
)
def test_the_batch_is_the_cheapest_candidate(cls, cost, dim, settings, monkeypatch):
    """Fewer dimensions than images in a batch, and more."""
    sampler = filled(cls, dim=dim, **settings)
    batches, seen = recorded(sampler, monkeypatch)
    z = sampler.bank.double().numpy()
    for batch, (big, picks, found) in zip(batches, seen, strict=True):
        wanted = np.array([cost(z[big], z[big[pick]]) for pick in picks])
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
        assert (batch == big[picks[wanted.argmin()]]).all()


def test_ddm_of_images_that_all_look_alike_is_finite():
    sampler = DDM(LABELS, 16, 0)
    sampler.fill(torch.ones(60, 5))
    assert sampler.costs(np.arange(60), torch.arange(48).view(3, 16)).isfinite().all()
    assert len(one_pass(sampler)) == 3


@pytest.mark.parametrize("cls", [DDM, FRD])
@pytest.mark.parametrize("per_class", [1, 2, 4])
class TestCandidates:
    def test_groups_differ_where_the_big_batch_allows(self, cls, per_class, monkeypatch):
        _, seen = recorded(filled(cls, per_class=per_class, candidates=6), monkeypatch)
        repeated = 0
        for big, picks, _ in seen:
            assert len(big) == 60  # 512, cut to the data
            groups(big, per_class)
            assert picks.shape == (6, 16)
            for pick in picks:
                for rows in groups(big[pick], per_class):
                    different = set(big[LABELS[big] == LABELS[rows[0]]])
                    assert len(set(rows)) == min(per_class, len(different))
                    repeated += len(set(rows)) < per_class
        assert repeated or per_class == 1  # class 5 has one image

    def test_no_place_of_the_big_batch_is_taken_twice_by_a_group(self, cls, per_class, monkeypatch):
        _, seen = recorded(filled(cls, per_class=per_class), monkeypatch)
        for _, picks, _ in seen:
            assert all(len(set(places)) == per_class for places in picks.reshape(-1, per_class))

    def test_candidates_draw_from_every_class_of_the_big_batch(self, cls, per_class):
        sampler = filled(cls, per_class=per_class, candidates=200)
        big = sampler.classes.draw_groups(np.random.default_rng(0), 60 // per_class, per_class)
        picks = sampler.draw_candidates(big, np.random.default_rng(1))
        drawn, counts = np.unique(LABELS[big[picks]], return_counts=True)
        assert set(drawn) == set(LABELS[big])
        np.testing.assert_allclose(counts / picks.size, 1 / len(drawn), atol=0.04)


def test_gc_takes_the_points_of_the_loop():
    sampler = filled(GC, 20)
    big = np.random.default_rng(3).permutation(60)[:40]
    wanted = oracles.farthest_first(sampler.bank.double().numpy()[big], 10)
    assert sampler.farthest_first(big).tolist() == big[wanted].tolist()


@pytest.mark.parametrize("per_class", [1, 2, 4])
def test_gc_batches_are_points_of_one_big_batch_with_others_of_their_class(per_class, monkeypatch):
    sampler = filled(GC, per_class=per_class, big_batch=40)
    seen, found = [], sampler.farthest_first
    monkeypatch.setattr(sampler, "farthest_first", lambda big: seen.append(big) or found(big))
    repeated = 0
    for batch, big in zip([sampler.next() for _ in range(30)], seen, strict=True):
        assert len(set(big)) == 40
        assert batch[::per_class].tolist() == found(big).tolist()
        assert len(set(batch[::per_class])) == 16 // per_class
        for rows in groups(batch, per_class):
            size = np.count_nonzero(LABELS[rows[0]] == LABELS)
            counts = np.unique(rows, return_counts=True)[1]
            assert len(counts) == min(per_class, size)
            assert counts.max() == -(-per_class // size)  # no image more often than need be
            repeated += len(counts) < per_class
    assert repeated or per_class == 1


def test_gc_points_differ_even_where_images_are_equal():
    sampler = GC(LABELS, 16, 0, per_class=1)
    sampler.fill(torch.ones(60, 5))
    assert all(len(set(batch)) == 16 for batch in one_pass(sampler))


def test_gc_covers_better_than_random_batches():
    """Covering radius of all 240 images, mean over 50 batches of 24 (12 points and 12 fillers), in 4 dimensions:
    gc 0.87, random 1.04; of the 12 points alone 0.91, of 12 random images 1.20."""
    labels = np.repeat(np.arange(12), [2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48])
    sampler = filled(GC, 24, labels=labels, dim=4)
    z = sampler.bank.numpy()
    ours = [sampler.next() for _ in range(50)]
    rng = np.random.default_rng(0)
    random = [rng.permutation(240)[:24] for _ in range(50)]
    gc, points, plain, few = (
        np.mean([oracles.covering_radius(z, rows) for rows in part])
        for part in (ours, [rows[::2] for rows in ours], random, [rows[:12] for rows in random])
    )
    assert [gc, plain, points, few] == pytest.approx([0.87, 1.04, 0.91, 1.20], abs=0.01)


@pytest.mark.parametrize("pairs", [None, 1, 3, 7])
def test_hard_neighbours_equal_the_loop(pairs):
    sampler = filled(HardNeighbours, pairs=pairs)
    p = pairs or 2  # an eighth of 16
    z = sampler.bank.double().numpy()
    for batch in one_pass(sampler):
        anchors = batch[: 2 * p].tolist()
        assert batch.tolist() == oracles.with_neighbours(z, LABELS, anchors, 16)
        assert len(set(batch)) == 16
        classes = LABELS[anchors].reshape(-1, 2)
        assert (classes[:, 0] == classes[:, 1]).all()
        assert len(set(classes[:, 0])) == p
        assert 5 not in classes  # one image, no pair


def test_hard_neighbours_fill_the_batch_when_one_anchor_has_no_negative_left():
    labels = np.repeat([0, 1], [12, 3])
    sampler = filled(HardNeighbours, 15, labels=labels, pairs=2)
    assert sorted(sampler.next()) == list(range(15))


@pytest.mark.parametrize(
    ("cls", "batch", "settings", "said"),
    [
        (DDM, 15, {}, "train.batch=15 is not divisible by sampler.per_class=2; the nearest are 14 and 16"),
        (FRD, 16, {"per_class": 0}, "sampler.per_class=0: must be at least 1"),
        (GC, 15, {"per_class": 4}, "not divisible by sampler.per_class=4"),
        (GC, 16, {"big_batch": 12}, "sampler.big_batch=12 must be at least train.batch=16"),
        (DDM, 16, {"big_batch": 12}, "sampler.big_batch=12 must be at least train.batch=16"),
        (FRD, 16, {"candidates": 0}, "candidates=0: must be at least 1"),
        (FRD, 1, {"per_class": 1}, "train.batch=1: a spread needs at least 2 images"),
        (HardNeighbours, 2, {}, "train.batch=2: a pair and a negative need at least 3 images"),
        (HardNeighbours, 16, {"pairs": 0}, "sampler.pairs=0 with train.batch=16: must lie between 1 and 7"),
        (HardNeighbours, 16, {"pairs": 8}, "sampler.pairs=8 with train.batch=16: must lie between 1 and 7"),
        (HardNeighbours, 24, {"pairs": 8}, "needs as many classes of two images or more, training has 7"),
        (HardNeighbours, 50, {"pairs": 1}, "needs 48 negatives; the largest class leaves 40"),
        (Offline, 2, {}, "train.batch=2: a triplet needs at least 3 images"),
        (Offline, 16, {"every": 0}, "every=0: must be at least 1"),
        (Offline, 16, {"tuples": "easy"}, "tuples="),
    ],
)
def test_what_cannot_be_done_is_refused(cls, batch, settings, said):
    with pytest.raises(NearkinError, match=said):
        cls(LABELS, batch, 0, **settings)


def test_gc_draws_a_big_batch_without_looking_at_all_images(monkeypatch):
    """Of millions of images a few hundred are drawn for each batch; to permute all of them took most of the time."""
    sampler = filled(GC, big_batch=40)

    class Counting(np.random.Generator):
        def permutation(self, x, axis=0):
            assert np.size(x) < len(LABELS) // 2  # the others of a class
            return super().permutation(x, axis)

    first = sampler.plan(Counting(np.random.PCG64(0)))
    assert np.array_equal(first, sampler.plan(np.random.default_rng(0)))
    bigs = []
    monkeypatch.setattr(sampler, "farthest_first", lambda big: bigs.append(big) or big[:8])
    for seed in range(400):
        sampler.plan(np.random.default_rng(seed))
    drawn = np.bincount(np.concatenate(bigs), minlength=60)
    firsts = np.bincount([big[0] for big in bigs], minlength=60)
    assert drawn.std() / drawn.mean() < 0.1  # all are equally likely, also as the first point
    assert firsts.min() > 0


@pytest.mark.parametrize("name", BANKED)
def test_the_plan_is_not_copied_at_every_step(name):
    sampler = filled(SAMPLERS[name])
    sampler.next()
    states = [sampler.state_dict() for _ in range(2)]
    assert states[0]["plan"].data_ptr() == states[1]["plan"].data_ptr()
