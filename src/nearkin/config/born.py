"""Fields that remember the default they were born with.

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
    """A field whose default is `value`, and ever was; or `now`, since it changed.

    Parameters:
        value: the default that the field was born with.
        now: its default today, where that is another.
        about: what the setting means, in one or two sentences.
        source: where the default comes from: a paper, a measurement.
        read: does anything read it, with the other settings as they are? None: always.
        null: the value that null stands for; None: null is a value of its own.
        bounds: as pydantic has them: ge, gt, le, lt.
    """
    told = {"born": value, "about": about, "source": source, "read": read, "null": null}
    return Field(value if now is SAME else now, description=about or None, json_schema_extra=told, **bounds)


def unset(
    value: Any = None, *, about: str = "", filled: str = "", source: str = "", read: Rule | None = None, **bounds: Any
) -> Any:
    """A field that runs/defaults.py fills; `value` is what it filled in plainly when the field was born.

    Parameters:
        value: the plain default that the field was born with; None: there was none.
        about: what the setting means, in one or two sentences.
        filled: what it becomes when it is left open, in words.
        source: where that comes from: a paper, a measurement.
        read: does anything read it, with the other settings as they are? None: always.
        bounds: as pydantic has them: ge, gt, le, lt.
    """
    told = {"born": value, "open": True, "about": about, "filled": filled, "source": source, "read": read}
    return Field(None, description=about or None, json_schema_extra=told, **bounds)


def told_of(field: FieldInfo, what: str) -> Any:
    """What a field says beside its type: read, null, about, ...; None where it says nothing."""
    told = field.json_schema_extra
    return told.get(what) if isinstance(told, dict) else None


def birth(field: FieldInfo) -> tuple[Any, bool]:
    """The default that a field was born with, and whether None leaves it open."""
    told = field.json_schema_extra
    if not isinstance(told, dict) or "born" not in told:
        return plain(field.get_default(call_default_factory=False)), False
    return plain(told["born"]), bool(told.get("open"))


def original_defaults(model: type[BaseModel]) -> dict[str, tuple[Any, bool]]:
    """Dotted key -> birth, of all fields of a tree of settings."""
    return dict(_births(model, ""))


@lru_cache
def _births(model: type[BaseModel], prefix: str) -> dict[str, tuple[Any, bool]]:
    found: dict[str, tuple[Any, bool]] = {}
    for name, field in model.model_fields.items():
        inner = tree_in(field.annotation)
        if inner is not None:
            found |= _births(inner, f"{prefix}{name}.")
        elif field.json_schema_extra is not None or not field.is_required():
            found[f"{prefix}{name}"] = birth(field)
    return found


def original_defaults_of(cls: Any) -> dict[str, Any]:
    """Hyper-parameter -> the default it was born with, of a registered class."""
    changed = getattr(cls, "born", {})
    own = {k: changed.get(k, p.default) for k, p in hyperparameters(cls).items()}
    return {k: plain(v) for k, v in own.items() if v is not inspect.Parameter.empty}


def plain(value: Any) -> Any:
    """As JSON has it."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    return json.loads(json.dumps(value, default=str))


def tree_in(annotation: Any) -> type[BaseModel] | None:
    """The tree of settings that a field holds, also where it may be None."""
    for candidate in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None
