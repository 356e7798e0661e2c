"""Models: `build_model(backbone=..., ...)`, backbones in plain torch, the cut."""

from nearkin.models.backbone import Backbone, InputRecord
from nearkin.models.bn_inception import BNInception
from nearkin.models.build import build_model, create_backbone
from nearkin.models.convnet import ConvNet
from nearkin.models.cut import FeatureSource
from nearkin.models.efficientnet_lite0 import EfficientNetLite0
from nearkin.models.googlenet import GoogLeNet
from nearkin.models.model import Model
from nearkin.models.resnet50 import ResNet50

__all__ = [
    "BNInception", "Backbone", "ConvNet", "EfficientNetLite0", "FeatureSource", "GoogLeNet", "InputRecord", "Model",
    "ResNet50", "build_model", "create_backbone",
]
