"""model.init=pca: a trained head that begins at the principal axes of the pooled training features."""

import os
import signal

import numpy as np
import pytest
import torch
from ranks import spawn

import nearkin
from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError
from nearkin.losses import ProxyAnchor
from nearkin.models import LinearHead
from nearkin.runs import begin
from nearkin.runs.begin import drawn
from nearkin.runs.defaults import resolve
from nearkin.runs.prepare import prepare
from nearkin.runs.store import Store


def axes_of(features, dim):
    """The principal axes by numpy's singular vectors, the largest entry of each made positive."""
    axes = np.linalg.svd(features - features.mean(0), full_matrices=False)[2][:dim]
    return axes * np.sign(np.take_along_axis(axes, np.abs(axes).argmax(1)[:, None], 1))


def head_of(features, dim):
    head = LinearHead(features.shape[1], dim, init="pca").double()
    head.begin(torch.from_numpy(features))
    return head


def spread(n, width, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, width)) * np.linspace(3, 0.1, width) + 5


class TestHead:
    def test_equals_numpy(self):
        features = spread(300, 30)
        head, axes = head_of(features, 8), axes_of(features, 8)
        np.testing.assert_allclose(head.weight.detach(), axes, atol=1e-9)
        np.testing.assert_allclose(head.bias.detach(), 0, atol=0)

    def test_trains(self):
        head = head_of(spread(20, 6), 3)
        assert [name for name, p in head.named_parameters() if p.requires_grad] == ["weight", "bias"]
        assert head.weight.grad_fn is None

    def test_fewer_images_than_dimensions(self):
        """The other rows are at right angles to the axes: no row is dead, all distances stay."""
        features, others = spread(5, 12), torch.from_numpy(spread(7, 12, seed=1))
        head = head_of(features, 12)
        np.testing.assert_allclose(head.weight[:4].detach(), axes_of(features, 4), atol=1e-9)
        np.testing.assert_allclose((head.weight @ head.weight.T).detach(), np.eye(12), atol=1e-12)
        torch.testing.assert_close(torch.cdist(head(others), head(others)), torch.cdist(others, others))
        loss = ProxyAnchor(3, 12).double()(head(others), torch.arange(7) % 3)
        loss.backward()
        assert loss.isfinite()
        assert head.weight.grad.isfinite().all()
        assert (head.weight.grad.abs().sum(1) > 0).all()

    @pytest.mark.parametrize("features", [np.ones((9, 4)), spread(1, 4)], ids=["equal", "one image"])
    def test_features_that_do_not_vary(self, features):
        head = head_of(features, 3)
        np.testing.assert_allclose((head.weight @ head.weight.T).detach(), np.eye(3), atol=1e-12)
        z = head(torch.from_numpy(features))
        ProxyAnchor(2, 3).double()(z, torch.arange(len(z)) % 2).backward()
        assert head.weight.grad.isfinite().all()

    def test_wider_than_the_feature(self):
        features = spread(9, 4)
        z = head_of(features, 6)(torch.from_numpy(features))  # (N, D), D above F
        np.testing.assert_allclose((z @ z.T).detach(), features @ features.T, atol=1e-12)
        assert (z[:, 4:] == 0).all()
        ProxyAnchor(2, 6).double()(z, torch.arange(9) % 2).backward()  # the others can learn


def pooled_of(words, runs):
    """Pooled features of the training and the test images, of the untrained network."""
    prepared = prepare(make_spec(words))
    model = nearkin.load(nearkin.train(words | {"epochs": 0, "model.head": "none"}, runs=runs)).model
    with torch.no_grad():
        return [
            model(prepared.pixels.test(rows)).z.double().numpy()
            for rows in (prepared.split.train, prepared.split.test.images)
        ]


@pytest.mark.parametrize("more", [{}, {"cut": "block2"}, {"cut": "all"}, {"model.pre_norm": "layer"}], ids=str)
def test_a_run_begins_at_pca_of_the_pooled_features(tiny, tmp_path, more):
    words = tiny | {"model.views": 2} | more
    run = nearkin.train(words | {"epochs": 0, "model.init": "pca"}, runs=tmp_path)
    train, test = pooled_of(words, tmp_path)
    expected = test @ axes_of(train, 16).T
    with np.load(run.path / "embeddings.npz") as held:
        found = held["embeddings"]
    rounding = 5e-3 if "cut" in more else 2e-4  # features behind a cut are kept as float16
    np.testing.assert_allclose(found, expected, atol=rounding * np.abs(expected).max())


def test_as_wide_as_the_pooled_feature_it_retrieves_what_that_retrieves(tiny, tmp_path):
    """Cosines and distances are the same, also with fewer images than dimensions."""
    words = tiny | {"epochs": 0, "dim": 256}
    run = nearkin.train(words | {"model.init": "pca"}, runs=tmp_path)
    prepared = prepare(make_spec(words))
    train, test = pooled_of(words, tmp_path)
    assert len(train) < 256
    with np.load(run.path / "embeddings.npz") as held:
        z, labels = torch.from_numpy(held["embeddings"]), held["labels"]
    f = torch.from_numpy(test)
    assert len(z) == len(prepared.split.test.images)
    torch.testing.assert_close(torch.cdist(z.double(), z.double()), torch.cdist(f, f), rtol=1e-3, atol=1e-3)
    expected = nearkin.evaluate(f.float(), labels, k=(1,), metrics=["recall@1", "map_at_r"]).metrics
    for name, value in expected.items():
        assert run.result["test"][name] == pytest.approx(value, abs=0.01)


