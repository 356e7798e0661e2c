"""What names a run: equal hash, equal meaning."""

import hashlib
import inspect
from collections.abc import Mapping
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from nearkin.config.born import original_defaults, original_defaults_of, plain
from nearkin.config.parse import flatten
from nearkin.config.sources import INSIDE, helpers_of, text_of
from nearkin.consent import is_path
from nearkin.registry import hyperparameters
from nearkin.storage import fingerprint

ALIKE = {"data.cache": ("auto", "decoded", "none")}  # values that give the same result: each counts as the first


def changes(words: Mapping[str, Any], model: type, parts: Mapping[str, Any], unhashed: set[str]) -> dict[str, Any]:
    """Those dotted words that differ from the original defaults of their fields.

    Parameters:
        words: a flattened spec, None where a field is null.
        model: the class of the spec.
        parts: part -> the class that its name stands for.
        unhashed: keys that say where and on what it runs, not what is run.
    """
    known = original_defaults(model)
    for part, cls in parts.items():
        for key, value in original_defaults_of(cls).items():  # glyphs has a size of its own
            known[f"{part}.{key}"] = value, known.get(f"{part}.{key}", (None, False))[1]
    changed = {}
    for key, value in words.items():
        value, (default, is_open) = canonical_value(key, value), known.get(key, (None, False))
        if key not in unhashed and value != default and not (value is None and is_open):
            changed[key] = value
    return changed


def differences(stored: Mapping[str, Any], asked: Mapping[str, Any], born: Mapping[str, Any]) -> list[str]:
    """In words, where two trees of settings differ. A missing setting has its original default: the field is newer than
    the run."""
    stored_words, asked_words = flatten(stored), flatten(asked)
    sentences = []
    for key in sorted(stored_words.keys() | asked_words.keys()):
        old, new = (canonical_value(key, tree.get(key, born.get(key))) for tree in (stored_words, asked_words))
        if old != new:
            sentences.append(f"{key}={old!r} is stored, {key}={new!r} is asked for")
    return sentences


def canonical_value(key: str, value: Any) -> Any:
    """The value of a setting in the types of JSON; of values that give the same result, the first."""
    alike = ALIKE.get(key)
    return alike[0] if alike and value in alike else plain(value)


def content_of(weights: str) -> str | None:
    """The hash of a file of weights; None if it is not a file (a word such as imagenet)."""
    file = Path(weights).expanduser().absolute()
    return _digest(file, *fingerprint(file)) if file.is_file() else None


@lru_cache(maxsize=64)
def _digest(file: Path, size: int, modified: int, changed: int) -> str:
    """The content is read again only if the file changes: two thousand runs of a study may start from it."""
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def source_of(part: Any) -> str | None:
    """The hash of the source of a class or function from outside nearkin; None for one of ours.

    Counted are the files of the modules that it and its base classes are defined in (of a class in a script or notebook
    its own source), and the modules that these import, unless they are installed packages (config/sources.py).
    """
    digest = hashlib.sha256()
    texts = [text_of(outside) for outside in outside_of(part)]
    for text in texts:
        digest.update(text.encode())
    for module, text in helpers_of(outside_of(part)).items():
        digest.update(f"\n{module}\n{text}".encode())
    return digest.hexdigest()[:16] if texts else None


def modules_of(part: Any) -> dict[str, str]:
    """Module -> the hash of its text, of all that count for a class or function from outside nearkin."""
    classes = outside_of(part)
    texts = {outside.__module__: text_of(outside) for outside in classes} | helpers_of(classes)
    return {module: hashlib.sha256(text.encode()).hexdigest()[:16] for module, text in texts.items()}


def outside_of(part: Any) -> list[Any]:
    """Of a class and its base classes, or of a function, those that come from outside nearkin."""
    part = getattr(part, "func", part)  # a partial
    family = inspect.getmro(part) if inspect.isclass(part) else (part,)
    return [member for member in family if getattr(member, "__module__", "builtins").partition(".")[0] not in INSIDE]


def package_of(part: Any) -> str | None:
    """The package that a part of nearkin comes from, with its version: `timm 1.0.9`; None if there is none."""
    package = getattr(getattr(part, "func", part), "package", None)
    return f"{package} {metadata.version(package)}" if isinstance(package, str) else None


def with_plain_numbers(words: Mapping[str, Any], model: type, parts: Mapping[str, Any]) -> dict[str, Any]:
    """The same words with 2 for 2.0 where the type is unknown: in hyper-parameters of a class given by its import path,
    which are passed on as written, and in those without an annotation."""
    typed = set(original_defaults(model))
    for part, cls in parts.items():
        if not is_path(words[f"{part}.name"]):
            parameters = hyperparameters(cls).items()
            typed |= {f"{part}.{key}" for key, parameter in parameters if parameter.annotation is not parameter.empty}
    unchanged = {key for key in words if key in typed or key.partition(".")[0] not in parts}
    return {key: value if key in unchanged else _whole(value) for key, value in words.items()}


def _whole(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
