"""The catalogue (config/catalogue.py) of what the code says: the fields of a spec, and the docstrings of all classes.

`make catalogue` writes config/catalogue.json, `make settings` the same as one page, docs/settings.md (config/page.py).
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from nearkin import registry
from nearkin.config import recipes
from nearkin.config.born import plain, tree_in
from nearkin.config.catalogue import FILE, Catalogue, Entry, shown
from nearkin.config.listed import listed
from nearkin.config.parts import PARTS, REGISTRIES, Part
from nearkin.config.recipes import Recipe
from nearkin.config.spec import ALIASES, RunSpec
from nearkin.registry import ALL_REGISTRIES, Registry, hyperparameters

CLASSES: dict[str, Registry] = {  # kind of a class -> all classes of that kind
    **REGISTRIES,
    "backbone": registry.BACKBONES,
    "head": registry.HEADS,
    "metric": registry.METRICS,
    "analysis": registry.ANALYSES,
}
NAMES_OF = {"model.backbone": "backbone", "model.head": "head", "train.select": "metric"}  # setting -> kind of a class
ALLOWED = {  # where the type says too little
    "data.crop_scale": "two numbers as in 0.16-1 or [0.16, 1], above 0 and at most 1; or null",
    "data.crop_ratio": "two numbers as in 0.75-1.33 or [0.75, 1.33], above 0; or null",
    "model.backbone": "{choices}, timm/NAME, or an import path",
    "model.head": "{choices}, or an import path",
    "model.weights": "imagenet, or a path; or null",
    "model.cut": "none, a stage of the backbone (`nearkin explain BACKBONE` lists them), all",
    "train.device": "auto, cpu, cuda, cuda:N, mps",
    "train.groups": "group -> its settings",
    "train.select": "`nearkin list metrics`; with @k where it has one",
}
TYPES = {int: "whole number", float: "number", bool: "true or false", str: "word", Path: "path"}
BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def described() -> Catalogue:
    """Everything that can be set or chosen now, also what a program has registered."""
    groups = {name: group(name) for name in RunSpec.model_fields if name != "purpose"}
    named = {kind: {entry.key: entry for entry in classes(kind)} for kind in CLASSES}
    lists = {registry.plural: listed(registry) for registry in ALL_REGISTRIES}
    lists["recipes"] = [{"name": name, "about": Recipe.named(name).paper} for name in recipes.names()]
    return Catalogue(settings(), groups, named, lists)


def settings() -> dict[str, Entry]:
    """Key -> entry of every setting of a spec, in reading order; a part's name is one."""
    entries = {}
    for name, field in RunSpec.model_fields.items():
        tree = tree_in(field.annotation)
        if tree is None:
            entries[name] = setting(name, field)
            continue
        for key, inner in _fields(tree, f"{name}."):
            entries[key] = _name(name, field) if key == f"{name}.name" else setting(key, inner)
    return entries


