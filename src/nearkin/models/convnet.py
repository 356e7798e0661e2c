"""ConvNet: four blocks of 3x3 convolution, BatchNorm, ReLU and 2x2 max pooling, for images of 32 pixels.

Small enough to train from scratch on a CPU in minutes: more than 500 images a second and core.
"""

from itertools import pairwise

from torch import nn

from nearkin.models.backbone import Backbone, InputRecord, init_convolutions
from nearkin.registry import BACKBONES

WIDTHS = (32, 64, 128, 256)


@BACKBONES.register("convnet")
class ConvNet(Backbone):
    record = InputRecord(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), size=32, resize=32, crop=32)
    features = WIDTHS[-1]
    stages = ("block1", "block2", "block3", "block4")

    def __init__(self) -> None:
        super().__init__()
        for stage, (inputs, outputs) in zip(self.stages, pairwise((3, *WIDTHS)), strict=True):
            block = nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(inplace=True),
                nn.MaxPool2d(2),
            )
            self.add_module(stage, block)
        init_convolutions(self)
