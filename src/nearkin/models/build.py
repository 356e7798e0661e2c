"""`build_model`: a backbone by name, its weights, a head. Random weights come from torch's global generator:
seed it first."""

from typing import Literal

import torch

from nearkin.errors import NearkinError
from nearkin.models.backbone import Backbone
from nearkin.models.model import Model
from nearkin.models.weights import load_weights
from nearkin.registry import BACKBONES


def build_model(
    *,
    backbone: str,
    weights: str | None = None,
    pool: Literal["avg", "max", "both"] = "avg",
    head: str = "linear",
    dim: int = 128,
    parts: int = 4,
    norm: Literal["none", "layer"] = "none",
    freeze_bn: bool = False,
    cut: str = "none",
) -> Model:
    """`weights`: None (random), "imagenet" (those that come in a package) or a local .pth, .pt or .safetensors."""
    trunk = create_backbone(backbone)
    if weights is not None:
        load_weights(trunk, weights)
    model = Model(
        trunk, pool=pool, head=head, dim=dim, parts=parts, norm=norm, freeze_bn=freeze_bn, cut=cut,
        pretrained=weights is not None,
    )  # fmt: skip
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # 1.7 times faster on a CPU


def create_backbone(name: str) -> Backbone:
    """A registered name, an import path or `timm/NAME`."""
    trunk = BACKBONES[name]()
    if not isinstance(trunk, Backbone):
        raise NearkinError(f"backbone {name!r} is a {type(trunk).__name__}, not a nearkin.models.Backbone")
    return trunk
