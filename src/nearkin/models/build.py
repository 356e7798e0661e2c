"""`build_model`: a backbone by name, its weights, a head. Random weights come from torch's global generator:
seed it first."""

from typing import Literal

import torch

from nearkin.models.backbone import Backbone
from nearkin.models.model import Model
from nearkin.models.weights import load_weights
from nearkin.registry import BACKBONES


def build_model(
    *,
    backbone: str,
    weights: str | None = None,
    pool: Literal["avg", "max", "both"] = "avg",
    head: Literal["linear", "none"] = "linear",
    dim: int = 128,
    norm: Literal["none", "layer"] = "none",
    freeze_bn: bool = False,
    cut: str = "none",
) -> Model:
    """`weights`: None (random), "imagenet" (those that come in a package) or a local .pth, .pt or .safetensors."""
    trunk: Backbone = BACKBONES[backbone]()
    if weights is not None:
        load_weights(trunk, weights)
    model = Model(
        trunk, pool=pool, head=head, dim=dim, norm=norm, freeze_bn=freeze_bn, cut=cut, pretrained=weights is not None
    )
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # 1.7 times faster on a CPU
