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
from nearkin.models.projections import (
    ClassicalHead,
    ITMLHead,
    KwokTsangHead,
    LDAHead,
    LMNNHead,
    MCMLHead,
    MMCHead,
    NCAHead,
    PCAWhiteningHead,
    POLAHead,
    SchultzJoachimsHead,
)
from nearkin.models.resnet50 import ResNet50
from nearkin.models.timm import Timm

__all__ = [
    "BNInception",
    "Backbone",
    "ClassicalHead",
    "ConvNet",
    "DRMLHead",
    "EfficientNetLite0",
    "EfficientNetLite1",
    "FeatureSource",
    "FittedHead",
    "GoogLeNet",
    "ITMLHead",
    "InputRecord",
    "KwokTsangHead",
    "LDAHead",
    "LMNNHead",
    "LinearHead",
    "MCMLHead",
    "MMCHead",
    "Model",
    "NCAHead",
    "NoHead",
    "PCAHead",
    "PCAWhiteningHead",
    "POLAHead",
    "ResNet50",
    "SchultzJoachimsHead",
    "Timm",
    "build_model",
    "create_backbone",
]
