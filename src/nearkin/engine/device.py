"""The device that a run computes on."""

import torch

from nearkin.errors import NearkinError


def pick_device(name: str) -> torch.device:
    """`auto` is the first of CUDA, Apple's GPU and the CPU that is there."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(d for d, ok in there.items() if ok))
    if not there[name]:
        found = ", ".join(d for d, ok in there.items() if ok)
        raise NearkinError(f"device={name} is not available here; choices: {found}")
    return torch.device(name)
