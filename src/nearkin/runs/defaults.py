"""Defaults: the values of settings that a spec does not set.

| network              | lr   | batch | epochs | BatchNorm | pooling | dim | measured on               |
|----------------------|------|-------|--------|-----------|---------|-----|---------------------------|
| from random weights  | 1e-3 | 128   | 8      | trains    | avg     | 128 | glyphs, batches of 32 x 4 |
| from given weights   | 3e-4 | 96    | 12     | frozen    | both    | F   | CUB at 128 px             |
| head alone (cut=all) | 1e-3 | 96    | 8      | frozen    | both    | F   | CUB: heads overfit early  |

A network from given weights never goes far from them: its linear head begins as the pooled feature itself, with as many
dimensions (F), head and proxies train before the rest, weights are averaged, the stored network lies between the first
and the trained one, and few classes are not shown too often (docs/recipe.md). Heads that begin otherwise have 512
dimensions, as in ProxyAnchor's code.
Frozen statistics as in Roth's code; pooling as in ProxyAnchor's. Losses with proxies use random batches (as the
code of ProxyAnchor, HIST and Psomas does), the others balanced ones. A method has its own head, HIST its LayerNorm. A
batch is never larger than the data.
"""

from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import torch
from pydantic import BaseModel

from nearkin.config.identity import source_of
from nearkin.config.parts import PARTS, Part, SamplerSpec
from nearkin.config.reading import Reading, settled
from nearkin.config.settings import ModelSpec
from nearkin.config.spec import RunSpec
from nearkin.errors import NearkinError
from nearkin.losses import Loss
from nearkin.models.backbone import InputRecord, is_count
from nearkin.models.build import create_backbone
from nearkin.registry import BACKBONES, hyperparameters

FEW = 32  # training classes; where there are fewer, none is shown more often than
SHOWN = 500  # times in all of a training, by its images together

Settings = TypeVar("Settings", bound=BaseModel)


def resolve(spec: RunSpec, **known: Any) -> RunSpec:
    """The same spec with all settings filled in, and with those that nothing reads at their defaults.

    Parameters:
        spec: the spec.
        known: what is known about its data (`nearkin.config.reading.Reading`); nothing before they are read.
    """
    filled = fill(spec)
    if (plain := settled(Reading(filled, **known))) != filled:
        filled = fill(plain)
    return complete(filled)


