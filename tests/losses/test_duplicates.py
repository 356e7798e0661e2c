"""Vectors that coincide: their distance is exactly 0, and so no term of a mean over non-zero terms."""

import pytest
import torch
from loss_cases import batch, make, value_and_gradients
from memory import peak_bytes
from oracles.losses import ORACLES
from torch import Tensor

from nearkin.losses.snr import snr, snr_at
from nearkin.numerics import rounding
from nearkin.pairs import Pairs

FLOATS = [torch.float32, torch.float64]
DIMS = [2, 3, 16, 64, 129, 512, 1024]
SCALES = [1.0, 3.0, 0.1, 1e3]  # copies on one ray: their cosine is 1 on paper


def vectors(kind: str, dim: int, dtype: torch.dtype, count: int = 40) -> Tensor:
    z = torch.randn(count, dim, generator=torch.Generator().manual_seed(dim), dtype=torch.float64)
    return {
        "random": z,
        "positive": z.abs() + 0.5,
        "uneven": z**5,
        "signs": z.sign() * 0.3,
        "equal coordinates": (z[:, :1] + 5).expand_as(z),
    }[kind].to(dtype)


every_kind = pytest.mark.parametrize("kind", ["random", "positive", "uneven", "equal coordinates", "signs"])
every_float = pytest.mark.parametrize("dtype", FLOATS, ids=str)
every_dim = pytest.mark.parametrize("dim", DIMS)


def pairs_of(anchors: Tensor, references: Tensor | None = None) -> Pairs:
    labels = torch.zeros(len(anchors), dtype=torch.long)
    if references is None:
        return Pairs.of(anchors, labels)
    return Pairs(anchors, labels, references=references, reference_labels=torch.zeros(len(references)).long())


def diagonal(dim: int) -> list[tuple[Tensor, Tensor]]:
    """Pair i with i: once as a short list, which is computed from vectors, and once so long that the matrix is read."""
    i = torch.arange(40)
    return [(i[:1], i[:1]), (i.repeat(dim + 40), i.repeat(dim + 40))]


@every_float
@every_dim
@every_kind
def test_copies_have_distance_zero_and_gradient_zero(kind, dim, dtype):
    z = vectors(kind, dim, dtype)
    for scale in SCALES:
        anchors = z.clone().requires_grad_()
        pairs = pairs_of(anchors, scale * z)
        distances = [pairs.d.diagonal(), pairs.d2.diagonal()]
        for row, column in diagonal(dim):
            distances += [pairs.d_at(row, column), pairs.d2_at(row, column)]
        for distance in distances:
            assert not distance.any()
            (gradient,) = torch.autograd.grad(distance.sum(), anchors, retain_graph=True)
            assert not gradient.any()


@every_float
@every_dim
@every_kind
def test_copies_inside_a_batch_have_distance_zero(kind, dim, dtype):
    z = vectors(kind, dim, dtype, 7)
    pairs = pairs_of(torch.cat([scale * z for scale in SCALES]))
    same = torch.arange(7).repeat(len(SCALES))
    same = same[:, None] == same
    if kind == "random" and dim > 2:  # others have zero distances beside these
        assert torch.equal(pairs.d == 0, same)
        assert torch.equal(pairs.d2 == 0, same)
    assert not pairs.d[same].any()
    assert not pairs.d2[same].any()


@every_float
@every_dim
@every_kind
def test_raw_distance_of_copies_is_zero(kind, dim, dtype):
    for length in (1.0, 1e4, 1e-4):
        z = vectors(kind, dim, dtype) * length
        for pairs in (pairs_of(torch.cat([z, z])), pairs_of(z, torch.cat([z, z]))):
            assert not pairs.raw_d.diagonal().any()
            assert not pairs.raw_d[:40].diagonal(40).any()
    assert pairs_of(z, 3 * z).raw_d.diagonal().all()  # on one ray, but apart


@every_float
@every_dim
@pytest.mark.parametrize("kind", ["random", "positive", "uneven"])
def test_snr_of_copies_is_zero(kind, dim, dtype):
    z = vectors(kind, dim, dtype)
    for scale in SCALES:
        for pairs, row in ((pairs_of(z, scale * z), 0), (pairs_of(torch.cat([z, scale * z])), 40)):
            i = torch.arange(40)
            assert not snr(pairs)[i, i + row].any()
            assert not snr_at(pairs, i, i + row).any()


@pytest.mark.parametrize(
    ("dtype", "sizes"),
    [(torch.float32, [1e-3, 3e-4, 1e-4]), (torch.float64, [1e-3, 1e-6, 1e-8, 1e-10, 1e-11])],
    ids=str,
)
@pytest.mark.parametrize("dim", [16, 512])
def test_a_tiny_distance_that_is_real_stays(dim, dtype, sizes):
    """Down to twice what rounding does to a vector; 2 - 2s alone knows no distance below the square root of that."""
    z = vectors("random", dim, torch.float64)
    aside = vectors("positive", dim, torch.float64)
    for size in sizes:
        other = (z + size * aside).to(dtype)
        e, e_other = (x.double() / x.double().norm(dim=1, keepdim=True) for x in (z.to(dtype), other))
        wanted = (e - e_other).norm(dim=1)
        assert wanted.min() > 2 * rounding(other)
        nearest = float(wanted.min())
        bound = rounding(other) / (nearest**2 if nearest**2 > 2 * rounding(other) else nearest / 4)
        for pairs, column in ((pairs_of(z.to(dtype), other), 0), (pairs_of(torch.cat([z.to(dtype), other])), 40)):
            i = torch.arange(40)
            torch.testing.assert_close(pairs.d[i, i + column].double(), wanted, rtol=bound, atol=0)
            torch.testing.assert_close(pairs.d2[i, i + column].double(), wanted**2, rtol=2 * bound, atol=0)
            torch.testing.assert_close(pairs.d_at(i, i + column).double(), wanted, rtol=bound, atol=0)
            raw = (z.to(dtype).double() - other.double()).norm(dim=1)
            torch.testing.assert_close(pairs.raw_d[i, i + column].double(), raw, rtol=2 * bound, atol=0)


