"""Loading checkpoints into backbones: every parameter must be present and fit, except those of the classifier, which a
backbone does not have."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nearkin.errors import NearkinError, and_more
from nearkin.models.backbone import Backbone
from nearkin.models.checkpoints import imagenet

# The names that public checkpoints give to their classifiers, auxiliary ones included.
CLASSIFIERS = ("fc.", "_fc.", "last_linear.", "aux", "classifier", "head.")


def load_weights(backbone: Backbone, weights: str) -> None:
    """Load a checkpoint into a backbone, in place.

    `weights` is "imagenet" (`nearkin.models.checkpoints` says where they come from) or the path of a local .pth, .pt or
    .safetensors, which may be the model.pt of a run. Parameters of a classifier, and of a run's head, are ignored. A
    NearkinError names what is missing, unexpected or of another shape; the backbone is then unchanged.
    """
    path = imagenet(backbone.name) if weights == "imagenet" else Path(weights).expanduser()
    backbone.network.load_state_dict(fitting(backbone, path), strict=False)  # `fitting` was strict


def fitting(backbone: Backbone, path: Path) -> dict[str, Tensor]:
    """The parameters of a checkpoint under the names of the backbone's; a NearkinError when they do not fit."""
    state = read_checkpoint(path, inner_name(backbone))
    expected = backbone.network.state_dict()
    # Checkpoints older than torch 0.4.1 lack the counter of batches; some ports of BN-Inception keep statistics of
    # shape (1, C) instead of (C,).
    expected = {k: v for k, v in expected.items() if k in state or not k.endswith("num_batches_tracked")}
    state = {k: v for k, v in state.items() if k in expected or not k.startswith(CLASSIFIERS)}
    for k, v in state.items():
        if k in expected and v.shape == (1, *expected[k].shape):
            state[k] = v[0]
    problems = [
        _problem("missing", [k for k in expected if k not in state]),
        _problem("unexpected", [k for k in state if k not in expected]),
        _problem(
            "of another shape",
            [
                f"{k} {tuple(v.shape)} for {tuple(expected[k].shape)}"
                for k, v in state.items()
                if k in expected and v.shape != expected[k].shape
            ],
        ),
    ]
    if any(problems):
        raise NearkinError(f"{path} is not a checkpoint of {backbone.name}: {'; '.join(filter(None, problems))}")
    return state


def inner_name(backbone: Backbone) -> str:
    """The prefix of a parameter's public name in the state of a run: 'backbone.', or 'backbone.trunk.'."""
    name = next(name for name, module in backbone.named_modules() if module is backbone.network)
    return f"backbone.{name}." if name else "backbone."


def _problem(what: str, keys: list[str]) -> str:
    """'5 missing (a, b, c and 2 more)'; empty when there is no such key."""
    return f"{len(keys)} {what} ({and_more(keys, 3)})" if keys else ""


def check_file(path: Path) -> None:
    """A NearkinError if weights do not name a file."""
    if (path / "model.pt").is_file():
        raise NearkinError(f"weights={str(path)!r} is the folder of a run; its weights are {path / 'model.pt'}")
    if not path.is_file():
        raise NearkinError(f"weights={str(path)!r}: no such file; give 'imagenet' or a local .pth, .pt or .safetensors")


def read_checkpoint(path: Path, prefix: str = "backbone.") -> dict[str, Tensor]:
    """The tensors of a checkpoint by name; of a run's states those of its backbone, whose names begin with `prefix`. A
    NearkinError when the file is absent, unreadable or holds anything else; code in the file is never run."""
    check_file(path)
    try:
        state = read(path)
    except Exception as error:  # torch, pickle, zipfile and safetensors each raise their own
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
        raise NearkinError(f"{path} is not a readable checkpoint (truncated? another format?): {reason}") from error
    if is_of_a_run(state):
        state = {k.removeprefix(prefix): v for k, v in state["model"].items() if k.startswith(prefix)}
    if not isinstance(state, dict) or not state or not all(isinstance(v, Tensor) for v in state.values()):
        raise NearkinError(f"{path} holds no tensors by name; a checkpoint is a state_dict saved with torch.save")
    return dict(state)


def read(path: Path) -> Any:
    """The content of a .safetensors file, or of one that torch.save wrote, on the CPU. Errors of torch and safetensors
    are not caught."""
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    return torch.load(path, map_location="cpu", weights_only=True)


def is_of_a_run(state: Any) -> bool:
    """Is it what a run saves: the states of model and objective?"""
    return isinstance(state, dict) and isinstance(state.get("model"), dict) and isinstance(state.get("objective"), dict)
