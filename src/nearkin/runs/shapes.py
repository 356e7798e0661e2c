"""What spec.yaml and the JSON files of a run must hold at least, so that whoever reads them need not doubt it."""

from typing import Any

KEYS: dict[str, dict[str, type]] = {
    "final.json": {"epoch": int, "epochs_trained": int, "validation": dict},
    "result.json": {"test": dict, "epoch": int, "epochs_trained": int, "validation": dict},
    "curve.json": {"epochs": list},
}

# what every stored spec has; `object`: whatever it is, null too
SPEC: dict[str, dict[str, type]] = {
    "data": {"name": str, "size": object, "resize": object},
    "protocol": {"name": str},
    "model": {"backbone": str, "head": object, "dim": object},
    "loss": {"name": str},
    "train": {"epochs": int, "seed": int, "batch": object},
}


def check_head(told: dict[str, Any]) -> str | None:
    """What the content of a spec.yaml lacks, in words; None: nothing. Its `spec` is known to be an object."""
    for name in ("data_hash", "split_hash"):
        if not isinstance(told.get(name), str):
            return f"has no {name}"
    for part, kinds in SPEC.items():
        settings = told["spec"].get(part)
        if not isinstance(settings, dict):
            return f"has no {part}"
        for key, kind in kinds.items():
            if key not in settings:
                return f"has no {part}.{key}"
            if not isinstance(settings[key], kind):
                return f"holds {_kind(settings[key])} under {part}.{key}"
    return None


def check_shape(name: str, told: Any) -> str | None:
    """What is wrong with the content of a file, in words; None: nothing that is known of."""
    if not isinstance(told, dict):
        return f"holds {_kind(told)} instead of an object"
    for key, kind in KEYS.get(name, {}).items():
        if not isinstance(told.get(key), kind):
            return f"has no {key}" if key not in told else f"holds {_kind(told[key])} under {key}"
    if name == "curve.json" and not all(_is_point(point) for point in told["epochs"] or [None]):
        return "holds no epochs with their metrics"
    if name == "tests.json" and not all(
        isinstance(each, dict) and isinstance(each.get("metrics"), dict) for each in told.values()
    ):
        return "holds no metrics"
    return None


def _is_point(point: Any) -> bool:
    return isinstance(point, dict) and isinstance(point.get("epoch"), int) and isinstance(point.get("metrics"), dict)


def _kind(value: Any) -> str:
    kinds = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "a truth value",
        int: "a number",
        float: "a number",
    }
    return kinds.get(type(value), "null")
