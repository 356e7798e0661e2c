"""Models: `build_model(backbone=..., ...)`, backbones in plain torch, the cut."""

from nearkin.models.backbone import Backbone, InputRecord
from nearkin.models.build import build_model
from nearkin.models.convnet import ConvNet
from nearkin.models.model import Model

__all__ = ["Backbone", "ConvNet", "InputRecord", "Model", "build_model"]
