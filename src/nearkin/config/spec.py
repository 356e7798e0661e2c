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
from nearkin.config.parse import flatten, read_yaml
from nearkin.config.settings import Frozen, GroupSpec, MemorySpec, ModelSpec, TrainSpec
from nearkin.errors import NearkinError, choices
from nearkin.registry import Registry, hyperparameters

ALIASES = {
    "dataset": "data.name", "root": "data.root", "protocol": "protocol.name", "sampler": "sampler.name",
    "backbone": "model.backbone", "weights": "model.weights", "dim": "model.dim", "cut": "model.cut",
    "loss": "loss.name", "miner": "miner.name", "regulariser": "regulariser.name", "method": "method.name",
    "epochs": "train.epochs", "lr": "train.lr", "seed": "train.seed",
}  # fmt: skip
PARTS = ("data", "protocol", "sampler", "loss", "miner", "regulariser", "method")
# what runs/defaults.py gives where nothing speaks against it
PLAIN = {"sampler.name": "balanced", "model.pool": "avg", "model.head": "linear", "model.norm": "none"}
UNHASHED = {"data.root", "train.device"}  # where and on what it runs, not what is run


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
        """The hyper-parameters that were set."""
        return dict(self.__pydantic_extra__ or {})

    @property
    def cls(self) -> Any:
        """The class that the name stands for."""
        return self.registry[self.name]


class DataSpec(Part):
    """The data set and the geometry of its images: `data.*`."""

    registry = registries.DATASETS
    name: str = "glyphs"
    root: Path | None = None
    size: int | None = Field(None, ge=8)        # pixels of the test crop; None: the backbone's record
    resize: int | None = Field(None, ge=8)      # shorter side before cropping; None: the backbone's record
    crop: int | None = Field(None, ge=8)        # pixels of the training crop; None: the backbone's record
    on_error: Literal["raise", "skip"] = "raise"


class ProtocolSpec(Part):
    """Who trains, validates and is tested: `protocol.*`."""

    registry = registries.PROTOCOLS
    name: str = "fixed_val"


class SamplerSpec(Part):
    """How batches are drawn: `sampler.*`."""

    registry = registries.SAMPLERS
    name: str = "balanced"


class LossSpec(Part):
    """The loss: `loss.*`."""

    registry = registries.LOSSES
    name: str = "proxy_anchor"


class MinerSpec(Part):
    """The miner: `miner.*`."""

    registry = registries.MINERS


class RegulariserSpec(Part):
    """The regulariser: `regulariser.*`."""

    registry = registries.REGULARISERS


class MethodSpec(Part):
    """What is built around the loss: `method.*`."""

    registry = registries.METHODS


class RunSpec(Frozen):
    """Everything that decides the result of a run, typed and frozen. Made by `make_spec` or `read_spec`.

    Example:
        spec = nearkin.make_spec({"loss": "margin", "loss.beta": 1.2, "dim": 64})
        run = nearkin.train(spec, seed=1)
    """

    data: DataSpec = Field(default_factory=lambda: DataSpec())
    protocol: ProtocolSpec = Field(default_factory=lambda: ProtocolSpec())
    sampler: SamplerSpec | None = None          # None: filled by runs/defaults.py
    model: ModelSpec = Field(default_factory=lambda: ModelSpec())
    loss: LossSpec = Field(default_factory=lambda: LossSpec())
    miner: MinerSpec | None = None
    regulariser: RegulariserSpec | None = None
    method: MethodSpec | None = None            # what is built around the loss; None: nothing
    memory: MemorySpec = Field(default_factory=lambda: MemorySpec())
    train: TrainSpec = Field(default_factory=lambda: TrainSpec())

    def tree(self) -> dict[str, Any]:
        """Plain values, as YAML and JSON have them; parts that are not set stay out."""
        return self.model_dump(mode="json", exclude_none=True)

    def changes(self) -> dict[str, Any]:
        """What differs from the defaults, as dotted words: a field added later changes no old hash."""
        words = flatten(self.tree())
        defaults = flatten(RunSpec().tree()) | PLAIN
        for part in PARTS:
            if (spec := getattr(self, part)) is not None:
                for key, parameter in hyperparameters(spec.cls).items():
                    defaults[f"{part}.{key}"] = _plain(parameter.default)
        return {k: v for k, v in words.items() if k not in UNHASHED and defaults.get(k) != v}

    def hash(self, data_hash: str, split_hash: str) -> str:
        """The name of a run: what it is, on which data, with which meaning of each part."""
        parts = {p: s.cls for p in PARTS if (s := getattr(self, p)) is not None}
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
    for part in ("miner", "regulariser", "method"):  # miner=none takes a base spec's miner away
        if tree.get(part, {}).get("name") in (None, "none") and set(tree.get(part, {})) <= {"name"}:
            tree.pop(part, None)
    try:
        return RunSpec.model_validate(tree)
    except ValidationError as error:
        raise NearkinError(_sentence(error)) from None


def read_spec(path: Path) -> RunSpec:
    """The spec in a YAML file."""
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
