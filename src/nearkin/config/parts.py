"""Parts of a spec: a registered class by name, with its hyper-parameters as further keys."""

import inspect
import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from nearkin import registry as registries
from nearkin.arguments import is_number
from nearkin.config.born import born, unset
from nearkin.consent import is_path
from nearkin.errors import NearkinError, choices
from nearkin.registry import Registry, hyperparameters

REGISTRIES = registries.PARTS
PARTS = tuple(REGISTRIES)
ARBITRARY = ConfigDict(arbitrary_types_allowed=True)


class Settings(BaseModel):
    """Settings whose numbers are numbers: `epochs=yes` is refused, not read as 1."""

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_boolean(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and is_number(cls.model_fields[info.field_name or ""].annotation):
            raise ValueError("must be a number, not true or false")
        return value


class Parameters(Settings):
    """The hyper-parameters of a registered class."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class Part(Settings):
    """A registered class by name, with its hyper-parameters as further keys."""

    model_config = ConfigDict(frozen=True, extra="allow")
    registry: ClassVar[Registry]
    name: str

    @model_validator(mode="before")
    @classmethod
    def _typed(cls, data: Any, info: ValidationInfo) -> Any:
        """Check the hyper-parameters against the signature of the class that the name stands for. An import path of a
        stored run is not imported yet: whoever needs the class asks for it (`cls`), and it is checked then."""
        if not isinstance(data, Mapping) or "name" not in {**cls._own_defaults(), **data}:
            return data
        name = str(data.get("name", cls._own_defaults().get("name")))
        if is_path(name) and name not in cls.registry and is_stored(info):
            return data
        extras = {k: v for k, v in data.items() if k not in cls.model_fields}
        if name not in cls.registry:
            check_foreign(cls.registry, name, extras)
            return data
        signature = hyperparameters(cls.registry[name])
        for key in extras:
            if key not in signature:
                known = [*signature, *(k for k in cls.model_fields if k != "name")]
                raise NearkinError(f"unknown key {key!r} of {cls.registry.kind} {name!r}: {choices(key, known)}")
        return {**data, **_check_parameters(f"{cls.registry.kind} {name}", cls.registry[name], extras)}

    @classmethod
    def _own_defaults(cls) -> dict[str, Any]:
        return {k: f.default for k, f in cls.model_fields.items() if not f.is_required()}

    @property
    def params(self) -> dict[str, Any]:
        """The hyper-parameters that were set."""
        return dict(self.__pydantic_extra__ or {})

    @classmethod
    def fields(cls) -> set[str]:
        """The keys that every part of this kind has."""
        return set(cls.model_fields)

    @property
    def cls(self) -> Any:
        """The class that the name stands for."""
        if self.name not in self.registry:
            return check_foreign(self.registry, self.name, self.params)
        return self.registry[self.name]


class DataSpec(Part):
    """The data set and the geometry of its images: `data.*`."""

    registry = REGISTRIES["data"]
    name: str = born("glyphs", about="The data set, or the reader of your own images: `nearkin list datasets`.")
    root: Path | None = born(
        None,
        about="Where its files lie: the folder, or for csv the list. It is not part of a run's name, which covers the "
        "content of the images instead; glyphs are drawn and have none.",
    )
    size: int | None = unset(
        ge=8,
        about="The side, in pixels, of the square from the middle of an image that is embedded for validation, test "
        "and search. Set alone, it scales resize and crop along, so that it is the one setting for smaller or larger "
        "images.",
        filled="the backbone's: convnet 32, efficientnet_lite0 128, efficientnet_lite1 160, the other built-in ones 224"
        ", timm's their own",
        source="The size that the weights were trained or measured at.",
    )
    resize: int | None = unset(
        ge=8,
        about="The length, in pixels, that the shorter side of every image is given once, when it is decoded into the "
        "cache; both crops are cut from that. glyphs are drawn at this size.",
        filled="the backbone's: convnet 32, efficientnet_lite0 128, efficientnet_lite1 160, the other built-in ones 256"
        "; scaled with data.size",
        source="As data.size.",
    )
    keep: int | None = born(
        None,
        ge=8,
        about="The largest shorter side, in pixels, that an image is kept at; at least data.resize. Random resized "
        "crops are cut from that, so that a small one need not be blown up; test images are still cut from the image "
        "at data.resize. A smaller image stays as it is, unless data.resize enlarges it. null: data.resize, so that "
        "all images have one size. glyphs are drawn, and refuse it.",
        source="The papers cut crops from the file itself; 512 comes near to that and is smaller.",
        null=lambda run: run.spec.data.resize,
    )
    cache: Literal["auto", "decoded", "none", "packed"] = born(
        "auto",
        about="How images are kept between epochs. `decoded`: all pixels in one file. `none`: nothing; every image is "
        "decoded again whenever it is read. Both give the same pixels and the same name of a run; `auto` takes decoded "
        "where that fits into half of the free disk (and into NEARKIN_CACHE_LIMIT), else none, and says so. `packed`: "
        "JPEGs of the kept size (quality 90, colours at half resolution) in one file, a tenth of decoded or less: "
        "about 20 GB for ImageNet at 256 px. Their pixels differ a little, so it is another run.",
    )
    crop: int | None = unset(
        ge=8,
        about="The side, in pixels, of a training image: a random part of the decoded image (of glyphs all of it), "
        "resized to this; data.augment says which part. Smaller than data.size trains faster.",
        filled="the backbone's: convnet 32, efficientnet_lite0 112, efficientnet_lite1 128, the other built-in ones 224"
        "; scaled with data.size",
        source="As data.size.",
        read=lambda run: run.trained and run.spec.model.cut == "none",
    )
    augment: Literal["resized_crop", "resize_crop"] = born(
        "resized_crop",
        about="How training images are cut. `resized_crop`: a random part of random size and shape, resized to "
        "data.crop. `resize_crop`: a square of data.crop pixels at a random place of the image whose shorter side has "
        "data.resize pixels, so that objects keep their scale and shape; data.crop_scale and data.crop_ratio are then "
        "refused.",
        source="resized_crop as Roth et al. 2020, Musgrave et al. 2020, Psomas 2020 and HIST have it; resize_crop as "
        "section 3.5.1 of Psomas 2020 describes it of other papers.",
        read=lambda run: run.crops,
    )
    crop_scale: tuple[float, float] | None = born(
        None,
        about="The smallest and the largest area of a random resized crop as a share of the image, as in 0.16-1. "
        "null: what the data set says: 0.08-1; of glyphs no crops at all, which a value here overrides.",
        source="0.08-1 as Roth et al. 2020 and HIST have it; Musgrave et al. 2020 have 0.16-1.",
        read=lambda run: run.crops,
        null=lambda run: run.augment and run.augment.crop_scale,
    )
    crop_ratio: tuple[float, float] | None = born(
        None,
        about="The smallest and the largest ratio of width to height of a random resized crop, as in 0.75-1.33. null: "
        "what the data set says: 3/4 to 4/3.",
        source="All sources have it so.",
        read=lambda run: run.crops,
        null=lambda run: run.augment and run.augment.crop_ratio,
    )
    flip: bool | None = born(
        None,
        about="Whether half of the training images, drawn anew each time, are mirrored. null: what the data set says: "
        "true; of glyphs false, because a mirrored b is a d.",
        source="All sources mirror.",
        read=lambda run: run.trained and (run.spec.model.cut == "none" or run.spec.model.views > 1),
        null=lambda run: run.augment and run.augment.flip,
    )
    on_error: Literal["raise", "skip"] = born(
        "raise",
        about="What happens at an image that cannot be read: `raise` stops before training and names the file, `skip` "
        "leaves the image out and counts it in the result. `nearkin data verify` finds all of them beforehand.",
        read=lambda run: run.skips,
    )
    exclude: Path | None = born(
        None,
        about="A file that lists images to leave out, one path per line, relative to the root; lines that begin with # "
        "do not count. `nearkin data dedupe` writes such a list of equal images. It is not part of a run's name, which "
        "covers the images that are left instead.",
    )

    @field_validator("crop_scale", "crop_ratio", mode="before")
    @classmethod
    def _pair(cls, value: Any, info: ValidationInfo) -> Any:
        """Two numbers, as 0.16-1 or [0.16, 1]."""
        if value is None:
            return None
        key, most = f"data.{info.field_name}", 1 if info.field_name == "crop_scale" else math.inf
        try:
            low, high = (float(v) for v in (value.split("-") if isinstance(value, str) else value))
        except (TypeError, ValueError):
            raise NearkinError(f"{key}={value!r}: two numbers are needed, as in {key}=0.5-1 or [0.5, 1]") from None
        if not 0 < low <= high <= most or math.isinf(high):
            bound = f"0 < low <= high{' <= 1' if most == 1 else ''}"
            raise NearkinError(f"{key}={low:g}-{high:g}: low and high must be {bound}")
        return low, high

    @model_validator(mode="after")
    def _of_resized_crops(self) -> "DataSpec":
        for key in ("crop_scale", "crop_ratio"):
            if self.augment == "resize_crop" and (value := getattr(self, key)) is not None:
                raise NearkinError(
                    f"data.{key}={value[0]:g}-{value[1]:g} is not read with data.augment=resize_crop, whose crops all "
                    f"have data.crop pixels: leave one of the two out"
                )
        return self


class ProtocolSpec(Part):
    """Who trains, validates and is tested: `protocol.*`."""

    registry = REGISTRIES["protocol"]
    name: str = born("fixed_val")


class SamplerSpec(Part):
    """How batches are drawn: `sampler.*`."""

    registry = REGISTRIES["sampler"]
    name: str = born("balanced")


class LossSpec(Part):
    """The loss: `loss.*`."""

    registry = REGISTRIES["loss"]
    name: str = born("proxy_anchor")


class MinerSpec(Part):
    """The miner: `miner.*`."""

    registry = REGISTRIES["miner"]


class RegulariserSpec(Part):
    """The regulariser: `regulariser.*`."""

    registry = REGISTRIES["regulariser"]


class MethodSpec(Part):
    """What is built around the loss: `method.*`."""

    registry = REGISTRIES["method"]


def is_stored(info: ValidationInfo) -> bool:
    """Is it the spec of a stored run that is read (`stored_spec`)?"""
    return bool(info.context and info.context.get("stored"))


def check_foreign(registry: Registry, path: str, settings: Mapping[str, Any]) -> Any:
    """The class at an import path, once its constructor takes these settings: their names and, where it says them,
    their types. They are handed over as they were written. Unlike ours, a class from outside may have settings that are
    not keyword-only."""
    cls = registry[path]
    parameters = inspect.signature(cls).parameters.values()
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)
    known = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    for key, value in settings.items():
        if key not in known:
            if open_ended:
                continue
            raise NearkinError(f"unknown key {key!r} of {registry.kind} {path!r}: {choices(key, known)}")
        try:
            annotation = inspect.signature(cls, eval_str=True).parameters[key].annotation
            adapter = TypeAdapter(Any if annotation is inspect.Parameter.empty else annotation, config=ARBITRARY)
        except (NameError, PydanticUserError, TypeError):  # an annotation that is for its author's tools alone
            continue
        if isinstance(value, bool) and is_number(annotation):
            raise NearkinError(f"{registry.kind} {path}: {key}={value}: must be a number, not true or false")
        try:
            adapter.validate_python(value)
        except ValidationError as error:
            message = error.errors()[0]["msg"]
            reason = f"{message[0].lower()}{message[1:]}"
            raise NearkinError(f"{registry.kind} {path}: {key}={value!r}: {reason}") from None
    return cls


def _check_parameters(what: str, part: Any, values: dict[str, Any]) -> dict[str, Any]:
    try:
        checked = _parameters_of(what, part).model_validate(values)
    except ValidationError as error:
        raise NearkinError(f"{what}: {sentence(error)}") from None
    return {name: getattr(checked, name) for name in values}


@lru_cache(maxsize=1024)
def _parameters_of(what: str, part: Any) -> type[BaseModel]:
    """The hyper-parameters of a class as a model, made once: a study of thousands of cells asks for each of them."""
    fields: dict[str, Any] = {}
    for name, parameter in hyperparameters(part).items():
        annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
        fields[name] = (annotation, ... if parameter.default is parameter.empty else parameter.default)
    return create_model(what, __base__=Parameters, **fields)


def sentence(error: ValidationError) -> str:
    """The first thing that is wrong, in one line with key, value and bound."""
    first = error.errors()[0]
    where = ".".join(str(x) for x in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    if isinstance(first.get("ctx", {}).get("error"), NearkinError):
        return message
    return f"{where}={first['input']!r}: {message[0].lower()}{message[1:]}"
