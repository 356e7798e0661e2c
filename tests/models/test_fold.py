"""Folding BatchNorm into convolutions changes no embedding beyond rounding, and not the model."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from nearkin.engine.embed import BATCH, embed
from nearkin.models import build_model
from nearkin.models.fold import folded
from nearkin.registry import BACKBONES


def shaken(model):
    """Statistics, scales and shifts such as training leaves."""
    generator = torch.Generator().manual_seed(0)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for value, low, high in (
                (module.running_mean, -0.2, 0.2),
                (module.running_var, 0.6, 1.5),
                (module.weight.data, 0.8, 1.2),
                (module.bias.data, -0.1, 0.1),
            ):
                value.copy_(torch.rand(value.shape, generator=generator) * (high - low) + low)
    return model


@pytest.mark.parametrize("name", BACKBONES.names())
def test_every_backbone(name):
    torch.manual_seed(0)
    model = shaken(build_model(backbone=name, dim=8)).eval()
    large = ("bn_inception", "googlenet", "resnet50", "efficientnet_lite0", "efficientnet_lite1")
    size = 64 if name in large else model.record.size
    images = torch.randint(0, 255, (2, 3, size, size), dtype=torch.uint8)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    with torch.no_grad():
        fast = folded(model, lambda network: network(images[:1]).z)
        a, b = (nn.functional.normalize(network(images).z) for network in (model, fast))
    assert (a - b).abs().max() < 1e-5
    norms = sum(isinstance(m, nn.BatchNorm2d) for m in model.modules())
    assert sum(isinstance(m, nn.BatchNorm2d) for m in fast.modules()) < norms or not norms
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())


class Shared(nn.Module):
    """A convolution that is used twice, once without its BatchNorm: it must not be folded."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)

    def forward(self, x):
        return (self.norm(self.conv(x)) + self.conv(x)).mean((2, 3))


class Between(nn.Module):
    """Something stands between convolution and BatchNorm."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)

    def forward(self, x):
        return self.norm(self.conv(x).relu_()).mean((2, 3))


@pytest.mark.parametrize("cls", [Shared, Between])
def test_what_cannot_be_folded_stays(cls):
    torch.manual_seed(0)
    network = shaken(cls()).eval()
    x = torch.randn(2, 3, 4, 4)
    fast = folded(network, lambda network: network(x))
    with torch.no_grad():
        assert torch.allclose(network(x), fast(x), atol=1e-6)
    assert any(isinstance(m, nn.BatchNorm2d) for m in fast.modules())


@pytest.mark.parametrize("cut", ["none", "block2", "all"])
def test_embedding_is_the_same_and_leaves_the_model_as_it_was(cut):
    torch.manual_seed(0)
    model = shaken(build_model(backbone="convnet", dim=8, cut=cut)).train()
    before, modes = copy.deepcopy(model.state_dict()), [m.training for m in model.modules()]
    pixels = torch.randint(0, 255, (BATCH + 20, 3, 32, 32), dtype=torch.uint8)

    class Source:
        def test(self, rows):
            x = pixels[torch.from_numpy(rows)]
            return x if cut == "none" else model.front(x)

    rows, device = np.arange(len(pixels)), torch.device("cpu")
    a, b = (embed(model, Source(), rows, device, fold=fold) for fold in (False, True))
    assert (nn.functional.normalize(a) - nn.functional.normalize(b)).abs().max() < 1e-5
    assert [m.training for m in model.modules()] == modes
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