def _fields(tree: type[BaseModel], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in tree.model_fields.items():
        yield f"{prefix}{name}", field
        if (inner := tree_in(field.annotation)) is not None:  # train.groups
            yield from _fields(inner, f"{prefix}{name}.NAME.")


def setting(key: str, field: FieldInfo) -> Entry:
    """The entry of one field of a spec."""
    allowed, known = _allowed(
        field.annotation, _bounds(field), null=field.default is None and not _trait(field, "open")
    )
    if key in NAMES_OF:
        known = tuple(CLASSES[NAMES_OF[key]].names())
    allowed = ALLOWED.get(key, allowed).format(choices=", ".join(known))
    return Entry(
        key,
        "setting",
        field.description or "",
        plain(field.get_default(call_default_factory=False)),
        filled=_trait(field, "filled"),
        source=_trait(field, "source"),
        allowed=allowed,
        choices=known,
        aliases=tuple(alias for alias, target in ALIASES.items() if target == key),
    )


def _name(part: str, field: FieldInfo) -> Entry:
    """The entry of the name of a part: loss.name."""
    name_field = tree_in(field.annotation).model_fields["name"]  # type: ignore[union-attr]
    optional = not field.is_required() and field.default_factory is None  # miner, method, ...: none by default
    known = tuple(REGISTRIES[part].names())
    return Entry(
        f"{part}.name",
        "setting",
        field.description or name_field.description or "",
        None if optional else name_field.default,
        filled=_trait(field, "filled") or ("none" if optional else ""),
        source=_trait(field, "source"),
        allowed=f"{', '.join(known)}, or an import path",
        choices=known,
        aliases=tuple(alias for alias, target in ALIASES.items() if target == f"{part}.name"),
    )


def group(name: str) -> Entry:
    """A part (`loss`) or a group of settings (`train`): what it is, and the settings that it always has."""
    field = RunSpec.model_fields[name]
    members = tuple(entry for key, entry in settings().items() if key.startswith(f"{name}."))
    tree = tree_in(field.annotation)
    if tree is None or not issubclass(tree, Part):
        return Entry(name, "group", field.description or "", settings=members)
    first = members[0]
    return Entry(
        name,
        "part",
        first.about,
        first.default,
        filled=first.filled,
        source=first.source,
        allowed=first.allowed,
        choices=first.choices,
        aliases=first.aliases,
        settings=members[1:],
    )


def classes(kind: str) -> list[Entry]:
    """All registered classes of a kind."""
    return [of_class(kind, name) for name in CLASSES[kind].names()]


def of_class(kind: str, name: str) -> Entry:
    """A registered class: what it is, its docstring, and the hyper-parameters that a spec may set."""
    cls = CLASSES[kind][name]
    doc = inspect.getdoc(cls) or ""
    source, lines = source_of(doc), parameter_lines(doc)
    parameters = []
    for key, parameter in hyperparameters(cls).items() if kind in PARTS else ():
        if kind == "data" and f"data.{key}" in _data_fields():  # a size of one's own: the setting rules
            continue
        allowed, known = _allowed(parameter.annotation, "", null=parameter.default is None)
        default = None if parameter.default is parameter.empty else plain(parameter.default)
        parameters.append(
            Entry(
                f"{kind}.{key}",
                "hyper-parameter",
                lines.get(key, ""),
                default,
                source=source,
                allowed=allowed,
                choices=known,
                of=name,
            )
        )
    summary = " ".join(doc.split("\n\n")[0].split())
    stages = tuple(getattr(cls, "stages", ())) if kind == "backbone" else ()
    return Entry(name, kind, summary, source=source, choices=stages, doc=doc, settings=tuple(parameters))


def _data_fields() -> set[str]:
    tree = tree_in(RunSpec.model_fields["data"].annotation)
    return {f"data.{name}" for name in tree.model_fields} if tree else set()


def parameter_lines(doc: str) -> dict[str, str]:
    """Name -> meaning, from the lines below `Parameters:` of a docstring."""
    meanings: dict[str, str] = {}
    names: list[str] = []
    for line in doc.partition("Parameters:\n")[2].splitlines():
        if not line.startswith("    "):
            break
        if begun := re.match(r" {4}(\w+(?:, \w+)*): (.*)", line):
            names = begun[1].split(", ")
            meanings |= dict.fromkeys(names, begun[2])
        else:
            meanings |= {name: f"{meanings[name]} {line.strip()}" for name in names}
    return meanings


def source_of(doc: str) -> str:
    """The text after `Source:` in a docstring, up to the end of the paragraph."""
    match = re.search(r"^Source: (.*?)(?:\n\n|\Z)", doc, re.M | re.S)
    return " ".join(match[1].split()) if match else ""


def _trait(field: FieldInfo, what: str) -> Any:
    traits = field.json_schema_extra
    return traits.get(what, "") if isinstance(traits, dict) else ""


def _bounds(field: FieldInfo) -> str:
    """'at least 0 and below 1'."""
    words = [
        f"{word} {shown(value)}"
        for bound in field.metadata
        for name, word in BOUNDS.items()
        if (value := getattr(bound, name, None)) is not None
    ]
    return " and ".join(words)


def _allowed(annotation: Any, bounds: str, *, null: bool) -> tuple[str, tuple[str, ...]]:
    """Type and bounds in words, and the choices where there are few."""
    several = get_origin(annotation) is not Literal and get_args(annotation) and get_origin(annotation) is not dict
    kinds = [a for a in get_args(annotation) if a is not NoneType] if several else [annotation]
    known = tuple(shown(value) for kind in kinds if get_origin(kind) is Literal for value in get_args(kind))
    typed = " or ".join(words for kind in kinds if (words := _typed(kind)))
    words = ", or ".join(filter(None, (", ".join(known), typed)))
    words = ", ".join(filter(None, (words, bounds)))
    return (f"{words}; or null" if words and null else words), known


def _typed(kind: Any) -> str:
    """The type in words, with bounds that are its own: one of several types may have some."""
    if get_origin(kind) is not Annotated:
        return TYPES.get(kind, "")
    inner, field = get_args(kind)
    return ", ".join(filter(None, (TYPES[inner], _bounds(field))))


if __name__ == "__main__":
    (Path(__file__).parent / FILE).write_text(described().to_json(), encoding="utf-8")
