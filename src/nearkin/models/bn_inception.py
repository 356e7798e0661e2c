"""The backbone `bn_inception`: BN-Inception under the parameter names of its Caffe port."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearkin.errors import NearkinError
from nearkin.models.backbone import Backbone, InputRecord, init_convolutions
from nearkin.registry import BACKBONES

LEAST_SIDE = 63


class Widths(NamedTuple):
    """Output channels of the convolutions of one inception block, branch by branch."""

    one: int  # 1x1; 0: the block halves the map and has no such branch
    three: tuple[int, int]  # 3x3_reduce, 3x3
    double: tuple[int, int]  # double_3x3_reduce, each of the two 3x3
    project: int  # pool_proj; 0: the pool is not projected


INCEPTIONS = {
    "inception_3a": Widths(64, (64, 64), (64, 96), 32),
    "inception_3b": Widths(64, (64, 96), (64, 96), 64),
    "inception_3c": Widths(0, (128, 160), (64, 96), 0),
    "inception_4a": Widths(224, (64, 96), (96, 128), 128),
    "inception_4b": Widths(192, (96, 128), (96, 128), 128),
    "inception_4c": Widths(160, (128, 160), (128, 160), 128),
    "inception_4d": Widths(96, (128, 192), (160, 192), 128),
    "inception_4e": Widths(0, (128, 192), (192, 256), 0),
    "inception_5a": Widths(352, (192, 320), (160, 224), 128),
    "inception_5b": Widths(352, (192, 320), (192, 224), 128),
}


@BACKBONES.register("bn_inception")
class BNInception(Backbone):
    """BN-Inception (Ioffe and Szegedy 2015) with the flat parameter names of the Caffe port that
    pretrained-models.pytorch distributes, so that its ImageNet checkpoint loads.

    Every convolution has a bias and is followed by BatchNorm and ReLU. Each inception block concatenates up to four
    branches of its input:

        1x1 | 3x3_reduce -> 3x3 | double_3x3_reduce -> double_3x3_1 -> double_3x3_2 | pool -> pool_proj

    The blocks 3c and 4e halve the map: they have no 1x1 branch, the last convolution of a branch has stride 2, and the
    pool is not projected. Their input must have an even side, as it has for images of 32n - 1 to 32n + 6 pixels, n ≥ 2
    (223 to 230); any other side is refused, as the original cannot take it either. Images go in as BGR in 0-255, minus
    the mean. The stages are stem, inception_3a to 3c, 4a to 4e, 5a and 5b; the last map of a 224 pixel image is
    (1024, 7, 7).

    Parameters:
        classifier: also make the parameters of the 1000-class classifier, for a whole public checkpoint; never run

    Example:
        model = nearkin.models.build_model(backbone="bn_inception", weights="bn_inception.pth", dim=512)
        z = model(images).z                                     # (B, 3, 224, 224) uint8 -> (B, 512)
    """

    record = InputRecord(mean=(104.0, 117.0, 128.0), std=(1.0, 1.0, 1.0), scale=1.0, bgr=True)
    features = 1024
    stages = ("stem", *INCEPTIONS)

    def __init__(self, classifier: bool = False):
        super().__init__()
        self.add_conv("conv1_7x7_s2", 3, 64, 7, stride=2)
        self.add_conv("conv2_3x3_reduce", 64, 64, 1)
        self.add_conv("conv2_3x3", 64, 192, 3)
        inputs = 192
        for name, (one, three, double, project) in INCEPTIONS.items():
            stride = 1 if one else 2
            if one:
                self.add_conv(f"{name}_1x1", inputs, one, 1)
            self.add_conv(f"{name}_3x3_reduce", inputs, three[0], 1)
            self.add_conv(f"{name}_3x3", *three, 3, stride=stride)
            self.add_conv(f"{name}_double_3x3_reduce", inputs, double[0], 1)
            self.add_conv(f"{name}_double_3x3_1", *double, 3)
            self.add_conv(f"{name}_double_3x3_2", double[1], double[1], 3, stride=stride)
            if project:
                self.add_conv(f"{name}_pool_proj", inputs, project, 1)
            inputs = one + three[1] + double[1] + (project or inputs)
        if classifier:
            self.last_linear = nn.Linear(self.features, 1000)
        init_convolutions(self)

    def add_conv(self, name: str, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        """Add a convolution `name` that keeps the side (or divides it by `stride`) and its BatchNorm `name`_bn."""
        self.add_module(name, nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2))
        # The port sets momentum 0.9. In Caffe that is the weight of the old value, in torch that of the new one, so
        # that 0.1 is what is intended.
        self.add_module(f"{name}_bn", nn.BatchNorm2d(outputs, momentum=0.1))

    def conv(self, name: str, x: Tensor) -> Tensor:
        """A map (B, C, h, w) through the convolution `name`, its BatchNorm and ReLU."""
        return F.relu(getattr(self, f"{name}_bn")(getattr(self, name)(x)), inplace=True)

    def stage_modules(self, name: str) -> list[nn.Module]:
        """The convolutions and BatchNorms of a stage, found by the beginning of their names."""
        prefixes = ("conv1_", "conv2_") if name == "stem" else f"{name}_"
        return [module for child, module in self.named_children() if child.startswith(prefixes)]

    @classmethod
    def check_side(cls, side: int) -> None:
        """Convolution and pooling of 3c and of 4e agree about the half of an even side only."""
        if side < LEAST_SIDE or (side + 1) % 32 >= 8:
            below, above = side // 32 * 32 + 6, side // 32 * 32 + 31
            near = max(LEAST_SIDE, below if side - below < above - side else above)
            raise NearkinError(
                f"bn_inception cannot take images of {side} pixels: the side must be 32n - 1 to 32n + 6, n at least 2; "
                f"the nearest is {near} (data.size, data.crop)"
            )

    def run_stage(self, name: str, x: Tensor) -> Tensor:
        """The stem divides the side by 8, 3c and 4e by 2; the other blocks keep it."""
        if name == "stem":
            for side in x.shape[2:]:
                self.check_side(side)
            x = halved(self.conv("conv1_7x7_s2", x))
            return halved(self.conv("conv2_3x3", self.conv("conv2_3x3_reduce", x)))
        three = self.conv(f"{name}_3x3", self.conv(f"{name}_3x3_reduce", x))
        double = self.conv(f"{name}_double_3x3_1", self.conv(f"{name}_double_3x3_reduce", x))
        double = self.conv(f"{name}_double_3x3_2", double)
        if not INCEPTIONS[name].one:
            return torch.cat([three, double, halved(x)], 1)
        if name == "inception_5b":  # the only block with a branch of maxima
            pool = F.max_pool2d(x, 3, 1, padding=1)
        else:
            pool = F.avg_pool2d(x, 3, 1, padding=1)
        return torch.cat([self.conv(f"{name}_1x1", x), three, double, self.conv(f"{name}_pool_proj", pool)], 1)


def halved(x: Tensor) -> Tensor:
    """The map (B, C, h, w) at half its side, rounded down, by maxima over 3x3 pixels."""
    return F.max_pool2d(x, 3, 2, ceil_mode=True)
