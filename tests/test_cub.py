"""The real CUB-200-2011 at 128 px, EfficientNet-Lite0 with its ImageNet weights: figures that others can check.

Minutes of work: `make test-slow`, with NEARKIN_CUB=DIR.
"""

import pytest

import nearkin

pytestmark = [pytest.mark.slow, pytest.mark.cub]


@pytest.fixture
def cub(cub_root):
    return {"dataset": "cub", "root": str(cub_root), "backbone": "efficientnet_lite0", "weights": "imagenet"}


def test_untrained_pooled_features(cub, tmp_path):
    run = nearkin.train(cub | {"model.head": "none", "model.pool": "avg", "epochs": 0}, runs=tmp_path)
    assert run.result["test"]["recall@1"] == pytest.approx(0.3715, abs=0.01)
    assert run.result["test_n"] == 5924


def test_a_head_alone_is_stopped_before_it_overfits(cub, tmp_path):
    """Trained on frozen features it forgets: the chosen epoch must be no worse on test classes than the last."""
    words = cub | {"cut": "all", "loss": "proxy_anchor", "epochs": 20}
    chosen = nearkin.train(words, runs=tmp_path).result
    assert chosen["epoch"] < 20
    assert chosen["test"]["recall@1"] > 0.32


def test_the_default_recipe(cub, tmp_path):
    assert nearkin.train(cub, runs=tmp_path).result["test"]["recall@1"] >= 0.41
