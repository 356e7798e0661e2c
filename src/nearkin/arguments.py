"""What the constructor of a part is given, checked against its annotations.

`Triplet(margin="0.1")` and `ProxyAnchor(8.0, 32)` are refused in one line, not by torch in the middle of a computation.
Every registered class is checked (`Registry.register`). Annotations that are not made of numbers, text, truth values,
literals and None are for their author's tools alone.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from functools import cache, wraps
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from nearkin.errors import NearkinError

WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "None"}


def check_arguments(cls: type) -> None:
    """Let the constructor of a class refuse what its annotations do not allow."""
    init = cls.__init__  # type: ignore[misc]
    if inspect.isfunction(init) and not hasattr(init, "checks_arguments"):
        cls.__init__ = _checked(init)  # type: ignore[misc]


def _checked(init: Callable[..., None]) -> Callable[..., None]:
    @cache
    def signature() -> inspect.Signature:
        try:
            return inspect.signature(init, eval_str=True)
        except NameError:  # a name that only type checkers see
            return inspect.signature(init)

    @wraps(init)
    def checked(self: Any, *values: Any, **named: Any) -> None:
        try:
            given = signature().bind_partial(self, *values, **named).arguments
        except TypeError:  # too many, or a name that it does not have: Python says it best
            given = {}
        check_values(type(self).__name__, given, signature().parameters)
        init(self, *values, **named)

    checked.checks_arguments = True  # type: ignore[attr-defined]
    return checked


def check_values(owner: str, values: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]) -> None:
    """Refuse the first value that the annotation of its parameter does not allow."""
    for name, value in values.items():
        if reason := refusal(value, parameters[name].annotation):
            raise NearkinError(f"{owner}: {name}={value!r}: {reason}")


def refusal(value: Any, annotation: Any) -> str | None:
    """Why an annotation does not allow a value; None: it does, or it is not one of plain types."""
    types, literals = _members(annotation)
    if not types <= WORDS.keys() or not (types or literals):
        return None
    if any(_fits(value, kind) for kind in types) or any(
        value == known and type(value) is type(known) for known in literals
    ):
        return None
    if float in types and isinstance(value, Real) and not isinstance(value, bool):
        return "must be a finite number"
    if literals:
        return f"choices: {', '.join(str(known) for known in (*literals, *(WORDS[kind] for kind in types)))}"
    return f"must be {' or '.join(WORDS[kind] for kind in WORDS if kind in types)}, not {type(value).__name__}"


def _fits(value: Any, kind: type) -> bool:
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    return isinstance(value, kind)


def is_number(annotation: Any) -> bool:
    """Is a number meant, to which true and false are none? Also inside of a tuple, or beside None."""
    if get_origin(annotation) is Literal:
        return False
    inner = get_args(annotation)
    return any(map(is_number, inner)) and bool not in inner if inner else annotation in (int, float)


def _members(annotation: Any) -> tuple[set[Any], tuple[Any, ...]]:
    """The types of a union, and the values of the literals in it."""
    if get_origin(annotation) is Literal:
        return set(), get_args(annotation)
    if get_origin(annotation) not in (Union, UnionType):
        return {NoneType if annotation is None else annotation}, ()
    parts = [_members(part) for part in get_args(annotation)]
    return set().union(*(types for types, _ in parts)), tuple(value for _, values in parts for value in values)
