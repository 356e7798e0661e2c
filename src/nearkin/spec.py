"""Specs: everything that decides the result of a run, typed and frozen.

    read_spec("run.yaml")                                   a file
    make_spec({"loss": "margin", "loss.beta": 1.2})         words, as on the command line
    make_spec({"loss": {"name": "margin", "beta": 1.2}})    a tree, as in YAML

A bare word is an alias (`loss` = `loss.name`, `dim` = `model.dim`, ...); anything else is dotted. Parts (loss,
miner, sampler, ...) take the keyword-only parameters of their class. An unknown key is an error that names the
near ones.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from nearkin import registry as registries
from nearkin.errors import NearkinError, choices
from nearkin.registry import Registry, hyperparameters
from nearkin.words import flatten, read_yaml

ALIASES = {
    "dataset": "data.name", "root": "data.root", "protocol": "protocol.name", "sampler": "sampler.name",
    "backbone": "model.backbone", "weights": "model.weights", "dim": "model.dim", "cut": "model.cut",
    "loss": "loss.name", "miner": "miner.name", "regulariser": "regulariser.name",
    "epochs": "train.epochs", "lr": "train.lr", "seed": "train.seed",
}  # fmt: skip
PLAIN = {"sampler.name": "balanced", "model.pool": "avg"}  # what recipes give where nothing speaks against it
UNHASHED = {"data.root", "train.device"}  # where and on what it runs, not what is run


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Part(BaseModel):
    """A registered class by name, with its hyper-parameters as further keys."""

    model_config = ConfigDict(frozen=True, extra="allow")
    registry: ClassVar[Registry]
    name: str

    @model_validator(mode="before")
    @classmethod
    def _typed(cls, data: Any) -> Any:
        """Check the hyper-parameters against the signature of the class that the name stands for."""
        if not isinstance(data, Mapping) or "name" not in {**cls._own_defaults(), **data}:
            return data
        name = data.get("name", cls._own_defaults().get("name"))
        signature = hyperparameters(cls.registry[str(name)])
        extras = {k: v for k, v in data.items() if k not in cls.model_fields}
        if name not in cls.registry:                # an import path: its own constructor is the judge
            return data
        for key in extras:
            if key not in signature:
                known = [*signature, *(k for k in cls.model_fields if k != "name")]
                raise NearkinError(f"unknown key {key!r} of {cls.registry.kind} {name!r}: {choices(key, known)}")
        return {**data, **_check_parameters(f"{cls.registry.kind} {name}", signature, extras)}

    @classmethod
    def _own_defaults(cls) -> dict[str, Any]:
        return {k: f.default for k, f in cls.model_fields.items() if not f.is_required()}

    @property
    def params(self) -> dict[str, Any]:
        return dict(self.__pydantic_extra__ or {})

    @property
    def cls(self) -> Any:
        return self.registry[self.name]


class DataSpec(Part):
    registry = registries.DATASETS
    name: str = "glyphs"
    root: Path | None = None
    size: int | None = Field(None, ge=8)        # pixels of the test crop; None: the backbone's record
    resize: int | None = Field(None, ge=8)      # shorter side before cropping; None: the backbone's record
    crop: int | None = Field(None, ge=8)        # pixels of the training crop; None: the backbone's record
    on_error: Literal["raise", "skip"] = "raise"


class ProtocolSpec(Part):
    registry = registries.PROTOCOLS
    name: str = "fixed_val"


class SamplerSpec(Part):
    registry = registries.SAMPLERS
    name: str = "balanced"


class LossSpec(Part):
    registry = registries.LOSSES
    name: str = "proxy_anchor"


class MinerSpec(Part):
    registry = registries.MINERS


class RegulariserSpec(Part):
    registry = registries.REGULARISERS


class ModelSpec(Frozen):
    backbone: str = "convnet"
    weights: str | None = None                  # None, "imagenet" (packaged weights) or a local path
    pool: Literal["avg", "max", "both"] | None = None   # None: the recipe
    head: Literal["linear", "none"] = "linear"
    dim: int | None = Field(None, ge=1)         # None: the recipe
    norm: Literal["none", "layer"] = "none"
    freeze_bn: bool | None = None               # None: the recipe
    cut: str = "none"
    views: int = Field(2, ge=1)

    @model_validator(mode="after")
    def _known(self) -> "ModelSpec":
        if not self.backbone.startswith("timm/"):
            registries.BACKBONES[self.backbone]
        return self


class GroupSpec(Frozen):
    """Settings of one parameter group (backbone, head, loss) that differ from the common ones."""

    lr: float | None = Field(None, ge=0)
    weight_decay: float | None = Field(None, ge=0)
    eps: float | None = Field(None, gt=0)


class TrainSpec(Frozen):
    optimiser: Literal["sgd", "rmsprop", "adam", "adamw"] = "adamw"
    lr: float | None = Field(None, gt=0)        # None: the recipe
    weight_decay: float = Field(1e-4, ge=0)     # ProxyAnchor's and the thesis's code
    momentum: float = Field(0.9, ge=0, lt=1)    # SGD and RMSprop (reality check)
    eps: float = Field(1e-8, gt=0)
    epochs: int | None = Field(None, ge=0)      # None: the recipe; 0: the untrained network
    batches_per_epoch: int | None = Field(None, ge=1)   # None: an epoch is one pass of the sampler
    batch: int | None = Field(None, ge=2)       # None: the recipe
    schedule: Literal["constant", "step", "cosine"] = "constant"
    step: int = Field(10, ge=1)                 # epochs between the drops of `step`
    gamma: float = Field(0.5, gt=0, le=1)       # ProxyAnchor's code
    warmup: int = Field(0, ge=0)                # epochs in which only new parameters train
    clip: float | None = Field(None, gt=0)
    clip_by: Literal["value", "norm"] = "value"
    groups: dict[str, GroupSpec] = {}
    eval_every: int = Field(1, ge=1)            # epochs
    patience: int | None = Field(None, ge=1)    # epochs without a better validation result
    select: str = "map_at_r"                    # the metric on validation classes that picks the epoch
    seed: int = Field(0, ge=0)
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    amp: bool = False


class RunSpec(Frozen):
    data: DataSpec = Field(default_factory=lambda: DataSpec())
    protocol: ProtocolSpec = Field(default_factory=lambda: ProtocolSpec())
    sampler: SamplerSpec | None = None          # None: the recipe
    model: ModelSpec = Field(default_factory=lambda: ModelSpec())
    loss: LossSpec = Field(default_factory=lambda: LossSpec())
    miner: MinerSpec | None = None
    regulariser: RegulariserSpec | None = None
    train: TrainSpec = Field(default_factory=lambda: TrainSpec())

    def tree(self) -> dict[str, Any]:
        """Plain values, as YAML and JSON have them; parts that are not set stay out."""
        return self.model_dump(mode="json", exclude_none=True)

    def changes(self) -> dict[str, Any]:
        """What differs from the defaults, as dotted words: a field added later changes no old hash."""
        words = flatten(self.tree())
        defaults = flatten(RunSpec().tree()) | PLAIN
        for part in ("data", "protocol", "sampler", "loss", "miner", "regulariser"):
            if (spec := getattr(self, part)) is not None:
                for key, parameter in hyperparameters(spec.cls).items():
                    defaults[f"{part}.{key}"] = _plain(parameter.default)
        return {k: v for k, v in words.items() if k not in UNHASHED and defaults.get(k) != v}

    def hash(self, data_hash: str, split_hash: str) -> str:
        """The name of a run: what it is, on which data, with which meaning of each part."""
        parts = {p: s.cls for p in ("data", "protocol", "sampler", "loss", "miner", "regulariser")
                 if (s := getattr(self, p)) is not None}  # fmt: skip
        if not self.model.backbone.startswith("timm/"):
            parts["backbone"] = registries.BACKBONES[self.model.backbone]
        versions = {p: v for p, c in parts.items() if (v := getattr(c, "version", 1)) != 1}
        changes = self.changes()
        if self.model.weights is not None and (file := Path(self.model.weights)).is_file():
            changes["model.weights"] = hashlib.sha256(file.read_bytes()).hexdigest()    # what it holds, not its name
        content = json.dumps([changes, versions, data_hash, split_hash], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:12]


def make_spec(*sources: Mapping[str, Any] | RunSpec | None) -> RunSpec:
    """A spec from words or trees; later sources win."""
    words: dict[str, Any] = {}
    for source in sources:
        if isinstance(source, RunSpec):
            words.update(flatten(source.tree()))
        elif source:
            words.update({ALIASES.get(k, k): v for k, v in flatten(source).items()})
    tree: dict[str, Any] = {}
    for key, value in words.items():
        *parents, leaf = key.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = value
    for part in ("miner", "regulariser"):  # miner=none takes a base spec's miner away
        if tree.get(part, {}).get("name") in (None, "none") and set(tree.get(part, {})) <= {"name"}:
            tree.pop(part, None)
    try:
        return RunSpec.model_validate(tree)
    except ValidationError as error:
        raise NearkinError(_sentence(error)) from None


def read_spec(path: Path) -> RunSpec:
    return make_spec(read_yaml(path))


def _check_parameters(what: str, signature: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, parameter in signature.items():
        annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
        fields[name] = (annotation, ... if parameter.default is parameter.empty else parameter.default)
    model = create_model(what, __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=True), **fields)
    try:
        checked = model.model_validate(values)
    except ValidationError as error:
        raise NearkinError(f"{what}: {_sentence(error)}") from None
    return {name: getattr(checked, name) for name in values}


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


def _sentence(error: ValidationError) -> str:
    """The first thing that is wrong, in one line with key, value and choices."""
    first = error.errors()[0]
    where = ".".join(str(x) for x in first["loc"])
    if first["type"] == "extra_forbidden":
        model: Any = RunSpec
        for step in first["loc"][:-1]:
            field = getattr(model, "model_fields", {}).get(step)
            model = next((m for m in (field.annotation if field else None,) if hasattr(m, "model_fields")), GroupSpec)
        known = list(model.model_fields) + (sorted(ALIASES) if model is RunSpec else [])
        return f"unknown key {where!r}: {choices(str(first['loc'][-1]), known)}"
    message = first["msg"].removeprefix("Value error, ")
    if isinstance(first.get("ctx", {}).get("error"), NearkinError):
        return message
    return f"{where}={first['input']!r}: {message[0].lower()}{message[1:]}"
