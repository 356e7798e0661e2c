"""What a setting means, from the fields of a spec and the docstrings of the registered classes.

    explain("train.lr")                 one setting
    explain("dim")                      an alias
    explain("loss")                     a part: what it is, its default, its choices
    explain("loss.alpha")               a hyper-parameter, of every loss that has it
    explain("multi_similarity.alpha")   of one class
    explain("multi_similarity")         all classes of that name
    explain("train")                    a group of settings

`python -m nearkin.config.page > docs/settings.md` (`make settings`) writes the same as one page.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from nearkin import registry
from nearkin.config.born import plain, tree_in
from nearkin.config.parts import PARTS, REGISTRIES, Part
from nearkin.config.settings import GroupSpec
from nearkin.config.spec import ALIASES, RunSpec
from nearkin.errors import NearkinError, choices
from nearkin.registry import Registry, hyperparameters

CLASSES: dict[str, Registry] = {  # kind of a class -> all classes of that kind
    **REGISTRIES,
    "backbone": registry.BACKBONES,
    "head": registry.HEADS,
    "metric": registry.METRICS,
    "analysis": registry.ANALYSES,
}
LISTED = {  # kind of a class -> what `nearkin list` calls all of them
    "data": "datasets",
    "protocol": "protocols",
    "sampler": "samplers",
    "loss": "losses",
    "miner": "miners",
    "regulariser": "regularisers",
    "method": "methods",
    "backbone": "backbones",
    "head": "heads",
    "metric": "metrics",
    "analysis": "analyses",
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
GROUP = re.compile(r"train\.groups\.\w+\.(\w+)")


@dataclass(frozen=True)
class Entry:
    """What is known about one setting, hyper-parameter, part, group of settings or class."""

    key: str  # as a spec has it; of a class its name
    kind: str  # setting, hyper-parameter, part, group; of a class loss, miner, ...
    about: str  # what it means
    default: Any = None
    filled: str = ""  # what an open default becomes, in words
    source: str = ""  # where the default, or a class, comes from
    allowed: str = ""  # type and bounds, in words
    choices: tuple[str, ...] = ()  # of a backbone: its stages, the choices of model.cut
    aliases: tuple[str, ...] = ()  # shorter words for the key
    of: str = ""  # the class that a hyper-parameter belongs to
    doc: str = ""  # of a class: its docstring, as help() shows it
    settings: tuple["Entry", ...] = ()  # of a group, a part or a class: what can be set

    @property
    def shown(self) -> str:
        """Its default, in words."""
        return self.filled or shown(self.default)

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON, without empty fields; a default of null is kept."""
        fields = {k: v for k, v in vars(self).items() if v not in ("", (), None)}
        if self.kind in ("setting", "hyper-parameter", "part"):
            fields["default"] = self.default
        return fields | ({"settings": [entry.to_dict() for entry in self.settings]} if self.settings else {})


def explain(key: str) -> list[Entry]:
    """Everything that a key may mean: usually one entry; several if classes share a name or a hyper-parameter.

    Parameters:
        key: a setting (`train.lr`), an alias (`dim`), a part or group (`loss`, `train`), a hyper-parameter
            (`loss.alpha`, `margin.beta`), the name of a class (`multi_similarity`), or the last word of a setting
            (`patience`).
    """
    full = ALIASES.get(key, key)
    group_name = full.removesuffix(".name")
    if group_name in RunSpec.model_fields and group_name != "purpose":
        return [group(group_name)]
    if (match := GROUP.fullmatch(full)) and match[1] in GroupSpec.model_fields:
        return [setting(full, GroupSpec.model_fields[match[1]])]
    known = settings()
    if full in known:
        return [known[full]]
    head, _, leaf = key.rpartition(".")
    return _hyperparameters(head, leaf) if head else _by_word(key)


def _hyperparameters(head: str, leaf: str) -> list[Entry]:
    """`loss.alpha`, `multi_similarity.alpha`; `miner.random` is a class."""
    kinds = [head] if head in PARTS else [kind for kind in CLASSES if head in CLASSES[kind]]
    names = CLASSES[head].names() if head in PARTS else [head]
    entries = [entry for kind in kinds for name in names for entry in of_class(kind, name).settings]
    if head in CLASSES and leaf in CLASSES[head] and not any(_leaf(entry) == leaf for entry in entries):
        return [of_class(head, leaf)]
    if matches := [entry for entry in entries if _leaf(entry) == leaf]:
        return matches
    known = {f"{head}.{_leaf(entry)}" for entry in entries} | {key for key in settings() if key.startswith(f"{head}.")}
    raise _unknown(f"{head}.{leaf}", known)


def _by_word(word: str) -> list[Entry]:
    """Classes of that name and settings that end in it; else hyper-parameters of that name."""
    entries = [of_class(kind, word) for kind in CLASSES if word in CLASSES[kind]]
    entries += [entry for key, entry in settings().items() if key.endswith(f".{word}") and "NAME" not in key]
    entries = entries or [entry for entry in _all_hyperparameters() if _leaf(entry) == word]
    if entries:
        return entries
    raise _unknown(word, set())


def _unknown(key: str, known: set[str]) -> NearkinError:
    """An error that names similar keys, and all keys of the group that the key begins with, or all groups."""
    everything = {*settings(), *ALIASES, *(name for kind in CLASSES for name in CLASSES[kind].names())}
    everything |= {_leaf(entry) for entry in [*settings().values(), *_all_hyperparameters()]}
    near = get_close_matches(key, everything, n=3, cutoff=0.6)
    return NearkinError(f"unknown key {key!r}: {choices(key, known or {*near, *RunSpec.model_fields, *ALIASES})}")


def _all_hyperparameters() -> list[Entry]:
    return [entry for part in PARTS for cls in classes(part) for entry in cls.settings]


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


def word_of(part: str) -> str:
    """The word that chooses a part: `dataset` for data."""
    return next((alias for alias, key in ALIASES.items() if key == f"{part}.name"), part)


def shown(value: Any) -> str:
    """A value as it is written in a spec."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _trait(field: FieldInfo, what: str) -> Any:
    traits = field.json_schema_extra
    return traits.get(what, "") if isinstance(traits, dict) else ""


def _leaf(entry: Entry) -> str:
    return entry.key.rpartition(".")[2]


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
    words = ", ".join(known) or " or ".join(TYPES[kind] for kind in kinds if kind in TYPES)
    words = ", ".join(filter(None, (words, bounds)))
    return (f"{words}; or null" if words and null else words), known


# -- docs/settings.md ------------------------------------------------------------------------------------------
