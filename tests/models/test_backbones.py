"""Every registered backbone: shapes, stages, the cut. The public ones: names, shapes, counts and reference outputs."""

import numpy as np
import pytest
import torch
from models import architectures
from models.filled import filled, summary, waves
from torch import nn

import nearkin
from nearkin.errors import NearkinError
from nearkin.models import Backbone, InputRecord, Model, build_model
from nearkin.models.efficientnet_lite import blocks_at
from nearkin.registry import BACKBONES

NAMES = BACKBONES.names()


def images(count: int = 2, side: int = 64) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, generator=torch.Generator().manual_seed(3))


def test_registered():
    assert set(NAMES) >= {
        "bn_inception",
        "convnet",
        "efficientnet_lite0",
        "efficientnet_lite1",
        "googlenet",
        "resnet50",
    }


@pytest.mark.parametrize("name", NAMES)
def test_stages_compose_to_forward_and_a_cut_changes_nothing(name):
    torch.manual_seed(0)
    backbone = BACKBONES[name]().eval()
    for module in backbone.modules():  # statistics that differ from the identity
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.1, 0.1)
            nn.init.uniform_(module.running_var, 0.8, 1.2)
    with torch.no_grad():
        x = backbone.record.normalise(images())
        last = backbone(x)
        assert last.shape[:2] == (2, backbone.features)
        for stage in backbone.stages:
            x = backbone.run_stage(stage, x)
        assert torch.equal(x, last)
        expected = last.mean((2, 3))
        for cut in ("none", *backbone.stages, "all"):
            model = Model(backbone, head="none", cut=cut).eval()
            torch.testing.assert_close(model.back(model.front(images())).z, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_stages_hold_every_parameter_once(name):
    backbone = BACKBONES[name]()
    held = [id(p) for stage in backbone.stages for m in backbone.stage_modules(stage) for p in m.parameters()]
    assert len(held) == len(set(held))
    assert set(held) == {id(p) for p in backbone.parameters()}


@pytest.mark.parametrize("name", NAMES)
def test_a_frozen_front_has_no_gradient_and_keeps_its_statistics(name):
    torch.manual_seed(0)
    backbone = BACKBONES[name]()
    cut = backbone.stages[-2]
    model = Model(backbone, dim=8, cut=cut).train()
    before = {k: v.clone() for k, v in backbone.state_dict().items()}
    model(images()).z.square().sum().backward()
    frozen = {p for stage in model.frozen_stages for m in backbone.stage_modules(stage) for p in m.parameters()}
    assert all(p.grad is None and not p.requires_grad for p in frozen)
    assert all(p.grad is not None for p in model.parameters() if p not in frozen)
    moved = {k for k, v in backbone.state_dict().items() if not torch.equal(v, before[k])}
    last = {id(m) for m in backbone.stage_modules(backbone.stages[-1]) for m in m.modules()}
    trained = {k for k, m in backbone.named_modules() if id(m) in last and isinstance(m, nn.BatchNorm2d)}
    assert trained
    assert {k.rsplit(".", 1)[0] for k in moved} == trained


@pytest.mark.parametrize("name", ["resnet50", "googlenet", "bn_inception"])
def test_names_and_shapes_are_those_of_the_public_checkpoint(name):
    network = BACKBONES[name](classifier=True)
    assert {k: tuple(v.shape) for k, v in network.state_dict().items()} == getattr(architectures, name)()


@pytest.mark.parametrize(
    ("name", "count", "without"),
    [
        ("resnet50", 25_557_032, ()),
        ("googlenet", 13_004_888, ()),
        ("googlenet", 6_624_904, ("aux",)),
        ("bn_inception", 11_295_240, ()),
        ("efficientnet_lite0", 4_652_008, ()),
        ("efficientnet_lite1", 5_416_680, ()),
    ],
)
def test_parameter_counts(name, count, without):
    network = BACKBONES[name](classifier=True)
    assert sum(p.numel() for k, p in network.named_parameters() if not k.startswith(without)) == count


# What torchvision 0.29.2, pretrainedmodels 0.7.4 and efficientnet_lite_pytorch 0.1.0 give with the same weights and
# input, at an odd side, where rounding up and padding on one side show.
@pytest.mark.parametrize(
    ("name", "side", "reference"),
    [
        ("resnet50", 4, [2086.52027, 2806.91644, 262652.138]),
        ("googlenet", 3, [2.19179096, 3.46246265, -187.316767]),
        ("bn_inception", 3, [1.08441046, 1.77352117, 69.6107438]),
        ("efficientnet_lite0", 4, [1.56247829, 2.08777413, 35.6734884]),
        ("efficientnet_lite1", 4, [1.47849979, 2.04840599, 199.892953]),
    ],
)
def test_reference_outputs(name, side, reference):
    with torch.no_grad():
        out = filled(BACKBONES[name](classifier=True))(waves(97))
    assert out.shape[2:] == (side, side)
    np.testing.assert_allclose(summary(out), reference, rtol=1e-6)


@pytest.mark.parametrize("name", ["resnet50", "googlenet", "bn_inception", "efficientnet_lite0", "efficientnet_lite1"])
def test_the_last_map_at_224_is_7_by_7(name):
    with torch.no_grad(), torch.device("meta"):
        assert BACKBONES[name]()(torch.empty(1, 3, 224, 224)).shape[2:] == (7, 7)


def halves(n):
    """What conv (3x3, stride 2, padding 1) and max pooling (3x3, stride 2, rounded up) make of n pixels."""
    return (n + 2 - 3) // 2 + 1, -(-(n - 3) // 2) + 1


def test_the_sides_that_bn_inception_takes():
    """Those where both halves of 3c and 4e have one size: 223 to 230 (227 is Musgrave's), but not 240."""
    network = BACKBONES["bn_inception"]
    taken = []
    for side in range(40, 320):
        conv1 = (side + 6 - 7) // 2 + 1
        stem = halves(halves(conv1)[1])[1]
        third = halves(stem)
        fourth = halves(third[0])
        if third[0] == third[1] and fourth[0] == fourth[1]:
            taken.append(side)
    assert {223, 224, 227, 230, 256, 97} <= set(taken)
    assert not {222, 231, 240} & set(taken)
    for side in range(40, 320):
        if side in taken:
            network.check_side(side)
        else:
            with pytest.raises(NearkinError, match=f"cannot take images of {side} pixels"):
                network.check_side(side)
    with torch.no_grad(), torch.device("meta"):
        assert network()(torch.empty(1, 3, 227, 227)).shape[2:] == (7, 7)


def test_a_side_that_bn_inception_cannot_take(tiny, tmp_path):
    with pytest.raises(NearkinError, match=r"images of 240 pixels: .*; the nearest is 230"):
        BACKBONES["bn_inception"]()(torch.zeros(1, 3, 240, 240))
    words = tiny | {"backbone": "bn_inception", "data.size": 64}
    for key, side, near in (("size", 80, 70), ("crop", 48, 63), ("size", 89, 95)):
        with pytest.raises(NearkinError, match=f"images of {side} pixels: .* the nearest is {near} "):
            nearkin.train(words | {f"data.{key}": side}, runs=tmp_path)
    assert not list(tmp_path.iterdir())


def test_input_records():
    pixels = torch.tensor([[10, 20, 30], [0, 255, 51]], dtype=torch.uint8).view(2, 3, 1, 1)
    bgr = BACKBONES["bn_inception"].record.normalise(pixels)
    assert bgr.flatten(1).tolist() == [[30 - 104, 20 - 117, 10 - 128], [51 - 104, 255 - 117, 0 - 128]]
    half = BACKBONES["efficientnet_lite0"].record.normalise(pixels)
    torch.testing.assert_close(half[1].flatten(), torch.tensor([-1.0, 1.0, -0.6]))
    imagenet = BACKBONES["resnet50"].record.normalise(pixels)
    torch.testing.assert_close(imagenet[1, 2].item(), (51 / 255 - 0.406) / 0.225, rtol=1e-6, atol=0)
    assert pixels[1].flatten().tolist() == [0, 255, 51]  # the caller's pixels stay
    record = BACKBONES["efficientnet_lite0"].record
    assert (record.resize, record.size, record.crop) == (128, 128, 112)
    record = BACKBONES["efficientnet_lite1"].record
    assert (record.mean, record.std) == ((0.5,) * 3, (0.5,) * 3)
    assert (record.resize, record.size, record.crop) == (160, 160, 128)


def test_the_depths_of_efficientnet_lite():
    """Groups of blocks in efficientnet_lite_builder.py of the TensorFlow models; the first and the last never grow."""
    assert blocks_at(1.0) == (1, 2, 2, 3, 3, 4, 1)
    assert blocks_at(1.1) == (1, 3, 3, 4, 4, 5, 1)
    for name in ("efficientnet_lite0", "efficientnet_lite1"):
        blocks = len(BACKBONES[name]()._blocks)
        assert BACKBONES[name].stages == ("stem", *(f"block{i}" for i in range(blocks)), "head")


def test_a_backbone_from_outside(monkeypatch):
    monkeypatch.setattr(BACKBONES, "_registered", dict(BACKBONES._classes))

    @BACKBONES.register("tests_tiny")
    class Tiny(Backbone):
        record = InputRecord(mean=(0.5,) * 3, std=(0.5,) * 3, size=16, resize=16, crop=16)
        features = 4
        stages = ("stem", "body")

        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 4, 3, 2)
            self.body = nn.Sequential(nn.BatchNorm2d(4), nn.ReLU())

    model = build_model(backbone="tests_tiny", dim=3, cut="stem")
    assert model(images(side=16)).z.shape == (2, 3)
    assert model.front(images(side=16)).shape == (2, 4, 7, 7)
