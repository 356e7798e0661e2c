"""What `nearkin list losses` and its like show, read off the registered classes."""

import inspect
import re
from typing import Any

from nearkin.registry import LOSSES, MINERS, Registry, hyperparameters


def listed(registry: Registry) -> list[dict[str, Any]]:
    """One entry per registered part: name, what it is, what it takes, defaults."""
    entries = []
    for name in registry.names():
        cls = registry[name]
        entry: dict[str, Any] = {"name": name, "about": about(cls)}
        if registry is LOSSES:
            entry["takes"] = takes(cls)
        if registry is MINERS:
            entry["gives"] = cls.gives.__name__
        if paper := getattr(cls, "paper", ""):
            entry["paper"] = paper
        if inspect.isclass(cls):
            entry["defaults"] = {k: _shown(p.default) for k, p in hyperparameters(cls).items()}
        entries.append(entry)
    return entries


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
        if match := re.match(rf"\s+{re.escape(part.name)}(@k)?\s{{2,}}(.+)", line):
            return " ".join(match[2].split())
    docstring = inspect.getdoc(part) if vars(part).get("__doc__") or inspect.isfunction(part) else None
    return " ".join((docstring or module).split("\n\n")[0].split())


def _shown(value: Any) -> Any:
    if value is inspect.Parameter.empty:
        return None
    return value if isinstance(value, int | float | bool | str) else str(value)
