"""Backbones from the package timm: `backbone=timm/NAME`."""

import importlib
from difflib import get_close_matches
from functools import partial
from types import ModuleType

from torch import Tensor, nn

from nearkin.errors import NearkinError
from nearkin.models.backbone import IMAGENET_MEAN, IMAGENET_STD, Backbone, InputRecord
from nearkin.registry import BACKBONES


class Timm(Backbone):
    """Any timm model as a backbone: `backbone=timm/NAME`.

    It has one stage, `trunk`; the cut is then none, trunk or all. Normalisation and sizes are those of timm's own
    configuration of the model. The last map is (B, C, h, w); of a transformer that gives tokens it is (B, C, T, 1), the
    T patches without class and register tokens. Weights are a local checkpoint with timm's parameter names; nothing is
    downloaded.

    Parameters:
        model: timm's name of the model, as `timm.list_models()` has it

    Example:
        model = nearkin.models.build_model(backbone="timm/vit_small_patch16_224", weights="vit.safetensors", dim=128)
        z = model(images).z                                     # (B, 3, 224, 224) uint8 -> (B, 128)
    """

    stages = ("trunk",)
    package = "timm"  # its version says what network it is, and counts in the name of a run

    def __init__(self, model: str):
        super().__init__()
        self.name = f"timm/{model}"  # type: ignore[misc]
        self.trunk = create(model)
        self.features = self.trunk.num_features  # type: ignore[assignment]
        self.record = input_record(getattr(self.trunk, "pretrained_cfg", {}))

    def run_stage(self, name: str, x: Tensor) -> Tensor:
        """Normalised images (B, 3, H, W) -> the last map with channels first, (B, C, h, w) or (B, C, T, 1)."""
        x = self.trunk.forward_features(x)  # type: ignore[operator]
        if x.ndim == 3:  # (B, P + T, C): P class and register tokens first
            patches = x[:, getattr(self.trunk, "num_prefix_tokens", 0) :]
            return patches.transpose(1, 2).unsqueeze(-1)  # (B, C, T, 1)
        if x.shape[1] != self.features and x.shape[-1] == self.features:
            return x.permute(0, 3, 1, 2)  # some transformers keep channels last
        return x  # (B, C, h, w)

    @property
    def network(self) -> nn.Module:
        """The timm model itself: a checkpoint has its parameter names, without `trunk.` before them."""
        return self.trunk


@BACKBONES.family("timm")
def named(model: str) -> partial[Timm]:
    """`timm/NAME` in a spec: what builds that network. Names such as `hf-hub:NAME` would have timm download."""
    if ":" in model:
        raise NearkinError(f"timm/{model}: nothing is downloaded; use a name of timm.list_models(), without ':'")
    return partial(Timm, model)


def create(model: str) -> nn.Module:
    """The timm model without classifier and with random weights; an unknown name is a NearkinError with similar
    names."""
    timm = imported()
    try:
        return timm.create_model(model, pretrained=False, num_classes=0)
    except RuntimeError as error:
        close = ", ".join(get_close_matches(model, timm.list_models(), n=3)) or "nothing near"
        raise NearkinError(f"timm/{model}: {error}; similar: {close}; all names: timm.list_models()") from error


def imported() -> ModuleType:
    """The package timm; a NearkinError with the reason and the remedy when it does not import."""
    try:
        return importlib.import_module("timm")
    except Exception as error:  # a torchvision that does not fit torch fails with RuntimeError, not ImportError
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise NearkinError(
            f"timm does not import ({reason}): pip install 'nearkin[timm]', with the torchvision that fits your torch; "
            "or take a backbone without timm"
        ) from error


def input_record(config: dict) -> InputRecord:
    """Normalisation and sizes from timm's configuration of a model; what it lacks is as for most ImageNet models."""
    size = config.get("input_size", (3, 224, 224))[-1]
    return InputRecord(
        mean=tuple(config.get("mean", IMAGENET_MEAN)),
        std=tuple(config.get("std", IMAGENET_STD)),
        size=size,
        resize=round(size / config.get("crop_pct", 0.875)),
        crop=size,
    )
