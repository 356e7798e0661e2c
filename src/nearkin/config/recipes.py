"""Recipes: the settings of a publication as data, so that `recipe=roth2020` is a word like any other.

    nearkin train recipe=psomas2020 dataset=cub backbone=resnet50 loss=proxy_anchor root=DIR

A recipe is a list of rules in `nearkin/recipes/NAME.yaml`. A rule says what is used, in which case, and where that
is written: `use: {epochs: 100}`, `for: {dataset: sop}`, `source: supplement`. Rules are read from top to bottom, later
ones win, and what the user sets overrides all of them. A recipe is only a way of writing settings down: the same
settings without it are the same run.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from nearkin.config.parse import canonical
from nearkin.config.parts import PARTS
from nearkin.errors import NearkinError, choices


class Rule(NamedTuple):
    """A setting, the case in which it is used, and its source."""

    case: dict[str, Any]  # key -> value or list of values; empty: always
    use: dict[str, Any]
    source: str

    def fits(self, words: Mapping[str, Any]) -> bool:
        """Does the case of this rule apply? In a resolved spec a part that is not there is null, in words `none`."""

        def value(key: str) -> Any:
            part, _, last = key.partition(".")
            return "none" if last == "name" and words.get(part, last) is None else words.get(key)

        return all(
            value(key) in (values if isinstance(values, list) else [values]) for key, values in self.case.items()
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

    def words(self, requested: Mapping[str, Any]) -> dict[str, Any]:
        """What the recipe adds to the words of the user, all with dotted keys."""
        settings: dict[str, Any] = {}
        for rule in self.rules:
            if rule.fits({**settings, **requested}):
                _lay(settings, rule.use, requested)
        return settings

    def said(self, words: Mapping[str, Any]) -> dict[str, Any]:
        """What the recipe says of a run with these settings, all of them with dotted keys."""
        settings: dict[str, Any] = {}
        for rule in self.rules:
            if rule.fits(words):
                _lay(settings, rule.use, {})
        return settings

    def overridden(self, words: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """Key -> (what the recipe says, what the words of a spec say), where the two differ."""
        settings = self.said(words)
        other = {part for part in PARTS if (name := f"{part}.name") in settings and settings[name] != words.get(name)}
        return {
            key: (value, words.get(key))
            for key, value in settings.items()
            if words.get(key) != value and (key.partition(".")[0] not in other or key.endswith(".name"))
        }


def without(words: Mapping[str, Any], free: Callable[[str], bool]) -> dict[str, Any]:
    """The settings of a run less those that are free, and less what its recipe adds because of these: a setting that
    has the recipe's value only because of a free one has the value that the recipe gives it otherwise, or null. Under
    recipe=roth2020, SNR with ρ switching has another loss.reg_weight than SNR alone, and is no other loss for that.

    Parameters:
        words: all settings of a run, with dotted keys.
        free: is the setting of this name free?
    """
    rest = {key: value for key, value in words.items() if not free(key)}
    if words.get("recipe") not in names():  # none, or one that this version does not have
        return rest
    recipe = Recipe.named(words["recipe"])
    said, otherwise = recipe.said(words), recipe.said(rest)
    for key, value in said.items():
        if key in rest and rest[key] == value != otherwise.get(key):
            rest[key] = otherwise.get(key)
    return rest


def _lay(settings: dict[str, Any], use: Mapping[str, Any], requested: Mapping[str, Any]) -> None:
    """Apply a rule over the settings so far. A part that gets another name loses its old settings; settings of a part
    for which the user has chosen another name are left out."""
    for part in PARTS:
        name = use.get(f"{part}.name")
        if name is None:
            continue
        if name != settings.get(f"{part}.name", name):
            for key in [key for key in settings if key.startswith(f"{part}.")]:
                del settings[key]
        if requested.get(f"{part}.name", name) != name:
            use = {key: value for key, value in use.items() if not key.startswith(f"{part}.")}
    settings.update({key: value for key, value in use.items() if key not in requested})


def names() -> list[str]:
    """All recipes, sorted."""
    folder = files("nearkin") / "recipes"
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


@lru_cache
def _read(name: str) -> Recipe:
    content = yaml.safe_load((files("nearkin") / "recipes" / f"{name}.yaml").read_text(encoding="utf-8"))
    entries = content["settings"]
    rules = [Rule(canonical(rule.get("for", {})), canonical(rule["use"]), rule["source"]) for rule in entries]
    return Recipe(name, " ".join(content["paper"].split()), content["differs"], rules)
