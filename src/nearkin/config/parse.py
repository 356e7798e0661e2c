"""Settings as people write them: key=value words and YAML files, as plain mappings."""

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nearkin.config.load_yaml import LARGEST, load_yaml
from nearkin.errors import NearkinError

PLAIN = (str, int, float, type(None))  # most values; it is seen faster than that a value is no Mapping
ALIASES = {
    "dataset": "data.name",
    "root": "data.root",
    "protocol": "protocol.name",
    "sampler": "sampler.name",
    "backbone": "model.backbone",
    "weights": "model.weights",
    "dim": "model.dim",
    "cut": "model.cut",
    "loss": "loss.name",
    "miner": "miner.name",
    "regulariser": "regulariser.name",
    "method": "method.name",
    "epochs": "train.epochs",
    "lr": "train.lr",
    "seed": "train.seed",
}


SECTIONS = {full.partition(".")[0] for full in ALIASES.values()}  # what a dotted key begins with


def read_words(words: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """`run.yaml loss=margin dim=64`: what the file holds, where the first word names one, and the words after it."""
    if not words or "=" in words[0]:
        return {}, parse_words(words)
    _check_spaces(words)
    if (words[0] in ALIASES or words[0].partition(".")[0] in SECTIONS) and not Path(words[0]).exists():
        raise NearkinError(
            f"{words[0]!r} is a setting: write {words[0]}=VALUE; a file of settings is named run.yaml, say"
        )
    return read_yaml(Path(words[0])), parse_words(words[1:])


def read_text(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same of one string, as on the command line: `run.yaml loss=margin root='my images'`."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise NearkinError(f"{text!r} has an opening quotation mark and no closing one") from error
    return read_words(words)


def parse_words(words: Sequence[str]) -> dict[str, Any]:
    """`loss=margin loss.beta=1.2` as a mapping; values are read as YAML."""
    _check_spaces(words)
    parsed: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise NearkinError(f"{word!r} is not key=value; for example loss=multi_similarity dim=64")
        if not value.strip():
            raise NearkinError(f"{word!r} has no value: write {key}=VALUE (`nearkin explain {key}`), or leave it out")
        if key in parsed:
            raise NearkinError(f"{key!r} is given twice: {key}={parsed[key]} and {word}")
        parsed[key] = _value(value)
    return parsed


def _check_spaces(words: Sequence[str]) -> None:
    """Refuse `dataset = folder`, which a shell cuts into three words, and `dataset= folder`."""
    padded = ["", *words, ""]
    for before, word, after in zip(padded, words, padded[2:], strict=False):
        if word.startswith("=") and before and "=" not in before:
            written = [before, word] if len(word) > 1 else [before, word, after]
        elif word.endswith("=") and word.count("=") == 1 and len(word) > 1 and after and "=" not in after:
            written = [word, after]
        else:
            continue
        raise NearkinError(f"{' '.join(written).strip()!r}: write {''.join(written)}, without spaces")


def _value(text: str) -> Any:
    """YAML, but 1e-3 is a number."""
    try:
        value = load_yaml(text)
    except NearkinError:
        return text
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping; what is wrong with it is said in one line."""
    try:
        with open(path, encoding="utf-8") as file:
            content = load_yaml(file.read(LARGEST + 1))
    except OSError as error:
        raise NearkinError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise NearkinError(f"{path} is not YAML: {error}") from error
    except NearkinError as error:
        raise NearkinError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise NearkinError(f"{path} holds {type(content).__name__}, not a mapping of keys")
    return content


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if not isinstance(value, PLAIN) and isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def canonical(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings or words as dotted keys, aliases in full: `loss` is `loss.name`. A setting that is given two
    values, under two names, is refused."""
    words: dict[str, Any] = {}
    written: dict[str, str] = {}  # full key -> as it was written
    for key, value in tree.items():
        for word, given in flatten({key: value}).items():
            full = ALIASES.get(word, word)
            if isinstance(given, type):  # of a part: a registered one has its name, another its import path
                given = vars(given).get("name", f"{given.__module__}.{given.__qualname__}")
            if full in words and words[full] != given:
                twice = f"{written[full]}={words[full]} and {word}={given}"
                raise NearkinError(f"{full!r} is given twice: {twice}; leave one of the two out")
            words[full], written[full] = given, word
    return words


def check_values(words: Mapping[str, Any]) -> None:
    """Refuse values that no setting takes: nothing between the quotes, numbers that are not finite, and objects."""
    for key, value in words.items():
        if value == "":
            raise NearkinError(f"{key}='' is empty: give it a value, or leave it out")
        if isinstance(value, float) and not math.isfinite(value):
            raise NearkinError(f"{key}={value}: must be a finite number")
        if not isinstance(value, (*PLAIN, list, tuple, Mapping, Path)):
            kind = type(value)
            raise NearkinError(
                f"{key}={value!r} is an object: a setting is plain text or a number; of a part give the class, "
                f"{key}={kind.__name__}, or its import path, {kind.__module__}.{kind.__qualname__}"
            )
