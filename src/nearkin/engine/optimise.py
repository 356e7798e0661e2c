"""The optimiser of a run: parameter groups, schedules, clipping."""

import math
from typing import Any

import torch
from torch import nn

from nearkin.config.settings import GroupSpec, TrainSpec
from nearkin.errors import NearkinError
from nearkin.methods.base import Method
from nearkin.models import Model

OPTIMISERS: dict[str, Any] = {
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}


def make_optimiser(spec: TrainSpec, model: Model, objective: Method) -> torch.optim.Optimizer:
    """Parameter groups of the backbone, the head and the loss; `train.groups` overrides any of them."""
    groups = model.trainable_groups() + [{**g, "new": True} for g in objective.parameter_groups()]
    if unknown := set(spec.groups) - {g["name"] for g in groups}:
        known = ", ".join(g["name"] for g in groups)
        raise NearkinError(f"train.groups.{sorted(unknown)[0]}: no such group; choices: {known}")
    if not groups:
        raise NearkinError(
            "there is nothing to train: the network is frozen up to its end (model.cut=all, model.head=none) and the "
            "loss has no parameters; use a head, or train.epochs=0 for the untrained network"
        )
    base_lr = spec.lr or 0.0
    settings = []
    for group in groups:
        override = spec.groups.get(group["name"], GroupSpec())
        lr = _or_default(override.lr, group.get("lr", base_lr * group.get("lr_factor", 1.0)))
        settings.append(
            {
                "name": group["name"],
                "new": group["new"],
                "params": group["params"],
                "lr": lr,
                "base_lr": lr,
                "weight_decay": _or_default(override.weight_decay, spec.weight_decay),
                **({} if spec.optimiser == "sgd" else {"eps": _or_default(override.eps, spec.eps)}),
                **({"momentum": spec.momentum} if spec.optimiser in ("sgd", "rmsprop") else {}),
            }
        )
    return OPTIMISERS[spec.optimiser](settings, lr=base_lr)


def _or_default(value: float | None, default: float) -> float:
    return default if value is None else value


def schedule(spec: TrainSpec, epoch: float, epochs: int) -> float:
    """The factor on every learning rate after `epoch` epochs."""
    if spec.schedule == "step":
        return spec.gamma ** (int(epoch) // spec.step)
    if spec.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * epoch / max(1, epochs)))
    return 1.0


def clip(spec: TrainSpec, parameters: list[nn.Parameter]) -> None:
    """Bound the gradients: each value, or the norm of all together, by `train.clip`."""
    if spec.clip_by == "value":
        nn.utils.clip_grad_value_(parameters, spec.clip)  # type: ignore[arg-type]
    else:
        nn.utils.clip_grad_norm_(parameters, spec.clip)  # type: ignore[arg-type]
