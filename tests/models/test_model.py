import pytest
import torch
from torch import nn

import nearkin
from nearkin.errors import NearkinError
from nearkin.models import LinearHead, build_model


def images(count: int = 4) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("pool", ["avg", "max", "both"])
def test_pooling(pool):
    model = build_model(backbone="convnet", head="none", pool=pool).eval()
    with torch.no_grad():
        x = model.backbone(model.front(images()))  # (B, C, h, w)
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
    assert abs(model.head.weight.std().item() - (2 / 64) ** 0.5) < 0.005  # fan out
    z = build_model(backbone="convnet", dim=64, norm="layer")(images()).z
    torch.testing.assert_close(z.mean(1), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(z.var(1, unbiased=False), torch.ones(4), atol=1e-3, rtol=0)
    assert list(build_model(backbone="convnet", head="none", norm="layer").norm.parameters()) == []


@pytest.mark.parametrize(("features", "dim"), [(1024, 128), (2048, 512)])
def test_the_start_of_a_linear_head(features, dim):
    torch.manual_seed(0)
    ours, torchs = (LinearHead(features, dim, init=init) for init in ("kaiming", "torch"))
    assert ours.weight.std().item() == pytest.approx((2 / dim) ** 0.5, rel=0.01)
    assert ours.bias.abs().max() == 0
    bound = features**-0.5  # uniform, weight and bias
    for values in (torchs.weight, torchs.bias):
        assert 0.9 * bound < values.abs().max().item() <= bound
    assert torchs.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.01)
    torch.manual_seed(7)
    plain = nn.Linear(features, dim)
    torch.manual_seed(7)
    assert torch.equal(LinearHead(features, dim, init="torch").weight, plain.weight)


def test_the_start_is_a_setting_of_the_model():
    def head(**settings):
        torch.manual_seed(3)
        return build_model(backbone="convnet", dim=16, **settings).head

    assert torch.equal(head().weight, head(init="kaiming").weight)
    assert head(init="torch").weight.abs().max() <= 1 / 16  # 1/√256
    assert head().weight.abs().max() > 0.5


def test_a_layer_norm_before_the_head():
    torch.manual_seed(0)
    model = build_model(backbone="convnet", dim=8, pre_norm="layer").eval()
    with torch.no_grad():
        f = model.pooled(model.backbone(model.front(images())))  # (B, F)
        expected = torch.zeros(4, 8)
        for b in range(4):
            values = f[b].double()
            mean = values.sum() / 256
            variance = ((values - mean) ** 2).sum() / 256
            normalised = ((values - mean) / (variance + 1e-5).sqrt()).float()
            expected[b] = model.head.weight @ normalised + model.head.bias
        torch.testing.assert_close(model(images()).z, expected)
    plain = build_model(backbone="convnet", dim=8)
    assert model.state_dict().keys() == plain.state_dict().keys()  # it has no parameters


def test_frozen_scale_and_shift():
    model = build_model(backbone="convnet", dim=8, freeze_bn=True, bn_affine=False)
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    fixed = {p for m in norms for p in m.parameters()}
    assert len(fixed) == 8  # four blocks
    grouped = {p for group in model.trainable_groups() for p in group["params"]}
    assert grouped == set(model.parameters()) - fixed
    model(images()).z.square().sum().backward()
    assert all(p.grad is None for p in fixed)
    assert all(p.grad is not None for p in grouped)


@pytest.mark.parametrize("warmup", [0, 1])
def test_frozen_scale_and_shift_stay_to_the_bit(tiny, tmp_path, warmup):
    """The loop switches gradients on when the warm-up ends; what is in no group stays off."""
    start = build_model(backbone="convnet")
    for module in start.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 2)
            nn.init.uniform_(module.bias, -1, 1)
    torch.save(start.backbone.state_dict(), tmp_path / "start.pth")
    words = tiny | {"weights": str(tmp_path / "start.pth"), "train.warmup": warmup, "train.weight_decay": 0.1}
    for affine in (False, True):
        run = nearkin.train(words | {"model.bn_affine": affine}, runs=tmp_path, test=False)
        after = {k: v for k, v in run.load("model.pt")["model"].items() if k.startswith("backbone.")}
        same = {k for k, v in start.backbone.state_dict().items() if torch.equal(v, after[f"backbone.{k}"])}
        norms = {k for k in same if ".1." in k}  # a block is conv, BatchNorm, ReLU
        expected = {"running_mean", "running_var", "num_batches_tracked"} | (set() if affine else {"weight", "bias"})
        assert {k.rsplit(".", 1)[1] for k in norms} == expected
        assert not any(".0." in k for k in same)  # every convolution moved


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
        ({"pre_norm": "batch"}, ["model.pre_norm='batch'", "layer, none"]),
        ({"init": "xavier"}, ["model.init='xavier'", "kaiming, pca, torch"]),
        ({"bn_affine": False}, ["model.bn_affine=false needs model.freeze_bn=true"]),
        ({"backbone": "collections.OrderedDict"}, ["OrderedDict", "Backbone"]),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(NearkinError) as error:
        build_model(**{"backbone": "convnet", **settings})
    assert all(word in str(error.value) for word in words)
    assert "\n" not in str(error.value)