def states(run):
    return {f"{part}.{k}": v for part in ("model", "objective") for k, v in run.load("model.pt")[part].items()}


@pytest.mark.parametrize("more", [{}, {"cut": "block2"}, {"loss": "hist"}], ids=str)
def test_resumed_is_never_stopped_and_nothing_is_computed_again(tiny, tmp_path, monkeypatch, more):
    words = tiny | {"model.init": "pca", "loss": "proxy_anchor", "epochs": 3} | more
    whole = nearkin.train(words, runs=tmp_path / "whole")
    nearkin.train(words, runs=tmp_path / "paused", until=1)
    monkeypatch.setattr(LinearHead, "begin", lambda *_: pytest.fail("the head of a resumed run began again"))
    run = nearkin.train(words, runs=tmp_path / "paused")
    one, other = states(whole), states(run)
    assert all(torch.equal(one[key], other[key]) for key in one)
    assert run.result["test"] == whole.result["test"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_killed_before_the_first_checkpoint(tiny, tmp_path):
    words = tiny | {"model.init": "pca", "epochs": 1}
    whole = nearkin.train(words, runs=tmp_path / "whole")
    child = os.fork()
    if child == 0:
        nearkin.train(words, runs=tmp_path / "killed", watch=lambda entry: os.kill(os.getpid(), signal.SIGKILL))
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    one, other = states(whole), states(nearkin.train(words, runs=tmp_path / "killed"))
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_it_changes_nothing_but_the_head(tiny, tmp_path):
    """Backbone and proxies begin as with kaiming."""
    start = [
        nearkin.train(tiny | {"loss": "proxy_anchor", "epochs": 0, "model.init": init}, runs=tmp_path).load("model.pt")
        for init in ("kaiming", "pca")
    ]
    for part in ("model", "objective"):
        for key, value in start[0][part].items():
            assert torch.equal(value, start[1][part][key]) != (key == "head.weight"), key


def test_most_images(tiny, tmp_path, monkeypatch):
    rows = np.arange(100, 5100)
    one, again, other = drawn(rows, 0), drawn(rows, 0), drawn(rows, 1)
    assert len(one) == len(set(one)) == 4096
    assert set(one) <= set(rows)
    assert (np.diff(one) > 0).all()
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert drawn(rows[:4096], 0) is not None
    assert np.array_equal(drawn(rows[:4096], 0), rows[:4096])
    shares = np.histogram(one, 10, (100, 5100))[0] / 500
    assert (np.abs(shares - 0.8192) < 0.06).all()  # evenly
    monkeypatch.setattr(begin, "MOST", 10)
    run = nearkin.train(tiny | {"epochs": 0, "model.init": "pca"}, runs=tmp_path)
    train, _ = pooled_of(tiny, tmp_path)
    rows = prepare(make_spec(tiny)).split.train
    axes = axes_of(train[np.isin(rows, drawn(rows, 0))], 9)
    np.testing.assert_allclose(run.load("model.pt")["model"]["head.weight"][:9], axes, atol=2e-3)


def test_all_ranks_have_one_head(tiny, tmp_path):
    words = tiny | {"model.init": "pca", "train.optimiser": "sgd", "lr": 1e-3, "epochs": 1, "loss": "nt_xent"}
    alone = nearkin.train(words, runs=tmp_path / "one")
    found = spawn("trained", 2, tmp_path, words, str(tmp_path / "two"), None)
    assert [answer["hash"] for answer in found["answers"]] == [alone.hash] * 2
    two = Store(tmp_path / "two").run(alone.hash).load("model.pt")["model"]
    for key, value in alone.load("model.pt")["model"].items():
        torch.testing.assert_close(value, two[key], rtol=1e-3, atol=1e-4)


class OwnStart(LinearHead):
    def __init__(self, features: int, dim: int):
        super().__init__(features, dim)


class OwnWord(torch.nn.Linear):
    def __init__(self, features: int, dim: int, *, init: str = "kaiming"):
        super().__init__(features, dim)


@pytest.mark.parametrize("head", [OwnStart, OwnWord])
def test_heads_from_outside_that_cannot_begin_so(tiny, tmp_path, head):
    words = tiny | {"model.head": f"{head.__module__}.{head.__name__}", "model.init": "pca"}
    with pytest.raises(NearkinError, match=rf"{head.__name__} has a start of its own"):
        nearkin.train(words, runs=tmp_path)


def test_heads_that_cannot_begin_so(tiny, tmp_path):
    for words in ({"method": "drml"}, {"model.head": "drml", "method": "drml", "epochs": 0}):
        with pytest.raises(NearkinError, match=r"model.init=pca begins a linear head; model.head=drml has a start of"):
            nearkin.train(tiny | words | {"model.init": "pca"}, runs=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("head", ["none", "pca", "lda"])
def test_heads_that_do_not_read_it(head):
    words = {"model.head": head, "epochs": 0}
    one, other = (resolve(make_spec(words | more)).hash("d", "s") for more in ({}, {"model.init": "pca"}))
    assert one == other
