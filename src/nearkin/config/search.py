"""What tuning may try for a run: the search spaces that its parts declare, or those given in a file.

search_space(spec)                                      key -> space, as loss, miner, ... declare them
given_spaces(spec, {"loss.alpha": {"low": 2, ...}})     all that a file gives
"""

from collections.abc import Mapping
from typing import Any, get_args

from nearkin.config.born import tree_in
from nearkin.config.parse import ALIASES
from nearkin.config.spec import RunSpec
from nearkin.errors import NearkinError
from nearkin.registry import hyperparameters
from nearkin.spaces import Space, parse_space

SEARCHED = ("loss", "miner", "regulariser", "method")  # parts that declare spaces


def search_space(spec: RunSpec) -> dict[str, Space]:
    """Key -> space, of the loss of a spec, its miner, its regulariser and its method.

    Hyper-parameters that have no effect with the other settings of their part are left out, such as a threshold in
    another form of the loss. A class from outside may declare spaces too.
    """
    spaces: dict[str, Space] = {}
    for part, cls in spec.classes().items():
        if part not in SEARCHED:
            continue
        settings = {name: p.default for name, p in hyperparameters(cls).items()} | getattr(spec, part).params
        for key, space in declared(cls).items():
            if all(settings.get(name) in values for name, values in space.when.items()):
                spaces[key if "." in key else f"{part}.{key}"] = space
    return spaces


def declared(cls: Any) -> dict[str, Space]:
    """The spaces that a class declares as `search`: hyper-parameter, or dotted key of the spec -> space."""
    search = getattr(cls, "search", {})
    if not isinstance(search, Mapping):  # of a class of another library: something else
        return {}
    for key, space in search.items():
        if not isinstance(space, Space):
            raise NearkinError(
                f"{cls.__name__}.search[{key!r}] is {space!r}: must be a space, such as nearkin.spaces.Space(0.1, 1)"
            )
    return dict(search)


def given_spaces(spec: RunSpec, given: Mapping[str, Any]) -> dict[str, Space]:
    """Key -> space, from a file: short forms of keys (`dim`) are expanded."""
    keys = {key: ALIASES.get(key, key) for key in given}
    return {full: parse_space(full, given[key], whole=takes_whole(spec, full)) for key, full in keys.items()}


def takes_whole(spec: RunSpec, key: str) -> bool:
    """Does the setting take whole numbers only? An unknown one does not."""
    head, _, leaf = key.rpartition(".")
    classes = spec.classes()
    if head in classes and leaf in (parameters := hyperparameters(classes[head])):
        return _whole(parameters[leaf].annotation)
    model: Any = RunSpec
    for name in key.split("."):
        field = getattr(model, "model_fields", {}).get(name)
        if field is None:  # below train.groups nothing is whole
            return False
        model = tree_in(field.annotation) or field.annotation
    return _whole(model)


def _whole(annotation: Any) -> bool:
    kinds = {annotation, *get_args(annotation)}
    return int in kinds and float not in kinds
