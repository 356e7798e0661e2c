"""What spec.yaml and the JSON files of a run must contain at least; it is checked once, when they are read."""

from typing import Any

KEYS: dict[str, dict[str, type]] = {
    "final.json": {"epoch": int, "epochs_trained": int, "validation": dict},
    "result.json": {"test": dict, "epoch": int, "epochs_trained": int, "validation": dict},
    "curve.json": {"epochs": list},
}

# what every stored spec has; `object`: any value, also null
SPEC: dict[str, dict[str, type]] = {
    "data": {"name": str, "size": object, "resize": object},
    "protocol": {"name": str},
    "model": {"backbone": str, "head": object, "dim": object},
    "loss": {"name": str},
    "train": {"epochs": int, "seed": int, "batch": object},
}


def check_head(head: dict[str, Any]) -> str | None:
    """In words, what is missing in the content of a spec.yaml; None: nothing. Its `spec` is known to be an object."""
    for name in ("data_hash", "split_hash"):
        if not isinstance(head.get(name), str):
            return f"has no {name}"
    for part, kinds in SPEC.items():
        settings = head["spec"].get(part)
        if not isinstance(settings, dict):
            return f"has no {part}"
        for key, kind in kinds.items():
            if key not in settings:
                return f"has no {part}.{key}"
            if not isinstance(settings[key], kind):
                return f"holds {_kind(settings[key])} under {part}.{key}"
    return None


def check_shape(name: str, content: Any) -> str | None:
    """In words, what is wrong with the content of a file; None: nothing that can be seen."""
    if not isinstance(content, dict):
        return f"holds {_kind(content)} instead of an object"
    for key, kind in KEYS.get(name, {}).items():
        if not isinstance(content.get(key), kind):
            return f"has no {key}" if key not in content else f"holds {_kind(content[key])} under {key}"
    if name == "curve.json" and not all(_is_point(point) for point in content["epochs"] or [None]):
        return "holds no epochs with their metrics"
    if name == "tests.json" and not all(
        isinstance(test, dict) and isinstance(test.get("metrics"), dict) for test in content.values()
    ):
        return "holds no metrics"
    return None


def _is_point(point: Any) -> bool:
    return isinstance(point, dict) and isinstance(point.get("epoch"), int) and isinstance(point.get("metrics"), dict)


def _kind(value: Any) -> str:
    kinds = {
        dict: "an object",
        list: "a list",
        str: "a string",
        bool: "a truth value",
        int: "a number",
        float: "a number",
    }
    return kinds.get(type(value), "null")
