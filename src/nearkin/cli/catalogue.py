"""What there is to choose from: `nearkin list losses` and its like, read off the registered classes."""

import inspect
import re
from typing import Any

from nearkin import registry
from nearkin.config import recipes
from nearkin.config.recipes import Recipe
from nearkin.errors import NearkinError, choices
from nearkin.present import Table
from nearkin.registry import Registry, hyperparameters

KINDS: dict[str, Registry] = {
    "losses": registry.LOSSES,
    "miners": registry.MINERS,
    "regularisers": registry.REGULARISERS,
    "methods": registry.METHODS,
    "samplers": registry.SAMPLERS,
    "backbones": registry.BACKBONES,
    "datasets": registry.DATASETS,
    "protocols": registry.PROTOCOLS,
    "metrics": registry.METRICS,
    "heads": registry.HEADS,
    "analyses": registry.ANALYSES,
}


def entries(kind: str) -> list[dict[str, Any]]:
    """One entry per registered part: name, what it is, what it takes, defaults."""
    if kind == "recipes":
        return [{"name": name, "about": Recipe.named(name).paper} for name in recipes.names()]
    if kind not in KINDS:
        raise NearkinError(f"unknown kind {kind!r}: {choices(kind, [*KINDS, 'recipes'])}")
    found = []
    for name in KINDS[kind].names():
        cls = KINDS[kind][name]
        entry: dict[str, Any] = {"name": name, "about": about(cls)}
        if kind == "losses":
            entry["takes"] = takes(cls)
        if kind == "miners":
            entry["gives"] = cls.gives.__name__
        if paper := getattr(cls, "paper", ""):
            entry["paper"] = paper
        if inspect.isclass(cls):
            entry["defaults"] = {k: _shown(p.default) for k, p in hyperparameters(cls).items()}
        found.append(entry)
    return found


def table(kind: str, entries: list[dict[str, Any]]) -> Table:
    """The entries of a kind as a table: papers where there are any, else what each part is."""
    last = "paper" if any("paper" in entry for entry in entries) else "about"
    names = [name for name in ("name", "takes", "gives", "defaults", last) if any(name in entry for entry in entries)]
    return Table(kind, names, [[_words(entry.get(name, "")) for name in names] for entry in entries])


def _words(value: Any) -> str:
    return ", ".join(f"{key}={of_key}" for key, of_key in value.items()) if isinstance(value, dict) else str(value)


def takes(loss: Any) -> str:
    """What a loss takes, in words."""
    if loss.accepts:
        return " or ".join(t.__name__ for t in loss.accepts)
    return "class labels"


def about(part: Any) -> str:
    """What a part is, in one line: its line in the table that heads its module, else the first paragraph of its own
    docstring, else of its module's."""
    module = inspect.getdoc(inspect.getmodule(part)) or ""
    for line in module.splitlines():
        if found := re.match(rf"\s+{re.escape(part.name)}(@k)?\s{{2,}}(.+)", line):
            return " ".join(found[2].split())
    own = inspect.getdoc(part) if vars(part).get("__doc__") or inspect.isfunction(part) else None
    return " ".join((own or module).split("\n\n")[0].split())


def _shown(value: Any) -> Any:
    if value is inspect.Parameter.empty:
        return None
    return value if isinstance(value, int | float | bool | str) else str(value)
