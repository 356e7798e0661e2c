"""Recipes: what the settings that a spec leaves open become, by the kind of network that trains.

| network              | lr   | batch | epochs | schedule | warm-up | BatchNorm | measured on                     |
|----------------------|------|-------|--------|----------|---------|-----------|---------------------------------|
| from random weights  | 1e-3 | 128   | 8      | constant | 0       | trains    | glyphs, batches of 32 x 4       |
| from given weights   | 3e-4 | 96    | 8      | cosine   | 1       | frozen    | CUB at 128 px                   |
| head alone (cut=all) | 1e-3 | 96    | 8      | constant | 0       | frozen    | CUB: heads overfit early        |

Warm-up as in ProxyAnchor's code, frozen statistics as in Roth's.
"""

from typing import Any, TypeVar

from pydantic import BaseModel

from nearkin.models.backbone import InputRecord
from nearkin.models.timm import Timm
from nearkin.registry import BACKBONES
from nearkin.spec import ModelSpec, RunSpec

Part = TypeVar("Part", bound=BaseModel)


def resolve(spec: RunSpec) -> RunSpec:
    """The same spec with nothing left open."""
    pretrained = spec.model.weights is not None
    head_alone = spec.model.cut == "all"
    fine_tuned = pretrained and not head_alone
    train = {
        "lr": 3e-4 if fine_tuned else 1e-3,
        "batch": 96 if pretrained else 128,
        "epochs": 8,
        "schedule": "cosine" if fine_tuned else "constant",
        "warmup": 1 if fine_tuned else 0,
    }
    record = record_of(spec.model)
    geometry = {"size": record.size, "resize": record.resize, "crop": record.crop}
    if spec.data.size is not None:  # a size of one's own scales the rest of the record along
        geometry = {k: round(v * spec.data.size / record.size) for k, v in geometry.items()}
    return spec.model_copy(
        update={
            "train": _fill(spec.train, train),
            "model": _fill(spec.model, {"freeze_bn": pretrained}),
            "data": _fill(spec.data, geometry),
        }
    )


def _fill(part: Part, values: dict[str, Any]) -> Part:
    return part.model_copy(update={k: v for k, v in values.items() if getattr(part, k) is None})


def record_of(model: ModelSpec) -> InputRecord:
    if model.backbone.startswith("timm/"):  # only the network itself knows
        return Timm(model.backbone.removeprefix("timm/")).record
    return BACKBONES[model.backbone].record

