"""Exact search: the right neighbours, and not a bit of difference whatever the budget, the symmetry or the threads."""

import numpy as np
import pytest
import torch

from nearkin.errors import NearkinError
from nearkin.evaluation import search as module
from nearkin.evaluation.retrieval import evaluate, neighbours
from nearkin.evaluation.search import decode, encode, search
from nearkin.evaluation.tiles import TILE, Tiles


def vectors(n, dim, seed=0):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))


def with_duplicates(n, dim):
    z = vectors(n, dim)
    z[n // 2 :] = z[torch.randint(0, n // 2, (n - n // 2,), generator=torch.Generator().manual_seed(1))]
    z[10:80] = z[3]
    return z


def brute_force(z, k, similarity):
    similarity = similarity.copy()
    np.fill_diagonal(similarity, -np.inf)
    return np.argsort(-similarity, axis=1, kind="stable")[:, :k]


@pytest.fixture
def many_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("n", "k"), [(3, 1), (40, 39), (TILE, 30), (TILE + 1, TILE), (2 * TILE + 9, 30), (1500, 1300)])
def test_whole_numbers_are_ranked_exactly(n, k):
    """Distances of whole numbers are exact, so that ties are known: by index, the lower first."""
    z = torch.randint(0, 4, (n, 3), generator=torch.Generator().manual_seed(n)).double()
    found = neighbours(z, z, k, self_index=torch.arange(n), distance="euclid")
    exact = -(z[:, None] - z).square().sum(2).numpy()
    expected = brute_force(z, k, exact)
    np.testing.assert_array_equal(found.index.numpy(), expected)
    np.testing.assert_array_equal(found.similarity.numpy(), np.take_along_axis(exact, expected, 1))


@pytest.mark.parametrize("distance", ["cosine", "euclid", "snr"])
def test_duplicates_tie_by_index(distance):
    z = with_duplicates(2500, 33)
    index = neighbours(z, z, 60, self_index=torch.arange(2500), distance=distance).index.numpy()
    copies = [3, *range(10, 80)]
    for i in copies:
        assert index[i].tolist() == [j for j in copies if j != i][:60]


@pytest.mark.parametrize("distance", ["cosine", "euclid", "snr"])
def test_similarities(distance):
    q, g = vectors(70, 12, 1), vectors(1100, 12, 2)
    found = neighbours(q, g, 5, distance=distance)
    a, b = q.double()[:, None], g.double()[None]
    if distance != "euclid":
        a, b = a / a.norm(dim=2, keepdim=True), b / b.norm(dim=2, keepdim=True)
    expected = {
        "cosine": lambda: (a * b).sum(2),
        "euclid": lambda: -(a - b).square().sum(2),
        "snr": lambda: -(a - b).var(2) / a.var(2),
    }[distance]()
    best, index = expected.topk(5, dim=1)
    torch.testing.assert_close(found.similarity.double(), best, rtol=1e-5, atol=1e-5)
    assert (found.index == index).float().mean() > 0.99


@pytest.mark.parametrize(("distance", "k"), [("cosine", 7), ("cosine", 600), ("euclid", 7), ("snr", 7)])
def test_no_bit_depends_on_budget_symmetry_or_threads(distance, k, many_threads):
    z = with_duplicates(TILE + 211, 50)
    own = torch.arange(len(z))
    runs = []
    for threads, budget in ((1, 120), (1, 150), (1, 4000), (2, 120), (2, 4000), (3, 4000)):
        torch.set_num_threads(threads)
        runs.append(neighbours(z, z, k, self_index=own, distance=distance, budget_mib=budget))
    for other in runs[1:]:
        assert torch.equal(runs[0].index, other.index)
        assert torch.equal(runs[0].similarity, other.similarity)


