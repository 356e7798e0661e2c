"""What names a run: equal hash, equal meaning."""

import hashlib
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

from nearkin.config.born import births, births_of, plain
from nearkin.config.parse import flatten

INSIDE = {"nearkin", "torch", "numpy", *sys.stdlib_module_names}
ALIKE = {"data.cache": ("auto", "decoded", "none")}     # values that give the same result: each counts as the first


def changes(words: Mapping[str, Any], model: type, parts: Mapping[str, Any], unhashed: set[str]) -> dict[str, Any]:
    """Of dotted words those that differ from what their fields were born with.

    Parameters:
        words: a flattened spec, None where a field is null.
        model: the class of the spec.
        parts: part -> the class that its name stands for.
        unhashed: keys that say where and on what it runs, not what is run.
    """
    known = births(model)
    for part, cls in parts.items():
        for key, value in births_of(cls).items():               # glyphs has a size of its own
            known[f"{part}.{key}"] = value, known.get(f"{part}.{key}", (None, False))[1]
    found = {}
    for key, value in words.items():
        value, (default, is_open) = meant(key, value), known.get(key, (None, False))
        if key not in unhashed and value != default and not (value is None and is_open):
            found[key] = value
    return found


def differences(stored: Mapping[str, Any], asked: Mapping[str, Any], born: Mapping[str, Any]) -> list[str]:
    """What two trees of settings disagree about, in words. What is absent in one reads as the default it was born with:
    the field is younger than the run."""
    there, here = flatten(stored), flatten(asked)
    found = []
    for key in sorted(there.keys() | here.keys()):
        old, new = (meant(key, tree.get(key, born.get(key))) for tree in (there, here))
        if old != new:
            found.append(f"{key}={old!r} is stored, {key}={new!r} is asked for")
    return found


def meant(key: str, value: Any) -> Any:
    """The value of a setting as JSON has it; of values that give the same result, the first."""
    alike = ALIKE.get(key)
    return alike[0] if alike and value in alike else plain(value)


def content_of(weights: str) -> str | None:
    """The hash of a file of weights; None when it is no file (a word such as imagenet)."""
    file = Path(weights).expanduser()
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None


def source_of(part: Any) -> str | None:
    """The hash of the source of a class or function from outside nearkin; None for one of ours.

    Counted are the files of the modules that it and its base classes are defined in; of a class in a script or notebook
    its own source. Modules that these import are not.
    """
    part = getattr(part, "func", part)                              # a partial
    digest = hashlib.sha256()
    outside = False
    for each in inspect.getmro(part) if inspect.isclass(part) else (part,):
        module = getattr(each, "__module__", "builtins")
        if module.partition(".")[0] not in INSIDE:
            outside = True
            digest.update(_text(each, module).encode())
    return digest.hexdigest()[:16] if outside else None


def _text(part: Any, module: str) -> str:
    """The text that a class or function is defined by."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if module != "__main__" and file and Path(file).is_file():
        return Path(file).read_text(errors="replace")
    try:
        return inspect.getsource(part)
    except (OSError, TypeError):                                    # notebooks: the class has no file, its methods do
        return "\n".join(_function(f) for _, f in sorted(vars(part).items()) if isinstance(f, FunctionType))


def _function(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        code = function.__code__
        return f"{function.__name__} {code.co_code.hex()} {code.co_consts} {code.co_names}"
