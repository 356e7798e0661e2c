"""The device that a run computes on."""

import torch

from nearkin.config.bounds import known_device
from nearkin.errors import NearkinError


def pick_device(name: str) -> torch.device:
    """The device that `train.device` names; `auto` is the first available of CUDA, Apple's GPU and the CPU."""
    known_device(name)
    available = devices()
    if name == "auto":
        return torch.device(available[0])
    device = torch.device(name)
    if name in available or (device.type not in ("cuda", "mps", "cpu") and _is_available(device)):
        return device
    raise NearkinError(
        f"device={name} is not available; choices: auto, {', '.join(available)} "
        "(`nearkin doctor` says what this machine has)"
    )


def devices() -> list[str]:
    """The names of the available devices, the fastest first: cuda, cuda:0, cuda:1, ..., mps, cpu."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    cuda = ["cuda", *(f"cuda:{index}" for index in range(gpus))] if gpus else []
    return [*cuda, *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]


def _is_available(device: torch.device) -> bool:
    """Is a device of another kind, one that a package supports, available?"""
    try:
        module = torch.get_device_module(device)
    except RuntimeError:
        return False
    return bool(module.is_available()) and (device.index or 0) < module.device_count()
