import pytest
import torch
from torch import nn

from nearkin.errors import NearkinError
from nearkin.models import build_model


def images(count: int = 4) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("pool", ["avg", "max", "both"])
def test_pooling(pool):
    model = build_model(backbone="convnet", head="none", pool=pool).eval()
    with torch.no_grad():
        x = model.backbone(model.front(images()))                                       # (B, C, h, w)
        expected = torch.zeros(4, 256)
        for b in range(4):
            for c in range(256):
                values = x[b, c].flatten().tolist()
                average, maximum = sum(values) / len(values), max(values)
                expected[b, c] = {"avg": average, "max": maximum, "both": average + maximum}[pool]
        torch.testing.assert_close(model(images()).z, expected)
    assert model.dim == model.backbone.features == 256


def test_head_and_norm():
    torch.manual_seed(0)
    model = build_model(backbone="convnet", dim=64)
    assert model.dim == 64
    assert model.head.bias.abs().max() == 0
    assert abs(model.head.weight.std().item() - (2 / 64) ** 0.5) < 0.005       # fan out
    z = build_model(backbone="convnet", dim=64, norm="layer")(images()).z
    torch.testing.assert_close(z.mean(1), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(z.var(1, unbiased=False), torch.ones(4), atol=1e-3, rtol=0)
    assert list(build_model(backbone="convnet", head="none", norm="layer").norm.parameters()) == []


def test_frozen_batch_norm_keeps_statistics_and_trains_its_affine():
    model = build_model(backbone="convnet", dim=8, freeze_bn=True)
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    for mode in (True, False, True):
        model.train(mode)
        assert model.training is mode
        assert not any(m.training for m in norms)
    model(images()).z.square().sum().backward()
    assert all(m.running_mean.abs().max() == 0 for m in norms)
    assert all(m.weight.grad is not None and m.bias.grad is not None for m in norms)

    loose = build_model(backbone="convnet", dim=8).train()
    loose(images())
    assert all(m.running_mean.abs().max() > 0 for m in loose.modules() if isinstance(m, nn.BatchNorm2d))


def test_groups():
    def told(**settings):
        return [(g["name"], g["new"]) for g in build_model(backbone="convnet", dim=8, **settings).trainable_groups()]

    assert told() == [("backbone", True), ("head", True)]
    assert told(head="none") == [("backbone", True)]
    assert told(cut="all") == [("head", True)]
    assert told(cut="all", head="none") == []
    model = build_model(backbone="convnet", dim=8, cut="block3")
    params = {g["name"]: g["params"] for g in model.trainable_groups()}
    assert {id(p) for p in params["backbone"]} == {id(p) for p in model.backbone.block4.parameters()}
    assert {id(p) for g in params.values() for p in g} == {id(p) for p in model.parameters() if p.requires_grad}


def test_the_front_of_each_cut():
    shapes = {
        cut: tuple(build_model(backbone="convnet", cut=cut).front(images()).shape)
        for cut in ("none", "block2", "block4", "all")
    }
    assert shapes == {"none": (4, 3, 32, 32), "block2": (4, 64, 8, 8), "block4": (4, 256, 2, 2), "all": (4, 256)}


def test_channels_last():
    model = build_model(backbone="convnet")
    x = model.front(images())
    assert x.is_contiguous(memory_format=torch.channels_last)
    weight = model.backbone.block2[0].weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert not weight.is_contiguous()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"backbone": "convnett"}, ["convnett", "did you mean convnet"]),
        ({"cut": "block9"}, ["block9", "none, block1, block2, block3, block4, all"]),
        ({"dim": 0}, ["dim=0", "at least 1"]),
        ({"pool": "mean"}, ["mean", "avg, both, max"]),
        ({"head": "mlp"}, ["mlp", "linear", "none"]),
        ({"norm": "l2"}, ["l2", "layer, none"]),
        ({"backbone": "collections.OrderedDict"}, ["OrderedDict", "Backbone"]),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(NearkinError) as error:
        build_model(**{"backbone": "convnet", **settings})
    assert all(word in str(error.value) for word in words)
    assert "\n" not in str(error.value)
