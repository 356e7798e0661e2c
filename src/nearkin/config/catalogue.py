"""The catalogue: every setting and every part as data, for `nearkin list` and `nearkin explain`.

    catalogue = read_catalogue()
    catalogue.explain("train.lr")                 one setting
    catalogue.explain("dim")                      an alias
    catalogue.explain("loss")                     a part: what it is, its default, its choices
    catalogue.explain("loss.alpha")               a hyper-parameter, of every loss that has it
    catalogue.explain("multi_similarity.alpha")   of one class
    catalogue.explain("multi_similarity")         all classes of that name
    catalogue.explain("train")                    a group of settings

It is stored in catalogue.json, which `make catalogue` writes from the code (config/describe.py), so that looking
something up imports neither torch nor a single loss.
"""

import json
import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from importlib.resources import files
from typing import Any

from nearkin.errors import NearkinError, choices

FILE = "catalogue.json"
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

    @property
    def leaf(self) -> str:
        """The last word of its key."""
        return self.key.rpartition(".")[2]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; what is empty is left out, a default that is null is not."""
        content = {k: v for k, v in vars(self).items() if v not in ("", (), None)}
        if self.kind in ("setting", "hyper-parameter", "part"):
            content["default"] = self.default
        return content | ({"settings": [entry.to_dict() for entry in self.settings]} if self.settings else {})

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Entry":
        """The entry that `to_dict` described."""
        several: dict[str, Any] = {name: tuple(content[name]) for name in ("choices", "aliases") if name in content}
        settings = tuple(cls.from_dict(setting) for setting in content.get("settings", ()))
        return cls(**content | several | {"settings": settings})


@dataclass(frozen=True)
class Catalogue:
    """Everything that can be set or chosen.

    Parameters:
        settings: key -> entry of every setting of a spec, in reading order; a part's name is one.
        groups: name -> entry of every part (`loss`) and every group of settings (`train`).
        classes: kind of a class -> name -> entry.
        lists: what `nearkin list` takes -> what it lists: name, about, defaults, ...
    """

    settings: dict[str, Entry]
    groups: dict[str, Entry]
    classes: dict[str, dict[str, Entry]]
    lists: dict[str, list[dict[str, Any]]]

    def explain(self, key: str) -> list[Entry]:
        """All that goes by a key: mostly one entry; several where classes share a name or a hyper-parameter.

        Parameters:
            key: a setting (`train.lr`), an alias (`dim`), a part or group (`loss`, `train`), a hyper-parameter
                (`loss.alpha`, `margin.beta`), the name of a class (`multi_similarity`), or the last word of a setting
                (`patience`).
        """
        full = self.aliases.get(key, key)
        if (name := full.removesuffix(".name")) in self.groups:
            return [self.groups[name]]
        if (match := GROUP.fullmatch(full)) and (known := self.settings.get(f"train.groups.NAME.{match[1]}")):
            return [replace(known, key=full)]
        if full in self.settings:
            return [self.settings[full]]
        head, _, leaf = key.rpartition(".")
        return self._hyperparameters(head, leaf) if head else self._by_word(key)

    def listed(self, what: str) -> list[dict[str, Any]]:
        """What `nearkin list WHAT` shows: one entry per registered part, or per recipe."""
        if what not in self.lists:
            raise NearkinError(f"unknown kind {what!r}: {choices(what, self.lists)}")
        return self.lists[what]

    def word_of(self, part: str) -> str:
        """The word that chooses a part: `dataset` for data."""
        return next((alias for alias, key in self.aliases.items() if key == f"{part}.name"), part)

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Shorter word -> key."""
        return {alias: key for key, entry in self.settings.items() for alias in entry.aliases}

    @property
    def parts(self) -> list[str]:
        """The groups that are chosen by name: `loss`, `miner`, ..."""
        return [name for name, entry in self.groups.items() if entry.kind == "part"]

    def _hyperparameters(self, head: str, leaf: str) -> list[Entry]:
        """`loss.alpha`, `multi_similarity.alpha`; `miner.random` is a class."""
        if head in self.parts:
            classes = list(self.classes[head].values())
        else:
            classes = [named[head] for named in self.classes.values() if head in named]
        here = [entry for part in classes for entry in part.settings]
        if named := [entry for entry in here if entry.leaf == leaf]:
            return named
        if leaf in self.classes.get(head, {}):
            return [self.classes[head][leaf]]
        known = {f"{head}.{entry.leaf}" for entry in here} | {k for k in self.settings if k.startswith(f"{head}.")}
        raise self._unknown(f"{head}.{leaf}", known)

    def _by_word(self, word: str) -> list[Entry]:
        """Classes of that name and settings that end in it; else hyper-parameters of that name."""
        named = [classes[word] for classes in self.classes.values() if word in classes]
        named += [entry for key, entry in self.settings.items() if key.endswith(f".{word}") and "NAME" not in key]
        named = named or [entry for entry in self._all_hyperparameters() if entry.leaf == word]
        if named:
            return named
        raise self._unknown(word, set())

    def _unknown(self, key: str, known: set[str]) -> NearkinError:
        """Named are the near ones of everything, and of the group that the key begins with, else of the groups, all."""
        everything = {*self.settings, *self.aliases, *(name for named in self.classes.values() for name in named)}
        everything |= {entry.leaf for entry in [*self.settings.values(), *self._all_hyperparameters()]}
        near = get_close_matches(key, everything, n=3, cutoff=0.6)
        outermost = {*self.groups, *(name for name in self.settings if "." not in name), *self.aliases}
        return NearkinError(f"unknown key {key!r}: {choices(key, known or {*near, *outermost})}")

    def _all_hyperparameters(self) -> list[Entry]:
        return [entry for part in self.parts for named in self.classes[part].values() for entry in named.settings]

    def to_json(self) -> str:
        """The text of catalogue.json."""
        content = {
            "settings": [entry.to_dict() for entry in self.settings.values()],
            "groups": [entry.to_dict() for entry in self.groups.values()],
            "classes": {kind: [entry.to_dict() for entry in named.values()] for kind, named in self.classes.items()},
            "lists": self.lists,
        }
        return json.dumps(content, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Catalogue":
        """The catalogue whose text this is."""

        def entries(stored: list[dict[str, Any]]) -> dict[str, Entry]:
            return {entry["key"]: Entry.from_dict(entry) for entry in stored}

        content = json.loads(text)
        classes = {kind: entries(stored) for kind, stored in content["classes"].items()}
        return cls(entries(content["settings"]), entries(content["groups"]), classes, content["lists"])


def read_catalogue() -> Catalogue:
    """The catalogue of this version of nearkin: its own parts, not those that a program registers."""
    return Catalogue.from_json((files("nearkin.config") / FILE).read_text(encoding="utf-8"))


def shown(value: Any) -> str:
    """A value as it is written in a spec."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
