"""The PCA head against numpy and scikit-learn, alone and in whole runs."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import nearkin
from nearkin import classical
from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError
from nearkin.models import ClassicalHead, PCAHead, build_model
from nearkin.registry import HEADS
from nearkin.runs.prepare import prepare

CLASSICAL = sorted(name for name in HEADS.names() if issubclass(HEADS[name], ClassicalHead))


def oracle(train, others, dim):
    """Centre, singular vectors, the largest entry of each made positive."""
    mean = train.mean(0)
    axes = np.linalg.svd(train - mean, full_matrices=False)[2][:dim]
    for axis in axes:
        if axis[np.abs(axis).argmax()] < 0:
            axis *= -1
    return (others - mean) @ axes.T


def features(n, width, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, width)) * np.linspace(3, 0.1, width) + rng.normal(size=width)


@pytest.mark.parametrize(("n", "width", "dim"), [(40, 6, 4), (40, 6, 6), (5, 12, 4), (300, 30, 8)])
def test_pca_equals_numpy_and_sklearn(n, width, dim, monkeypatch):
    monkeypatch.setattr("nearkin.models.fitted.BLOCK", 64)  # several blocks
    train, others = features(n, width), features(7, width, seed=1)
    head = PCAHead(width, dim).double()
    head.fit(torch.from_numpy(train), torch.zeros(n, dtype=torch.long))
    found = head(torch.from_numpy(others)).numpy()
    np.testing.assert_allclose(found, oracle(train, others, dim), atol=1e-9)
    np.testing.assert_allclose(found, PCA(dim, svd_solver="full").fit(train).transform(others), atol=1e-9)
    np.testing.assert_allclose(head.axes @ head.axes.T, np.eye(dim), atol=1e-12)
    assert list(head.parameters()) == []


def test_too_many_dimensions():
    with pytest.raises(NearkinError, match=r"model.dim=300: .* at most .* pooled feature, 256"):
        build_model(backbone="convnet", head="pca", dim=300)
    with pytest.raises(NearkinError, match=r"model.dim=9: .* at most .* training images, 8"):
        PCAHead(16, 9).fit(torch.randn(8, 16), torch.zeros(8))


def test_headless_is_what_the_head_is_given():
    model = build_model(backbone="convnet", head="pca", dim=4, norm="layer", pre_norm="layer", cut="all").eval()
    x = torch.randn(3, 256)
    with model.headless():
        expected = (x - x.mean(1, keepdim=True)) / x.std(1, unbiased=False, keepdim=True)
        torch.testing.assert_close(model.back(x).z, expected, atol=1e-4, rtol=0)
        assert model.dim == 256
    assert isinstance(model.head, PCAHead)
    assert model.dim == 4
    assert model.back(x).z.shape == (3, 4)


@pytest.mark.parametrize("cut", ["none", "all"])
def test_a_run(tiny, tmp_path, cut):
    words = tiny | {"epochs": 0, "cut": cut, "model.views": 2}
    run = nearkin.train(words | {"model.head": "pca", "dim": 8}, runs=tmp_path)
    prepared = prepare(make_spec(words))
    pooled = nearkin.load(nearkin.train(words | {"model.head": "none"}, runs=tmp_path)).model
    with torch.no_grad():
        train, test = (
            pooled(prepared.pixels.test(rows)).z.double().numpy()
            for rows in (prepared.split.train, prepared.split.test.images)
        )
    with np.load(run.path / "embeddings.npz") as held:
        found = held["embeddings"]
    expected = oracle(train, test, 8)
    np.testing.assert_allclose(found, expected, atol=(2e-3 if cut == "all" else 2e-4) * np.abs(expected).max())
    state = run.load("model.pt")["model"]
    assert state["head.axes"].shape == (8, 256)
    again = nearkin.load(run)
    image = np.zeros((32, 32, 3), np.uint8)
    assert again.embed([image]).shape == (1, 8)
    assert torch.equal(again.model.head.axes, state["head.axes"])


def test_it_is_not_trained(tiny, tmp_path):
    with pytest.raises(NearkinError, match=r"model.head=pca is fitted .*: train.epochs=0, not 2"):
        nearkin.train(tiny | {"model.head": "pca"}, runs=tmp_path)
    assert not list(tmp_path.iterdir())


class TestProjections:
    def classes(self, n=120, width=10, seed=3):
        rng = np.random.default_rng(seed)
        labels = np.arange(n) % 6
        x = rng.normal(size=(6, width))[labels] * 2 + rng.normal(size=(n, width)) * np.linspace(4, 0.2, width)
        return x, labels

    def fitted(self, name, dim, x, labels):
        head = HEADS[name](x.shape[1], dim).double()
        head.fit(torch.from_numpy(x), torch.from_numpy(labels))
        return head

    def test_whitening_equals_sklearn(self):
        x, labels = self.classes()
        found = self.fitted("pca_whitening", 5, x, labels)(torch.from_numpy(x)).numpy()
        theirs = PCA(5, whiten=True, svd_solver="full").fit_transform(x) * np.sqrt(len(x) / (len(x) - 1))
        np.testing.assert_allclose(np.abs(found), np.abs(theirs), atol=1e-9)
        np.testing.assert_allclose(np.cov(found.T, bias=True), np.eye(5), atol=1e-9)

    def test_the_distance_of_whitened_features_is_mahalanobis(self):
        """With all dimensions, distance=euclid ranks by (x - y)ᵀ Σ⁻¹ (x - y); cosines of the same vectors do not."""
        x, labels = self.classes()
        z = self.fitted("pca_whitening", 10, x, labels)(torch.from_numpy(x))
        inverse = np.linalg.inv(np.cov(x.T, bias=True))
        differences = x[:, None] - x[None]  # (N, N, F)
        squares = np.einsum("ijk,kl,ijl->ij", differences, inverse, differences)
        np.testing.assert_allclose(torch.cdist(z, z).square().numpy(), squares, rtol=1e-6, atol=1e-8)
        np.fill_diagonal(squares, np.inf)
        found = {
            distance: nearkin.evaluate(z, labels, k=(1,), distance=distance).metrics["recall@1"]
            for distance in ("euclid", "cosine")
        }
        assert found["euclid"] == pytest.approx(np.mean(labels[squares.argmin(1)] == labels))
        assert found["euclid"] != found["cosine"]

    def test_a_feature_that_never_changes_stays_nothing(self):
        x, labels = self.classes()
        x = np.concatenate([x, np.ones((len(x), 1))], 1)
        z = self.fitted("pca_whitening", 11, x, labels)(torch.from_numpy(x))
        assert z.isfinite().all()
        assert (z[:, -1] == 0).all()

    def test_lda_has_one_dimension_less_than_classes(self):
        x, labels = self.classes()
        z = self.fitted("lda", 8, x, labels)(torch.from_numpy(x)).numpy()
        assert (z[:, 5:] == 0).all()
        theirs = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(x, labels).transform(x)
        np.testing.assert_allclose(np.abs(z[:, :5]), np.abs(theirs - theirs.mean(0)), atol=1e-8)

    @pytest.mark.parametrize("name", ["lda", "nca"])
    def test_labels_help(self, name):
        x, labels = self.classes()
        z = self.fitted(name, 5, x, labels)(torch.from_numpy(x))
        plain, found = (nearkin.evaluate(v, labels, k=(1,)).metrics["recall@1"] for v in (torch.from_numpy(x), z))
        assert found > plain + 0.05

    def test_nca_is_refused_where_n_squared_does_not_fit(self, monkeypatch):
        monkeypatch.setattr("nearkin.models.projections.available_memory", lambda: 10_000)
        x, labels = self.classes()
        with pytest.raises(NearkinError, match="compares all 120 training images with each other"):
            self.fitted("nca", 4, x, labels)

    @pytest.mark.parametrize("name", CLASSICAL)
    def test_classical_heads_are_their_estimators(self, name):
        x, labels = self.classes()
        head = self.fitted(name, 4, x, labels)
        z = PCA(4, svd_solver="full").fit_transform(x)
        z /= z.std(0).mean()
        learned = getattr(classical, HEADS[name].method)().fit(z, labels).transform(z)
        i, j = np.triu_indices(len(x), 1)
        distances = [np.square(v[i] - v[j]).sum(1) for v in (head(torch.from_numpy(x)).numpy(), learned)]
        np.testing.assert_allclose(*distances, rtol=0.02, atol=0.02 * distances[1].max())

    @pytest.mark.parametrize("name", CLASSICAL)
    def test_classical_heads_take_what_comes(self, name):
        x, labels = self.classes(n=8, width=20)
        z = self.fitted(name, 30, x, labels)(torch.from_numpy(x))
        assert z.shape == (8, 30)
        assert z.isfinite().all()
        assert self.fitted(name, 4, x, labels * 0)(torch.from_numpy(x)).isfinite().all()

    @pytest.mark.parametrize("name", ["pca_whitening", "lda", "nca", "lmnn", "itml"])
    def test_whole_runs(self, name, tiny, tmp_path):
        run = nearkin.train(tiny | {"model.head": name, "epochs": 0, "dim": 6}, runs=tmp_path)
        assert 0 < run.result["test"]["recall@1"] <= 1
        with pytest.raises(NearkinError, match="epochs=0"):
            nearkin.train(tiny | {"model.head": name}, runs=tmp_path)
