"""Every miner: inside the masks on any batch, equal to its oracle, the reference values, pytorch-metric-learning."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from oracles import miners as oracles
from pytorch_metric_learning import miners as pml_miners

from nearkin import miners
from nearkin.errors import NearkinError
from nearkin.losses import Contrastive, Triplet
from nearkin.pairs import PairMasks, Pairs, Triplets
from nearkin.registry import MINERS

Y = torch.tensor([0, 0, 0, 1, 1, 2, 2, 3])


def make(name, **settings):
    return MINERS[name](**settings).for_loss(Triplet())


def batch(b=16, dim=6, classes=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(b, dim, generator=generator, dtype=torch.float64)
    return z, torch.randint(classes, (b,), generator=generator)


def listed(triplets):
    return list(zip(*(index.tolist() for index in triplets), strict=True))


def reference_batch():
    i = torch.arange(1.0, 9.0, dtype=torch.float64)[:, None]
    j = torch.arange(1.0, 5.0, dtype=torch.float64)
    c = Y[:, None]
    wave = torch.cos(1.7 * c + 0.9 * j + 0.6 * c * j) + 0.8 * torch.sin(1.3 * i + 0.7 * j + 0.2 * i * j)
    return wave * (0.6 + 0.1 * i), Y


@pytest.mark.parametrize(
    ("name", "given_settings"), [*((name, {}) for name in MINERS.names()), ("random", {"per_anchor": True})]
)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_output_lies_inside_the_masks(name, given_settings, data):
    b = data.draw(st.integers(1, 9))
    values = st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-3, 1e3])
    z = torch.tensor(data.draw(st.lists(st.lists(values, min_size=4, max_size=4), min_size=b, max_size=b)))
    y = torch.tensor(data.draw(st.lists(st.integers(0, 3), min_size=b, max_size=b)))
    pairs = Pairs.of(z, y)
    found = make(name, **given_settings)(z, y)
    if isinstance(found, PairMasks):
        assert not (found.positive & ~pairs.positive).any()
        assert not (found.negative & ~pairs.negative).any()
    else:
        assert pairs.positive[found.anchor, found.positive].all()
        assert pairs.negative[found.anchor, found.negative].all()


@pytest.mark.parametrize("name", ["semihard", "softhard", "hard", "hard_floor", "distance_weighted", "random"])
def test_one_triplet_an_anchor_that_has_both_sides(name):
    z, y = reference_batch()
    assert make(name, **({"per_anchor": True} if name == "random" else {}))(z, y).anchor.tolist() == [
        0,
        1,
        2,
        3,
        4,
        5,
        6,
    ]  # class 3 has one sample


@pytest.mark.parametrize("name", MINERS.names())
def test_same_generator_same_tuples_and_no_touch_of_the_global_state(name):
    z, y = batch(32)
    before = torch.get_rng_state()
    first, second = (make(name)(z, y, generator=torch.Generator().manual_seed(4)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", MINERS.names())
def test_no_graph_and_half_precision(name):
    z, y = batch(12)
    found = make(name)(z.half().requires_grad_(), y)
    assert not any(tensor.requires_grad for tensor in found)


ALLOWED = {
    "semihard": (lambda: make("semihard"), lambda z, y: oracles.semihard(z, y, 0.2)),
    "semihard, hardest": (lambda: make("semihard", hardest=True), oracles.semihard_hardest),
    "softhard": (lambda: make("softhard"), oracles.softhard),
    "hard_floor": (lambda: make("hard_floor"), lambda z, y: oracles.hard_floor(z, y, 0.5)),
    "hard_floor, high": (lambda: make("hard_floor", floor=1.6), lambda z, y: oracles.hard_floor(z, y, 1.6)),
    "distance_weighted": (lambda: make("distance_weighted"), oracles.all_triplets),
    "random": (lambda: make("random"), oracles.all_triplets),
    "random, per anchor": (lambda: make("random", per_anchor=True), oracles.all_triplets),
}


@pytest.mark.parametrize("name", list(ALLOWED))
@pytest.mark.parametrize("seed", [0, 1])
def test_draws_all_that_its_oracle_allows_and_nothing_else(name, seed):
    build, allowed_by = ALLOWED[name]
    z, y = batch(9, classes=3, seed=seed)
    allowed = allowed_by(z, y.tolist())
    miner, generator = build(), torch.Generator().manual_seed(seed)
    drawn = {t for _ in range(150) for t in listed(miner(z, y, generator=generator))}
    assert drawn <= allowed
    assert len(drawn) >= (0.5 if name == "distance_weighted" else 0.9) * len(allowed)


EXACT = {
    "hard": (lambda: make("hard"), oracles.hard),
    "all": (lambda: make("all"), oracles.all_triplets),
    "semihard, every": (lambda: make("semihard", every=True), lambda z, y: oracles.semihard_every(z, y, 0.2)),
}


@pytest.mark.parametrize("name", list(EXACT))
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equals_its_oracle(name, seed):
    build, oracle = EXACT[name]
    z, y = batch(seed=seed)
    found = listed(build()(z, y))
    assert len(found) == len(set(found))
    assert set(found) == oracle(z, y.tolist())


@pytest.mark.parametrize("epsilon", [0.1, 0.4, -0.2])
def test_multi_similarity_equals_its_oracle_and_theirs(epsilon):
    z, y = batch(seed=5)
    found = miners.MultiSimilarity(epsilon=epsilon)(z, y)
    positive, negative = oracles.multi_similarity(z, y.tolist(), epsilon)
    assert {tuple(pair) for pair in found.positive.nonzero().tolist()} == positive
    assert {tuple(pair) for pair in found.negative.nonzero().tolist()} == negative
    a, p, b, n = (index.tolist() for index in pml_miners.MultiSimilarityMiner(epsilon=epsilon)(z, y))
    whole = set(a) & set(b)  # theirs keeps anchors with one side only
    assert {(i, j) for i, j in zip(a, p, strict=True) if i in whole} == positive
    assert {(i, j) for i, j in zip(b, n, strict=True) if i in whole} == negative
    found = miners.MultiSimilarity(epsilon=epsilon, one_sided=True)(z, y)
    assert {tuple(pair) for pair in found.positive.nonzero().tolist()} == set(zip(a, p, strict=True))
    assert {tuple(pair) for pair in found.negative.nonzero().tolist()} == set(zip(b, n, strict=True))
    assert (set(zip(a, p, strict=True)), set(zip(b, n, strict=True))) == oracles.multi_similarity(
        z, y.tolist(), epsilon, one_sided=True
    )


def test_semihard_every_equals_pytorch_metric_learning():
    z, y = batch(32, seed=7)
    ours = listed(miners.Semihard(margin=0.2, every=True)(z, y))
    theirs = listed(pml_miners.TripletMarginMiner(margin=0.2, type_of_triplets="semihard")(z, y))
    assert sorted(ours) == sorted(theirs)
    assert ours


def test_hard_equals_pytorch_metric_learning():
    z, y = batch(32, seed=7)
    assert sorted(listed(miners.Hard()(z, y))) == sorted(listed(pml_miners.BatchHardMiner()(z, y)))


def test_random_takes_as_many_as_there_are_anchors_without_repetition():
    z, y = batch(40)
    found = listed(miners.Random()(z, y))
    assert len(found) == len(set(found)) == 40


@pytest.mark.parametrize("seed", [0, 1])
def test_random_per_anchor_draws_one_of_either_side_for_each(seed):
    """As the text of Roth et al. has it: every anchor once, both sides uniform and independent of each other."""
    z, y = batch(9, classes=3, seed=seed)
    anchors, positives, negatives = oracles.random_per_anchor(y.tolist())
    miner, generator = miners.Random(per_anchor=True), torch.Generator().manual_seed(seed)
    times, counts = 400, dict[tuple[int, str, int], int]()
    for _ in range(times):
        found = listed(miner(z, y, generator=generator))
        assert [a for a, _, _ in found] == anchors
        for a, p, n in found:
            counts[a, "p", p] = counts.get((a, "p", p), 0) + 1
            counts[a, "n", n] = counts.get((a, "n", n), 0) + 1
    for a in anchors:
        for side, columns in (("p", positives[a]), ("n", negatives[a])):
            assert {column for anchor, which, column in counts if (anchor, which) == (a, side)} == columns
            for column in columns:
                assert counts[a, side, column] / times == pytest.approx(1 / len(columns), abs=0.12)


def test_reference_counts():
    z, y = reference_batch()
    assert len(miners.All()(z, y).anchor) == 54
    assert len(miners.Semihard(margin=0.2, every=True)(z, y).anchor) == 4


@pytest.mark.parametrize(
    ("upper", "expected"),
    [
        (None, [0, 0, 0, 0.121065, 0.172325, 0.124571, 0.171957, 0.410082]),
        (1.4, [0, 0, 0, 0, 0, 0, 0.295439, 0.704561]),
    ],
)
def test_reference_weights_of_distance_weighted(upper, expected):
    weights = miners.DistanceWeighted(upper=upper).weights(Pairs.of(*reference_batch()))
    assert weights[0].tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("upper", [None, 1.4, 0.6])
def test_distance_weights_equal_their_oracle(upper):
    z, y = batch(10, dim=8)
    weights = miners.DistanceWeighted(upper=upper).weights(Pairs.of(z, y))
    torch.testing.assert_close(weights, oracles.distance_weights(z, y.tolist(), 0.5, upper), rtol=1e-8, atol=1e-10)


def test_distance_weighted_draws_with_its_weights():
    z, y = reference_batch()
    miner, generator = miners.DistanceWeighted(), torch.Generator().manual_seed(0)
    counts = torch.zeros(8, dtype=torch.float64)
    for _ in range(800):
        triplets = miner(z, y, generator=generator)
        counts[triplets.negative[triplets.anchor == 0]] += 1
    torch.testing.assert_close(counts / 800, miner.weights(Pairs.of(z, y))[0], rtol=0, atol=0.06)


def test_distance_weighted_at_512_dimensions_with_a_near_duplicate_keeps_every_anchor():
    """With one maximum for the whole batch the weights of all other anchors underflow to 0: each row has its own."""
    z = torch.randn(64, 512, generator=torch.Generator().manual_seed(0))
    y = torch.arange(64) // 2
    z[2] = z[0] + 1e-3 * z[2]  # a negative that is nearly the anchor
    pairs = Pairs.of(z, y)
    weights = miners.DistanceWeighted().weights(pairs)
    torch.testing.assert_close(weights.sum(1), torch.ones(64))
    assert ((weights > 0) == pairs.negative)[4:].all()  # anchors far from the pair keep all 62 negatives
    triplets = miners.DistanceWeighted()(z, y)
    assert triplets.anchor.tolist() == list(range(64))
    assert pairs.negative[triplets.anchor, triplets.negative].all()
    assert len(set(triplets.negative.tolist())) > 20


def test_margin_is_shared_with_the_loss_unless_set():
    assert miners.Semihard().for_loss(Triplet(margin=0.7)).margin == 0.7
    assert miners.Semihard(margin=0.1).for_loss(Triplet(margin=0.7)).margin == 0.1
    original = miners.Semihard()
    original.for_loss(Triplet())
    assert original.margin is None
    with pytest.raises(NearkinError, match="has no margin to share"):
        miners.Semihard().for_loss(Contrastive())
    with pytest.raises(NearkinError, match="needs a margin"):
        miners.Semihard()(*batch())


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("semihard", {"margin": -0.1}),
        ("semihard", {"hardest": True, "every": True}),
        ("distance_weighted", {"cutoff": -1.0}),
        ("distance_weighted", {"upper": 0.4}),
        ("multi_similarity", {"epsilon": float("nan")}),
    ],
)
def test_bad_settings_are_refused(name, bad):
    with pytest.raises(NearkinError):
        MINERS[name](**bad)


def test_empty_lists_when_nothing_is_valid():
    for y in (torch.zeros(4, dtype=torch.long), torch.arange(4)):
        for name in MINERS.names():
            found = make(name)(torch.randn(4, 3), y)
            assert not any(t.any() if isinstance(found, PairMasks) else len(t) for t in found)
            assert isinstance(found, PairMasks | Triplets)
