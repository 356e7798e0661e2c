"""`build_model`: a backbone by name, its weights, a head. Random weights come from torch's global generator:
seed it first."""

import inspect
import sys
from typing import Any, Literal

import torch
from torch import nn

from nearkin.config.identity import source_of
from nearkin.errors import NearkinError
from nearkin.models.backbone import Backbone, PlainBackbone, check_backbone, in_one_line
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
    init: Literal["kaiming", "torch", "pca"] = "kaiming",
    parts: int = 4,
    pre_norm: Literal["none", "layer"] = "none",
    norm: Literal["none", "layer"] = "none",
    freeze_bn: bool = False,
    bn_affine: bool = True,
    cut: str = "none",
) -> Model:
    """`weights`: None (random), "imagenet" (from a package or the folder NEARKIN_WEIGHTS) or a local .pth, .pt or
    .safetensors; the other settings are those of `Model`."""
    trunk = create_backbone(backbone)
    if weights is not None:
        load_weights(trunk, weights)
    model = Model(
        trunk,
        pool=pool,
        head=head,
        dim=dim,
        init=init,
        parts=parts,
        pre_norm=pre_norm,
        norm=norm,
        freeze_bn=freeze_bn,
        bn_affine=bn_affine,
        cut=cut,
        pretrained=weights is not None,
    )
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # 1.7 times faster on a CPU


def create_backbone(name: str) -> Backbone:
    """A registered name, an import path or `timm/NAME`.

    What it names is a class, or a function that makes the network: a `Backbone`, or any other `nn.Module`, which a
    `PlainBackbone` is then put around. One from outside nearkin is tried on one image; what is wrong with it is a
    NearkinError.
    """
    part = BACKBONES[name]
    try:
        made = part()
    except NearkinError:
        raise
    except Exception as error:  # constructors of others may raise anything
        raise NearkinError(f"backbone {name!r} cannot be built: {in_one_line(error)}") from error
    if not isinstance(made, nn.Module):
        kinds = "a nearkin.models.Backbone or any other torch.nn.Module"
        raise NearkinError(f"backbone {name!r} makes a {type(made).__name__}; it must make {kinds}")
    source = source_of(part)
    if not isinstance(made, Backbone):
        return PlainBackbone(made, name, source)
    if source is not None and _is_new(part):
        check_backbone(made, name)
    if not hasattr(made, "name"):
        made.name = name  # type: ignore[misc]  # an import path was never registered
    return made


def _is_new(part: Any) -> bool:
    """Does code from outside define the network? A class derived from one of nearkin's may only change how it runs; the
    network is then known."""
    described = {"__init__", "features", "record", "stages", "stage_modules"}
    if not inspect.isclass(part):
        return True
    return any(described & vars(base).keys() for base in inspect.getmro(part) if source_of(base) is not None)


def makes_network(part: Any) -> bool:
    """Is it a function that could make a network: written in Python, not in its standard library, and callable without
    arguments?"""
    function = getattr(part, "func", part)  # a partial
    if not (inspect.isfunction(function) or (function is not part and inspect.isclass(function))):
        return False
    needed = [p for p in inspect.signature(part).parameters.values() if p.default is p.empty]
    alone = all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in needed)
    return alone and function.__module__.partition(".")[0] not in sys.stdlib_module_names


BACKBONES.takes(
    nn.Module,
    form=makes_network,
    words="a nearkin.models.Backbone, any other torch.nn.Module, or a function without arguments that makes one",
)