def test_both_ways_of_searching_are_taken(monkeypatch):
    """The test above would say nothing if the budget always chose the same way."""
    taken = []
    for name in ("_by_rows", "_both_ways"):
        way = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, way=way, name=name: (taken.append((name, a[2])), way(*a))[1])
    z = vectors(TILE + 211, 50)
    for budget in (120, 4000):
        list(search(z, z, 600, self_index=np.arange(len(z)), budget_mib=budget))
    assert [name for name, _ in taken] == ["_by_rows", "_both_ways"]
    assert taken[0][1] < TILE  # fewer rows at a time, too


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_types(dtype):
    z = vectors(300, 20).to(dtype)
    found = neighbours(z, z, 5, self_index=torch.arange(300))
    expected = neighbours(z.double(), z.double(), 5, self_index=torch.arange(300))
    assert found.similarity.dtype == torch.float32
    torch.testing.assert_close(found.similarity, expected.similarity, rtol=1e-5, atol=1e-6)


def test_far_from_the_origin():
    """Raw distances keep their digits when all vectors share a large offset."""
    z = vectors(400, 8)
    near, far = (
        neighbours(x, x, 5, self_index=torch.arange(400), distance="euclid") for x in (z.double(), z.double() + 3e4)
    )
    assert torch.equal(near.index, far.index)


def test_keys_order_like_similarity_then_index():
    random = np.random.default_rng(0)
    value = np.concatenate([random.normal(size=500), [0.0, -0.0, 0.0, -np.inf, 1e-45, -1e-45], [0.5] * 50])
    value = random.permutation(value).astype(np.float32)
    index = np.arange(len(value))
    order = np.argsort(encode(value, index), kind="stable")
    np.testing.assert_array_equal(order, np.argsort(-value, kind="stable"))
    back, similarity = decode(encode(value, index))
    np.testing.assert_array_equal(back, index)
    np.testing.assert_array_equal(similarity, value)


def test_partly_inside_the_gallery():
    """A query inside the gallery has one neighbour less than one outside."""
    z = torch.arange(4.0)[:, None] + 1
    found = neighbours(z[:2], z[1:], 3, self_index=torch.tensor([-1, 0]), distance="euclid")
    assert found.index.tolist() == [[0, 1, 2], [1, 2, -1]]
    assert found.similarity[1, 2] == -torch.inf


def test_progress_ends_at_the_total():
    z = vectors(2 * TILE + 5, 4)
    for k, budget in ((3, 256), (900, 130)):
        calls = []
        neighbours(
            z, z, k, self_index=torch.arange(len(z)), budget_mib=budget, progress=lambda *a, c=calls: c.append(a)
        )
        done, total = zip(*calls, strict=True)
        assert list(done) == list(range(1, total[0] + 1))
        assert len(set(total)) == 1


def test_tiles_are_good_for_one_set_read_both_ways():
    z = vectors(2 * TILE, 24)
    tiles = Tiles(z, z, "cosine", np.arange(len(z)))
    assert tiles.symmetric
    assert np.isneginf(np.diagonal(tiles(0, 0))).all()
    assert np.isfinite(tiles(0, 1)).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"k": 0}, "k=0.*1 to 9"),
        ({"k": 10}, "k=10.*1 to 9"),
        ({"distance": "cosin"}, "did you mean cosine"),
        ({"budget_mib": 5}, "budget_mib=5: at least"),
        ({"gallery": torch.zeros(10, 3)}, "shapes"),
    ],
)
def test_wrong_arguments(arguments, words):
    z = vectors(10, 4)
    call = {"query": z, "gallery": z, "k": 3, "self_index": torch.arange(10)} | arguments
    with pytest.raises(NearkinError, match=words):
        neighbours(**call)


def test_evaluation_has_the_same_bits_under_every_budget_and_thread_count(many_threads):
    z = with_duplicates(TILE + 300, 40).numpy()
    labels = np.arange(len(z)) % 60
    names = [
        "recall@1",
        "map_at_r",
        "map_at_c",
        "mrr",
        "hubness@10",
        "nmi",
        "ami",
        "f1",
        "rho",
        "pi_ratio",
        "uniformity",
    ]
    results = []
    for threads, budget in ((1, 130), (2, 130), (1, 2000), (2, 2000)):
        torch.set_num_threads(threads)
        results.append(evaluate(z, labels, metrics=names, budget_mib=budget))
    for other in results[1:]:
        assert other.metrics == results[0].metrics
        for key, value in results[0].per_query.items():
            np.testing.assert_array_equal(other.per_query[key], value)
