"""Recipes: the settings of a publication as data, so that `recipe=roth2020` is a word like any other.

    nearkin train recipe=psomas2020 dataset=cub backbone=resnet50 loss=proxy_anchor root=DIR

A recipe is a list of rules in `nearkin/recipes/NAME.yaml`. A rule says what is used, in which case, and where that
is written: `use: {epochs: 100}`, `for: {dataset: sop}`, `source: supplement`. Rules are read from top to bottom, later
ones win, and what the user asks for wins over all of them. A recipe is only a way of writing settings down: the same
settings without it are the same run.
"""

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from nearkin.config.parse import canonical
from nearkin.config.parts import PARTS
from nearkin.errors import NearkinError, choices


class Rule(NamedTuple):
    """What is used, in which case, and where that is written."""

    case: dict[str, Any]  # key -> value or list of values; empty: always
    use: dict[str, Any]
    source: str

    def fits(self, words: Mapping[str, Any]) -> bool:
        """Is this the case?"""
        return all(
            words.get(key) in (wanted if isinstance(wanted, list) else [wanted]) for key, wanted in self.case.items()
        )


class Recipe(NamedTuple):
    """The settings of a publication: `Recipe.named("roth2020")`."""

    name: str
    paper: str  # what was published, and which documents the settings are from
    differs: list[str]  # what no setting can express, one sentence each
    rules: list[Rule]

    @classmethod
    def named(cls, name: str) -> "Recipe":
        """The recipe of this name; an error that lists all of them if there is none."""
        if name not in names():
            raise NearkinError(f"unknown recipe {name!r}: {choices(str(name), names())}")
        return _read(name)

    def words(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What the recipe adds to the words that a user asks for, all with dotted keys."""
        found: dict[str, Any] = {}
        for rule in self.rules:
            if rule.fits({**found, **asked}):
                _lay(found, rule.use, asked)
        return found

    def overridden(self, words: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """Key -> (what the recipe says, what the words of a spec say), where the two differ."""
        found: dict[str, Any] = {}
        for rule in self.rules:
            if rule.fits(words):
                _lay(found, rule.use, {})
        other = {part for part in PARTS if (name := f"{part}.name") in found and found[name] != words.get(name)}
        return {
            key: (value, words.get(key))
            for key, value in found.items()
            if words.get(key) != value and (key.partition(".")[0] not in other or key.endswith(".name"))
        }


def _lay(found: dict[str, Any], use: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Lay a rule over what was found so far. A part that is named anew loses its old settings; settings of a part that
    the user has named otherwise are left out."""
    for part in PARTS:
        name = use.get(f"{part}.name")
        if name is None:
            continue
        if name != found.get(f"{part}.name", name):
            for key in [key for key in found if key.startswith(f"{part}.")]:
                del found[key]
        if asked.get(f"{part}.name", name) != name:
            use = {key: value for key, value in use.items() if not key.startswith(f"{part}.")}
    found.update({key: value for key, value in use.items() if key not in asked})


def names() -> list[str]:
    """All recipes, sorted."""
    folder = files("nearkin") / "recipes"
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


@lru_cache
def _read(name: str) -> Recipe:
    content = yaml.safe_load((files("nearkin") / "recipes" / f"{name}.yaml").read_text(encoding="utf-8"))
    told = content["settings"]
    rules = [Rule(canonical(rule.get("for", {})), canonical(rule["use"]), rule["source"]) for rule in told]
    return Recipe(name, " ".join(content["paper"].split()), content["differs"], rules)
