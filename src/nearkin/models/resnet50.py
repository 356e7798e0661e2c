"""ResNet-50 (He et al. 2016) in the v1.5 form, where the 3x3 convolution of a bottleneck strides; parameter names of
torchvision, so that its ImageNet checkpoints load."""

from torch import Tensor, nn

from nearkin.models.backbone import IMAGENET_MEAN, IMAGENET_STD, Backbone, InputRecord, init_convolutions
from nearkin.registry import BACKBONES

LAYERS = ((64, 3), (128, 4), (256, 6), (512, 3))    # width, bottlenecks
EXPANSION = 4


class Bottleneck(nn.Module):
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
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        return self.relu(self.bn3(self.conv3(x)) + shortcut)


@BACKBONES.register("resnet50")
class ResNet50(Backbone):
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
        if name == "stem":
            return [self.conv1, self.bn1, self.relu, self.maxpool]
        return super().stage_modules(name)