def half_duplicates(dtype: torch.dtype, dim: int, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """Classes of three, two of them copies: a third of the positive pairs; and two classes of two copies."""
    z = torch.randn(10, dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)
    z = torch.cat([z, scale * z[:6]])
    return z, torch.tensor([0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 0, 1, 2, 3, 4, 5])


CASES = [
    ("contrastive", {}),
    ("contrastive", {"neg_margin": 1.6}),
    ("snr_contrastive", {}),
    ("snr_contrastive", {"reg_weight": 0.1}),
    ("triplet", {"reduction": "mean_active"}),
    ("triplet", {"reduction": "mean_active", "squared": False, "margin": 0.0}),
    ("snr_triplet", {}),
    ("margin", {}),
    ("margin", {"form": "similarity", "beta": 0.28}),
]
every_case = pytest.mark.parametrize(("name", "settings"), CASES, ids=str)


@every_case
@pytest.mark.parametrize("dim", [6, 128])
def test_copies_count_as_the_formula_says(name, settings, dim):
    """The oracle works on differences of vectors, which are exactly 0 for copies."""
    z, y = half_duplicates(torch.float64, dim)
    loss = make(name, settings, classes=6, dim=dim).double()
    single = make(name, settings, classes=6, dim=dim)
    with torch.no_grad():
        wanted = float(ORACLES[name](loss, z, y.tolist(), None))
        assert float(loss(z, y)) == pytest.approx(wanted, rel=1e-12)
        assert float(single(z.float(), y)) == pytest.approx(float(loss(z.float().double(), y)), rel=1e-4)


@every_case
@every_float
@pytest.mark.parametrize("scale", SCALES)
def test_copies_on_one_ray_count_like_copies(name, settings, dtype, scale):
    loss = make(name, settings, classes=6, dim=64).to(dtype)
    z, y = half_duplicates(dtype, 64)
    scaled, _ = half_duplicates(dtype, 64, scale)
    tolerance = 1e-4 if dtype == torch.float32 else 1e-12
    assert float(loss(scaled, y)) == pytest.approx(float(loss(z, y)), rel=tolerance)


@pytest.mark.parametrize("name", ["contrastive", "snr_contrastive"])
@every_float
def test_copies_alone_give_zero(name, dtype):
    """All positive pairs are copies, all negatives beyond the margin: nothing is active."""
    z = torch.eye(8, dtype=dtype)[[0, 1, 2, 0, 1, 2]] * 0.7 + 0.01
    leaf = z.clone().requires_grad_()
    loss = make(name, {"neg_margin": 0.5})
    value = loss(leaf, torch.tensor([0, 1, 2, 0, 1, 2]))
    value.backward()
    assert value == 0
    assert not leaf.grad.any()
    assert loss.active == 0


@every_float
def test_zero_vectors_coincide_and_stand_apart_from_the_others(dtype):
    """A zero vector stays zero when it is normalised: 0 from another one, 1 from a unit vector, listed or not."""
    z, _ = batch(6, dtype=dtype)
    z[:2] = 0
    for pairs in (pairs_of(z), pairs_of(z, z.clone())):
        row, column = torch.arange(6).repeat_interleave(6), torch.arange(6).repeat(6)
        few = torch.cat([pairs.d2_at(row[i : i + 1], column[i : i + 1]) for i in range(36)])
        torch.testing.assert_close(pairs.d2.flatten(), few)
        assert torch.equal(pairs.d2.flatten() == 0, few == 0)
        assert not pairs.d[:2, :2].any()
        assert torch.equal(pairs.d[:2, 2:], torch.ones(2, 4, dtype=dtype))


def test_what_is_zero_does_not_depend_on_the_place_in_the_batch():
    z, y = half_duplicates(torch.float32, 128)
    loss = make("contrastive")
    values = []
    for seed in range(20):
        order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
        values.append(float(loss(z[order], y[order])))
    assert max(values) == pytest.approx(min(values), rel=1e-5)


def test_a_batch_of_copies_needs_no_more_memory_than_another():
    """All pairs are near: their differences are taken in blocks, never B·M·D numbers at once."""
    z, y = torch.randn(1, 256).repeat(200, 1), torch.arange(200) % 10
    loss = make("contrastive")
    peak_bytes(lambda: value_and_gradients(loss, z, y))
    assert peak_bytes(lambda: value_and_gradients(loss, z, y)) < 40 * 4 * 200 * 200


@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-9])
def test_a_tiny_ratio_that_is_real_stays(size):
    z = vectors("random", 32, torch.float64)
    pairs = pairs_of(z, z + size * vectors("uneven", 32, torch.float64))
    i = torch.arange(40)
    ratio = snr_at(pairs, i, i)
    assert ratio.min() > 0
    torch.testing.assert_close(snr(pairs).diagonal(), ratio, rtol=1e-3, atol=0)


def test_the_ratio_of_a_vector_without_variance_with_itself_is_zero_listed_or_not():
    pairs = pairs_of(torch.ones(3, 4))
    assert not snr(pairs).any()
    assert not snr_at(pairs, torch.arange(3), torch.arange(3).flip(0)).any()