def fill(spec: RunSpec) -> RunSpec:
    """The same spec with unset settings filled in."""
    pretrained = spec.model.weights is not None
    head_alone = spec.model.cut == "all"
    careful = pretrained and spec.train.epochs != 0  # what is untrained is neither averaged nor blended
    epochs = 12 if pretrained and not head_alone else 8
    train: dict[str, Any] = {
        "lr": 3e-4 if pretrained and not head_alone else 1e-3,
        "batch": 96 if pretrained else 128,
        "epochs": epochs,
        "warmup": min(2, (epochs if spec.train.epochs is None else spec.train.epochs) // 4) if careful else 0,
        "average": 0.995 if careful else 0.0,
        "blend": 0.85 if careful else 1.0,
    }
    head = spec.model.head
    if head is None:  # parts of a stored run are not imported needlessly
        head = spec.method.cls.head if spec.method else "linear"
    init = spec.model.init or ("pca" if pretrained and head == "linear" else "kaiming")
    model: dict[str, Any] = {
        "freeze_bn": pretrained,
        "pool": "both" if pretrained else "avg",
        "head": head,
        "dim": 512 if pretrained else 128,
        "init": init,
    }
    if init == "pca" and spec.model.dim is None and head == "linear":
        model["dim"] = width_of(spec.model.backbone)
    if spec.model.norm is None:
        model["norm"] = spec.loss.cls.norm if issubclass(spec.loss.cls, Loss) else "none"
    record = record_of(spec.model)
    geometry = {"size": record.size, "resize": record.resize, "crop": record.crop}
    if spec.data.size is not None:  # a different size scales the rest of the record too
        geometry = {k: round(v * spec.data.size / record.size) for k, v in geometry.items()}
    return spec.model_copy(
        update={
            "train": _fill(spec.train, train),
            "model": _fill(spec.model, model),
            "sampler": spec.sampler or SamplerSpec(name="random" if takes_classes(spec) else "balanced"),
            "data": _fill(spec.data, geometry),
        }
    )


def complete(spec: RunSpec) -> RunSpec:
    """The same spec with all hyper-parameters of its parts."""
    parts = {name: _with_defaults(part) for name in PARTS if (part := getattr(spec, name)) is not None}
    return spec.model_copy(update=parts)


def _with_defaults(part: Part) -> Part:
    """A part with all its hyper-parameters; the defaults of a class from outside the registry are not listed."""
    if part.name not in part.registry:
        return part
    defaults = {k: p.default for k, p in hyperparameters(part.cls).items() if p.default is not p.empty}
    return part.model_copy(
        update={k: v for k, v in defaults.items() if k not in part.params and k not in part.fields()}
    )


def fit_batch(requested: RunSpec, resolved: RunSpec, labels: np.ndarray) -> RunSpec:
    """A batch size that was not set shrinks to what the training images can fill."""
    is_requested = requested.train.batch is not None and resolved.train.epochs != 0
    if is_requested or resolved.sampler is None:
        return resolved
    batch = min(resolved.train.batch or 0, len(labels))
    per_class = hyperparameters(resolved.sampler.cls).get("per_class")
    if per_class is not None:
        k = resolved.sampler.params.get("per_class", per_class.default)
        if k > batch:
            raise NearkinError(
                f"sampler.per_class={k}: at most {batch}, the images of a batch; training has {len(labels)}, and "
                f"train.batch is {resolved.train.batch} unless it is set"
            )
        distinct = k * (int(labels.max()) + 1) if resolved.sampler.name in ("balanced", "covering") else batch
        batch = min(batch, distinct) // k * k
    return resolved.model_copy(update={"train": resolved.train.model_copy(update={"batch": max(batch, 2)})})


def spare_few(requested: RunSpec, resolved: RunSpec, labels: np.ndarray) -> RunSpec:
    """Given weights and few classes with many images each: an epoch that was not set is shorter than all images. The
    more often a network sees the same few classes, the more it loses of what it knew of all others."""
    train, classes = resolved.train, int(labels.max()) + 1
    is_requested = requested.train.epochs is not None or requested.train.batches_per_epoch is not None
    if is_requested or resolved.model.weights is None or not train.epochs or not train.batch or classes >= FEW:
        return resolved
    steps = max(1, round(SHOWN * classes / (train.batch * train.epochs)))
    if steps >= len(labels) // train.batch:
        return resolved
    return resolved.model_copy(update={"train": train.model_copy(update={"batches_per_epoch": steps})})


def takes_classes(spec: RunSpec) -> bool:
    """Does the loss compare samples with its proxies, not with each other? False for losses of other libraries, where
    this is not known."""
    cls = spec.loss.cls
    return issubclass(cls, Loss) and cls.has_proxies


def _fill(part: Settings, values: dict[str, Any]) -> Settings:
    return part.model_copy(update={k: v for k, v in values.items() if getattr(part, k) is None})


def record_of(model: ModelSpec) -> InputRecord:
    """What input the backbone expects. Some networks know it only once they are built; one from outside is always
    built, so that its errors appear before any data are read."""
    part = BACKBONES[model.backbone]
    record = getattr(part, "record", None)
    if isinstance(record, InputRecord) and source_of(part) is None:
        return record
    return _built(model.backbone, part)[0]


def width_of(backbone: str) -> int:
    """F, the width of a backbone's pooled feature; it is built where its class does not tell."""
    part = BACKBONES[backbone]
    width = getattr(part, "features", None)
    if isinstance(width, int) and is_count(width) and source_of(part) is None:
        return width
    return _built(backbone, part)[1]


@lru_cache(maxsize=16)
def _built(name: str, part: Any) -> tuple[InputRecord, int]:
    """The record and the width of a network, which is built to read them; `part` is the current class of that name,
    which may be edited."""
    with torch.random.fork_rng(devices=[]):
        network = create_backbone(name)
        return network.record, network.features
