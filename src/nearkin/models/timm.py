"""Any timm model as a backbone: `backbone=timm/NAME`. One stage, `trunk`; the cut is then none, trunk or all.

Weights are a local checkpoint with timm's parameter names; nothing is downloaded.
"""

import importlib
from difflib import get_close_matches
from types import ModuleType

from torch import Tensor, nn

from nearkin.errors import NearkinError
from nearkin.models.backbone import IMAGENET_MEAN, IMAGENET_STD, Backbone, InputRecord


class Timm(Backbone):
    stages = ("trunk",)

    def __init__(self, model: str):
        super().__init__()
        self.name = f"timm/{model}"  # type: ignore[misc]
        self.trunk = create(model)
        self.features = self.trunk.num_features  # type: ignore[assignment]
        self.record = input_record(getattr(self.trunk, "pretrained_cfg", {}))

    def run_stage(self, name: str, x: Tensor) -> Tensor:
        x = self.trunk.forward_features(x)  # type: ignore[operator]
        if x.ndim == 3:                                             # (B, T, C) tokens, class and register ones first
            patches = x[:, getattr(self.trunk, "num_prefix_tokens", 0) :]
            return patches.transpose(1, 2).unsqueeze(-1)            # (B, C, T, 1)
        if x.shape[1] != self.features and x.shape[-1] == self.features:
            return x.permute(0, 3, 1, 2)                            # some transformers keep channels last
        return x                                                    # (B, C, h, w)

    @property
    def network(self) -> nn.Module:
        return self.trunk


def create(model: str) -> nn.Module:
    timm = imported()
    try:
        return timm.create_model(model, pretrained=False, num_classes=0)
    except RuntimeError as error:
        close = ", ".join(get_close_matches(model, timm.list_models(), n=3)) or "nothing near"
        raise NearkinError(f"timm/{model}: {error}; near: {close}; all names: timm.list_models()") from error


def imported() -> ModuleType:
    try:
        return importlib.import_module("timm")
    except Exception as error:  # a torchvision that does not fit torch fails with RuntimeError, not ImportError
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise NearkinError(
            f"timm does not import ({reason}): pip install 'nearkin[timm]', with the torchvision that fits your torch; "
            "or take a backbone without timm"
        ) from error


def input_record(config: dict) -> InputRecord:
    size = config.get("input_size", (3, 224, 224))[-1]
    return InputRecord(
        mean=tuple(config.get("mean", IMAGENET_MEAN)),
        std=tuple(config.get("std", IMAGENET_STD)),
        size=size,
        resize=round(size / config.get("crop_pct", 0.875)),
        crop=size,
    )
