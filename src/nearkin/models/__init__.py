"""Models: `build_model(backbone=..., ...)`, backbones in plain torch, the cut."""

from nearkin.models.backbone import Backbone, InputRecord
from nearkin.models.bn_inception import BNInception
from nearkin.models.build import build_model, create_backbone
from nearkin.models.convnet import ConvNet
from nearkin.models.cut import FeatureSource
from nearkin.models.drml import DRMLHead
from nearkin.models.efficientnet_lite import EfficientNetLite0, EfficientNetLite1
from nearkin.models.fitted import FittedHead, PCAHead
from nearkin.models.googlenet import GoogLeNet
from nearkin.models.heads import LinearHead, NoHead
from nearkin.models.model import Model
from nearkin.models.projections import LDAHead, NCAHead, PCAWhiteningHead
from nearkin.models.resnet50 import ResNet50
from nearkin.models.timm import Timm

__all__ = [
    "BNInception",
    "Backbone",
    "ConvNet",
    "DRMLHead",
    "EfficientNetLite0",
    "EfficientNetLite1",
    "FeatureSource",
    "FittedHead",
    "GoogLeNet",
    "InputRecord",
    "LDAHead",
    "LinearHead",
    "Model",
    "NCAHead",
    "NoHead",
    "PCAHead",
    "PCAWhiteningHead",
    "ResNet50",
    "Timm",
    "build_model",
    "create_backbone",
]
