"""The backbone `resnet50`: ResNet-50 under the parameter names of torchvision."""

from torch import Tensor, nn

from nearkin.models.backbone import IMAGENET_MEAN, IMAGENET_STD, Backbone, InputRecord, init_convolutions
from nearkin.registry import BACKBONES

LAYERS = ((64, 3), (128, 4), (256, 6), (512, 3))  # per layer: width, bottlenecks
EXPANSION = 4


class Bottleneck(nn.Module):
    """Convolutions 1x1, 3x3 (with the stride) and 1x1 to four times the width, plus the input, which a 1x1 convolution
    brings to the same shape where needed."""

    def __init__(self, inputs: int, width: int, stride: int):
        super().__init__()
        outputs = EXPANSION * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, h, w) -> (B, 4 · width, ⌈h / stride⌉, ⌈w / stride⌉)."""
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + shortcut)


@BACKBONES.register("resnet50")
class ResNet50(Backbone):
    """ResNet-50 (He et al. 2016) in the v1.5 form, where the 3x3 convolution of a bottleneck has the stride. The
    parameter names are torchvision's, so that its ImageNet checkpoints load.

    The stages are stem and layer1 to layer4 with 3, 4, 6 and 3 bottlenecks; the last map of a 224 pixel image is
    (2048, 7, 7).

    Parameters:
        classifier: also make the parameters of the 1000-class classifier, for a whole public checkpoint; never run

    Example:
        model = nearkin.models.build_model(backbone="resnet50", weights="resnet50.pth", dim=512)
        z = model(images).z                                     # (B, 3, 224, 224) uint8 -> (B, 512)
    """

    record = InputRecord(mean=IMAGENET_MEAN, std=IMAGENET_STD)
    features = EXPANSION * LAYERS[-1][0]
    stages = ("stem", "layer1", "layer2", "layer3", "layer4")

    def __init__(self, classifier: bool = False):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        inputs = 64
        for stage, (width, blocks) in zip(self.stages[1:], LAYERS, strict=True):
            layer = nn.Sequential()
            for i in range(blocks):
                layer.append(Bottleneck(inputs, width, stride=2 if i == 0 and stage != "layer1" else 1))
                inputs = EXPANSION * width
            self.add_module(stage, layer)
        if classifier:
            self.fc = nn.Linear(self.features, 1000)
        init_convolutions(self)

    def stage_modules(self, name: str) -> list[nn.Module]:
        """Convolution, BatchNorm, ReLU and pooling of the stem; else the one layer of that name."""
        if name == "stem":
            return [self.conv1, self.bn1, self.relu, self.maxpool]
        return super().stage_modules(name)
