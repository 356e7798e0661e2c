"""Weights from a formula: a network gives the same numbers here and in the implementation that it must equal."""

import torch
from torch import Tensor, nn


def filled(network: nn.Module) -> nn.Module:
    """In float64 and eval mode, each tensor a sine of its own phase, scaled so that activations keep their size."""
    state = {}
    for i, (key, value) in enumerate(sorted(network.state_dict().items())):
        wave = torch.sin(torch.arange(value.numel(), dtype=torch.float64) ** 1.5 + i).view(value.shape)
        if value.ndim > 1:
            wave = wave * (4 / value[0].numel()) ** 0.5
        elif key.endswith(("running_var", "weight")):
            wave = 1 + 0.3 * wave
        else:
            wave = 0.1 * wave
        state[key] = value if key.endswith("num_batches_tracked") else wave
    network = network.double().eval()
    network.load_state_dict(state)
    return network


def waves(side: int) -> Tensor:
    return torch.sin(torch.arange(3 * side * side, dtype=torch.float64) ** 1.1).view(1, 3, side, side)


def summary(x: Tensor) -> list[float]:
    """Mean, spread, and a projection that tells places and channels apart."""
    projection = x.flatten() @ torch.sin(torch.arange(x.numel(), dtype=torch.float64))
    return [float(v) for v in (x.mean(), x.std(), projection)]
