"""Check search spaces: do the parts of a run accept every value, and what are the current values?"""

from collections.abc import Mapping
from typing import Any

import torch

from nearkin.config.parse import flatten
from nearkin.config.spec import RunSpec, make_spec
from nearkin.engine.objective import build_objective
from nearkin.errors import NearkinError
from nearkin.models.build import build_model
from nearkin.registry import hyperparameters
from nearkin.runs.defaults import resolve
from nearkin.runs.prepare import check_groups, check_objective, make_objective, parts_of
from nearkin.spaces import Space


def check_spaces(spec: RunSpec, spaces: Mapping[str, Space]) -> None:
    """Refuse a space with values that its setting does not accept: the parts of the run are built with both ends of the
    space (with every value of a choice) and the other settings unchanged."""
    for key, space in spaces.items():
        for value in space.ends():
            try:
                tried = make_spec(spec, {key: value})
                if tried.method is None:
                    check_objective(tried)
                else:
                    _try_method(tried)
            except Exception as error:  # constructors of other libraries may raise anything
                raise NearkinError(f"search space of {key}, {space}: {error}") from error


def _try_method(spec: RunSpec) -> None:
    """Build a small one."""
    with torch.random.fork_rng(devices=[]):
        model = build_model(backbone="convnet", head=spec.method.cls.head, dim=8, parts=2)  # type: ignore[union-attr]
        method = make_objective(spec, model, num_classes=2)
    check_groups(spec, method)


def value_now(spec: RunSpec, key: str) -> Any:
    """The value that a spec has for a key, set or by default; for the parameters of a loss, their actual learning rate.

    `space.contains(value_now(spec, key))` tells whether tuning could come back to it.
    """
    head, _, leaf = key.rpartition(".")
    classes = spec.classes()
    if head in classes and leaf in (parameters := hyperparameters(classes[head])):
        return getattr(spec, head).params.get(leaf, parameters[leaf].default)
    filled = resolve(spec)
    words = flatten(filled.whole())
    if words.get(key) is None and key.startswith("train.groups.") and leaf == "lr":
        with torch.random.fork_rng(devices=[]):
            groups = build_objective(**parts_of(spec), num_classes=2, dim=8).parameter_groups(lr=filled.train.lr)
        rates = {group["name"]: group["lr"] for group in groups}
        return rates.get(key.split(".")[2], filled.train.lr)
    if key not in words:
        raise NearkinError(f"unknown key {key!r}: `nearkin explain` lists all of them")
    return words[key]
