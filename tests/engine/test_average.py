"""The moving average of the weights against a loop, and BatchNorm under weights that were never trained."""

import numpy as np
import pytest
import torch
from torch import nn

from nearkin.engine.average import Average
from nearkin.engine.embed import run as forward
from nearkin.engine.norms import measure_statistics
from nearkin.models import build_model


@pytest.mark.parametrize("decay", [0.5, 0.9, 0.98])
def test_it_is_the_recursion_and_even_at_first(decay):
    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    average = Average(decay, net, nn.Identity())
    trail = [net.weight.detach().clone()]
    for step in range(1, 60):
        with torch.no_grad():
            net.weight.add_(torch.randn_like(net.weight))
        trail.append(net.weight.detach().clone())
        average.update(step)
    wanted = trail[0]
    for step, weight in enumerate(trail[1:], 1):
        d = min(decay, step / (step + 1))
        wanted = d * wanted + (1 - d) * weight
    assert torch.allclose(average.model.weight, wanted, atol=1e-5)
    early = Average(0.98, net, nn.Identity())
    even = [net.weight.detach().clone()]
    for step in range(1, 20):
        with torch.no_grad():
            net.weight.add_(1.0)
        even.append(net.weight.detach().clone())
        early.update(step)
    assert torch.allclose(early.model.weight, torch.stack(even).mean(0), atol=1e-4)


def test_what_is_trained_is_untouched_and_without_decay_nothing_is_copied():
    net = nn.Linear(3, 2)
    before = net.weight.detach().clone()
    Average(0.9, net, nn.Identity()).update(1)
    assert torch.equal(net.weight, before)
    off = Average(0.0, net, nn.Identity())
    off.update(1)
    assert off.model is net
    assert off.state_dict() == []


class Images:
    """A source of made-up images."""

    def __init__(self, images):
        self.images = images

    def test(self, indices):
        return self.images[torch.from_numpy(indices)]


def test_measured_statistics_are_the_means_over_all_images():
    torch.manual_seed(0)
    images = torch.randint(0, 256, (192, 3, 32, 32), dtype=torch.uint8)
    model = build_model(backbone="convnet", dim=8)
    rows, cpu = np.arange(192), torch.device("cpu")
    seen = []
    norm = model.batch_norms()[0]
    hook = norm.register_forward_hook(lambda module, args, out: seen.append(args[0].detach()))
    measure_statistics(model, Images(images), rows, cpu)
    hook.remove()
    assert sorted(len(x) for x in seen) == [64, 64, 64]
    wanted = torch.stack([x.mean((0, 2, 3)) for x in seen]).mean(0)
    assert torch.allclose(norm.running_mean, wanted, atol=1e-5)
    assert norm.momentum == 0.1
    assert model.training
    frozen = build_model(backbone="convnet", dim=8, freeze_bn=True)
    before = {name: value.clone() for name, value in frozen.named_buffers()}
    measure_statistics(frozen, Images(images), rows, cpu)
    assert all(torch.equal(before[name], value) for name, value in frozen.named_buffers())
    assert torch.isfinite(forward(model.eval(), images[:2])).all()
