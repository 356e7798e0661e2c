"""Fields that remember their original default.

A run is named by the hash of its settings. A setting drops out of the hash while it equals the default that its field
was born with, so that a field added later orphans no stored run. That value is written once, here beside the field, and
never edited: when a default changes, the new one is added as `now`, and runs with it get names of their own.

    weight_decay: float = born(1e-4, ge=0)                  # as it was born
    weight_decay: float = born(1e-4, now=5e-4, ge=0)        # changed since

The hyper-parameters of registered classes are born with the defaults of their signature; one that changes is noted in
`register("my_loss", born={"margin": 0.2})`.

A field also says when something reads it, in `read`, and what null stands for, in `null`: config/reading.py asks them,
so that one meaning has one name. What it means stands in `about`, where its default comes from in `source`: `nearkin
explain` and docs/settings.md (config/page.py) read both. Words change no hash.
"""

import inspect
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from nearkin.registry import hyperparameters

SAME = object()
Rule = Callable[[Any], Any]  # of a `Reading`: a resolved spec, and what is known of its data


def born(
    value: Any,
    *,
    now: Any = SAME,
    about: str = "",
    source: str = "",
    read: Rule | None = None,
    null: Rule | None = None,
    **bounds: Any,
) -> Any:
    """A field whose default is `value` and always was; or `now`, if it has changed since.

    Parameters:
        value: the default that the field was born with.
        now: its current default, if it has changed.
        about: what the setting means, in one or two sentences.
        source: where the default comes from: a paper, a measurement.
        read: does anything read it, with the other settings as they are? None: always.
        null: the value that null means; None: null is a separate value.
        bounds: as pydantic has them: ge, gt, le, lt.
    """
    traits = {"born": value, "about": about, "source": source, "read": read, "null": null}
    return Field(value if now is SAME else now, description=about or None, json_schema_extra=traits, **bounds)


def unset(
    value: Any = None, *, about: str = "", filled: str = "", source: str = "", read: Rule | None = None, **bounds: Any
) -> Any:
    """A field that runs/defaults.py fills; `value` is what it filled in plainly when the field was born.

    Parameters:
        value: the plain default that the field was born with; None: there was none.
        about: what the setting means, in one or two sentences.
        filled: in words, what it becomes if it is not set.
        source: where that comes from: a paper, a measurement.
        read: does anything read it, with the other settings as they are? None: always.
        bounds: as pydantic has them: ge, gt, le, lt.
    """
    traits = {"born": value, "open": True, "about": about, "filled": filled, "source": source, "read": read}
    return Field(None, description=about or None, json_schema_extra=traits, **bounds)


def trait_of(field: FieldInfo, what: str) -> Any:
    """A trait of a field: read, null, about, ...; None if the field has no such trait."""
    traits = field.json_schema_extra
    return traits.get(what) if isinstance(traits, dict) else None


def original_default(field: FieldInfo) -> tuple[Any, bool]:
    """The original default of a field, and whether None means that it is not set."""
    traits = field.json_schema_extra
    if not isinstance(traits, dict) or "born" not in traits:
        return plain(field.get_default(call_default_factory=False)), False
    return plain(traits["born"]), bool(traits.get("open"))


def original_defaults(model: type[BaseModel]) -> dict[str, tuple[Any, bool]]:
    """Dotted key -> original default, of all fields of a tree of settings."""
    return dict(_original_defaults(model, ""))


@lru_cache
def _original_defaults(model: type[BaseModel], prefix: str) -> dict[str, tuple[Any, bool]]:
    defaults: dict[str, tuple[Any, bool]] = {}
    for name, field in model.model_fields.items():
        inner = tree_in(field.annotation)
        if inner is not None:
            defaults |= _original_defaults(inner, f"{prefix}{name}.")
        elif field.json_schema_extra is not None or not field.is_required():
            defaults[f"{prefix}{name}"] = original_default(field)
    return defaults


def original_defaults_of(cls: Any) -> dict[str, Any]:
    """Hyper-parameter -> the default it was born with, of a registered class."""
    changed = getattr(cls, "born", {})
    defaults = {k: changed.get(k, p.default) for k, p in hyperparameters(cls).items()}
    return {k: plain(v) for k, v in defaults.items() if v is not inspect.Parameter.empty}


def plain(value: Any) -> Any:
    """The value in the types of JSON."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    return json.loads(json.dumps(value, default=str))


def tree_in(annotation: Any) -> type[BaseModel] | None:
    """The tree of settings that a field holds, even if it may be None."""
    for candidate in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None
