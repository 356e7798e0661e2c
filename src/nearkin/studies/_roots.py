"""Where the data sets of a study lie: `root=DIR` of its only one, `root.cub=DIR root.cars196=DIR` of several."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nearkin.config.parse import canonical
from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError, choices

PREFIX = "root."
ROOT = "data.root"


def split_roots(words: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The words of a call in two: settings, and data set -> its folder."""
    roots = {key.removeprefix(PREFIX): value for key, value in words.items() if key.startswith(PREFIX)}
    return {key: value for key, value in words.items() if not key.startswith(PREFIX)}, roots


def with_roots(
    content: dict[str, Any], words: dict[str, Any], roots: Mapping[str, Any], path: Path
) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """The content of a study and the words over it with these folders in them, and the data sets that have none: bases
    on them are left out."""
    bases = content.get("bases")
    points = {None: {}} if bases is None else bases
    if not roots and len(points) == 1:
        return content, words, ()
    names = {label: make_spec(content.get("base"), point, words).data.name for label, point in points.items()}
    there = list(dict.fromkeys(names.values()))
    if not roots:
        if len(there) > 1 and ROOT in canonical(words):
            forms = " ".join(f"{PREFIX}{name}=DIR" for name in there)
            raise NearkinError(f"root={canonical(words)[ROOT]}: {path} has several data sets; write {forms}")
        return content, words, ()
    for name in roots:
        if name not in there:
            raise NearkinError(f"{PREFIX}{name}: {path} has no such data set; {choices(name, there)}")
    if bases is None:
        return content, words | {ROOT: roots[there[0]]}, ()
    rooted = {
        label: {**(point or {}), ROOT: roots[names[label]]} for label, point in bases.items() if names[label] in roots
    }
    return content | {"bases": rooted}, words, tuple(name for name in there if name not in roots)
