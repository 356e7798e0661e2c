"""Which import paths may be imported. A spec may name a class by its import path, and importing a module runs it.

A user who types a path, writes it in Python, or names the file that contains it, wants it imported. A path that was
read from a stored run may come from a stranger: it is imported only after `trust=True` or with NEARKIN_TRUST=1.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from nearkin.errors import NearkinError

VARIABLE = "NEARKIN_TRUST"
PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
PLAIN = (int, float, type(None))  # most values; this test is faster than the one for a Mapping
_stored: set[str] = set()  # import paths that stored runs named
_wanted: set[str] = set()  # import paths that the user named, in this process


def is_path(name: object) -> bool:
    """Is it written like the import path of a class: `package.module.Class`?"""
    return isinstance(name, str) and PATH.fullmatch(name) is not None


def import_paths(tree: Any) -> set[str]:
    """Everything in a tree of settings that is written like an import path, at any depth; also a metric with its
    `@k`."""
    paths, left = set(), [tree]
    while left:  # a thousand specs are read for one list of runs
        value = left.pop()
        if isinstance(value, str):
            if "." in value and is_path(name := value.partition("@")[0]):
                paths.add(name)
        elif isinstance(value, PLAIN):
            continue
        elif isinstance(value, Mapping):
            left.extend(value.values())
        elif isinstance(value, list | tuple):
            left.extend(value)
    return paths


def consent(paths: Iterable[str]) -> None:
    """The user named these paths, or said that they may be imported."""
    _wanted.update(paths)


def note_stored(paths: Iterable[str]) -> None:
    """These paths come from a stored run: the user has not asked for them yet."""
    _stored.update(paths)


def trust_all() -> None:
    """Import what stored runs name, in this process and in those that it starts."""
    os.environ[VARIABLE] = "1"


def may_import(path: str) -> bool:
    """Has the user agreed to import this path?"""
    return path in _wanted or path not in _stored or os.environ.get(VARIABLE) == "1"


def check_consent(kind: str, path: str) -> None:
    """Refuse to import what a stored run names, unless the user wants it."""
    if not may_import(path):
        module = path.rpartition(".")[0]
        raise NearkinError(
            f"{kind} {path!r} is named by a stored run and would import the module {module}, which can do anything: "
            f"if you trust the run, say trust=True or set {VARIABLE}=1"
        )
