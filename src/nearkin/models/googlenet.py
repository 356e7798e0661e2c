"""The backbone `googlenet`: GoogLeNet under the parameter names of torchvision."""

import torch
from torch import Tensor, nn

from nearkin.models.backbone import Backbone, InputRecord, init_convolutions
from nearkin.registry import BACKBONES

# Output channels per branch: 1x1; 1x1 before 3x3, 3x3; 1x1 before "5x5", "5x5"; 1x1 after pooling
INCEPTIONS = {
    "inception3a": (64, 96, 128, 16, 32, 32),
    "inception3b": (128, 128, 192, 32, 96, 64),
    "inception4a": (192, 96, 208, 16, 48, 64),
    "inception4b": (160, 112, 224, 24, 64, 64),
    "inception4c": (128, 128, 256, 24, 64, 64),
    "inception4d": (112, 144, 288, 32, 64, 64),
    "inception4e": (256, 160, 320, 32, 128, 128),
    "inception5a": (256, 160, 320, 32, 128, 128),
    "inception5b": (384, 192, 384, 48, 128, 128),
}


class ConvBN(nn.Module):
    """A convolution without bias that keeps the side (or divides it by `stride`), BatchNorm and ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=1e-3)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, h, w) -> (B, outputs, ⌈h / stride⌉, ⌈w / stride⌉)."""
        return self.relu(self.bn(self.conv(x)))


class Inception(nn.Module):
    """An inception block: four branches of the input, concatenated (1x1; 3x3; "5x5"; maxima, then 1x1)."""

    def __init__(self, inputs: int, one: int, reduce3: int, three: int, reduce5: int, five: int, pool: int):
        super().__init__()
        self.branch1 = ConvBN(inputs, one, 1)
        self.branch2 = nn.Sequential(ConvBN(inputs, reduce3, 1), ConvBN(reduce3, three, 3))
        self.branch3 = nn.Sequential(ConvBN(inputs, reduce5, 1), ConvBN(reduce5, five, 3))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, padding=1, ceil_mode=True), ConvBN(inputs, pool, 1))

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, h, w) -> (B, one + three + five + pool, h, w)."""
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


@BACKBONES.register("googlenet")
class GoogLeNet(Backbone):
    """GoogLeNet (Szegedy et al. 2015) as torchvision has it: with BatchNorm, and with 3x3 convolutions where the
    paper has 5x5. The parameter names are torchvision's, so that its ImageNet checkpoint loads.

    The weights come from TensorFlow and take (x - 0.5) / 0.5. torchvision hides this: it normalises by the ImageNet
    statistics outside the network and undoes that inside it (transform_input). The stages are stem, inception3a and 3b,
    4a to 4e, 5a and 5b; the last map of a 224 pixel image is (1024, 7, 7).

    Parameters:
        classifier: also make the parameters of the three classifiers, for a whole public checkpoint; never run

    Example:
        model = nearkin.models.build_model(backbone="googlenet", weights="googlenet.pth", dim=512)
        z = model(images).z                                     # (B, 3, 224, 224) uint8 -> (B, 512)
    """

    record = InputRecord(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
    features = 1024
    stages = ("stem", *INCEPTIONS)

    def __init__(self, classifier: bool = False):
        super().__init__()
        self.conv1 = ConvBN(3, 64, 7, stride=2)
        self.maxpool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv2 = ConvBN(64, 64, 1)
        self.conv3 = ConvBN(64, 192, 3)
        self.maxpool2 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.maxpool3 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.maxpool4 = nn.MaxPool2d(2, 2, ceil_mode=True)
        inputs = 192
        for name, widths in INCEPTIONS.items():
            self.add_module(name, Inception(inputs, *widths))
            one, _, three, _, five, pool = widths
            inputs = one + three + five + pool
        if classifier:
            self.fc = nn.Linear(self.features, 1000)
            self.aux1 = auxiliary(512)  # behind inception4a
            self.aux2 = auxiliary(528)  # behind inception4d
        init_convolutions(self)

    def stage_modules(self, name: str) -> list[nn.Module]:
        """The modules of a stage; the pooling that follows 3b and 4e belongs to their stages."""
        if name == "stem":
            return [self.conv1, self.maxpool1, self.conv2, self.conv3, self.maxpool2]
        pool = {"inception3b": [self.maxpool3], "inception4e": [self.maxpool4]}.get(name, [])
        return [getattr(self, name), *pool]


def auxiliary(inputs: int) -> nn.ModuleDict:
    """The parameters of an auxiliary classifier on a map with this many channels; it is never run."""
    return nn.ModuleDict({"conv": ConvBN(inputs, 128, 1), "fc1": nn.Linear(2048, 1024), "fc2": nn.Linear(1024, 1000)})
