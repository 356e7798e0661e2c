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
    """How uint8 RGB pixels become the input that a backbone's weights were trained on, and the default image sizes.

    The input is (x · scale - mean) / std, in the network's own channel order. Every backbone carries one as `record`;
    `Model.front` applies `normalise`, and a run whose spec sets no size takes `size`, `resize` and `crop` from it.

    Parameters:
        mean: one number per channel, in the network's channel order, after scaling
        std: one number per channel, likewise
        scale: factor on the pixel values 0-255
        bgr: the network takes blue, green, red; `mean` and `std` are then in that order too
        size: side of the square test crop, in pixels
        resize: shorter side of the image before the crops, in pixels
        crop: side of the square training crop, in pixels
    """

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    scale: float = 1 / 255
    bgr: bool = False
    size: int = 224
    resize: int = 256
    crop: int = 224

    def normalise(self, images: Tensor) -> Tensor:
        """RGB images (B, 3, H, W) uint8 -> the network's input (B, 3, H, W) float32, channels last in memory."""
        x = images.flip(1) if self.bgr else images                                          # (B, 3, H, W) uint8
        x = x.to(dtype=torch.float32, memory_format=torch.channels_last)
        mean, std = (x.new_tensor(v).view(1, 3, 1, 1) for v in (self.mean, self.std))
        return x.mul_(self.scale).sub_(mean).div_(std)                                      # (B, 3, H, W)


class Backbone(nn.Module):
    """An image network without its classifier, cut into named stages: the base class of every backbone.

    It maps a normalised image (B, 3, H, W) to the last feature map (B, C, h, w); pooling and head are the model's.
    A `Model` can freeze the stages up to any one of them (`cut=`). A subclass sets

        record      how pixels become its input, and at which sizes (`InputRecord`)
        features    C, the channels of the last map
        stages      the names of its stages in the order in which they run

    and by default has an attribute of each stage's name that holds its module. Where a stage is more than one module,
    override `stage_modules`; where they do not simply follow each other, `run_stage` too. `BACKBONES.register(name)`
    sets `name` and `version`. Random weights come from torch's global generator.

    Example:
        backbone = nearkin.models.create_backbone("convnet")
        maps = backbone(backbone.record.normalise(images))      # (B, 3, 32, 32) uint8 -> (B, 256, 2, 2)
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    record: InputRecord
    features: int
    stages: tuple[str, ...]

    def stage_modules(self, name: str) -> list[nn.Module]:
        """The modules of a stage in the order in which they run; freezing the stage freezes all of them."""
        return [getattr(self, name)]

    def run_stage(self, name: str, x: Tensor) -> Tensor:
        """The output of the previous stage (of the normalisation for the first) -> the output of this stage."""
        for module in self.stage_modules(name):
            x = module(x)
        return x

    def forward(self, x: Tensor) -> Tensor:
        """Normalised images (B, 3, H, W) -> the last map (B, C, h, w): all stages one after another."""
        for name in self.stages:
            x = self.run_stage(name, x)
        return x                                                                            # (B, C, h, w)

    @property
    def network(self) -> nn.Module:
        """The module whose parameter names are those of a public checkpoint: weights are loaded into it."""
        return self


def init_convolutions(network: nn.Module) -> None:
    """Draw the weights of all convolutions of a network anew and set their biases to 0, in place.

    The rule is that of He et al. 2015 in the fan-out form that ResNets use: it keeps the variance of the gradients
    through ReLUs. The numbers come from torch's global generator.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
