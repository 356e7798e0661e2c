"""What a backbone is: an image network without its classifier, cut into named stages.

    from nearkin.models import Backbone, InputRecord
    from nearkin.registry import BACKBONES

    @BACKBONES.register("my_net")
    class MyNet(Backbone):
        record = InputRecord(mean=(0.5,) * 3, std=(0.5,) * 3, size=64, resize=64, crop=64)
        features = 128
        stages = ("stem", "body")                   # by default the attributes of these names, in order
        def __init__(self): ...

Shapes: B images, C channels, h x w the last map.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class InputRecord:
    """How uint8 RGB pixels become the input that the weights were trained on: (x · scale - mean) / std, in the
    network's own channel order; and the default geometry."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    scale: float = 1 / 255
    bgr: bool = False       # mean and std are then in the order B, G, R too
    size: int = 224         # side of the test crop
    resize: int = 256       # shorter side before the centre crop
    crop: int = 224         # side of the training crop

    def normalise(self, images: Tensor) -> Tensor:
        x = images.flip(1) if self.bgr else images                                          # (B, 3, H, W) uint8
        x = x.to(dtype=torch.float32, memory_format=torch.channels_last)
        mean, std = (x.new_tensor(v).view(1, 3, 1, 1) for v in (self.mean, self.std))
        return x.mul_(self.scale).sub_(mean).div_(std)                                      # (B, 3, H, W)


class Backbone(nn.Module):
    name: ClassVar[str]
    version: ClassVar[int] = 1
    record: InputRecord
    features: int                                   # channels of the last map
    stages: tuple[str, ...]

    def stage_modules(self, name: str) -> list[nn.Module]:
        """The modules of a stage: what is frozen with it."""
        return [getattr(self, name)]

    def run_stage(self, name: str, x: Tensor) -> Tensor:
        for module in self.stage_modules(name):
            x = module(x)
        return x

    def forward(self, x: Tensor) -> Tensor:
        for name in self.stages:
            x = self.run_stage(name, x)
        return x                                                                            # (B, C, h, w)

    @property
    def network(self) -> nn.Module:
        """The module whose parameter names a public checkpoint uses."""
        return self


def init_convolutions(network: nn.Module) -> None:
    """He et al. 2015 in the fan-out form that ResNets use: keeps the variance of gradients through ReLUs."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
