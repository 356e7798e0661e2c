"""Which rows of a study a claim speaks of, and which of them may be compared.

Rows are compared within equal settings: the same data, protocol, network and size; and the same sampler, regulariser,
method and image size where a method was run with several of them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

LIFTED = ("lifted_structure", "lifted_similarity", "lifted_weighted", "generalized_lifted")
ALWAYS = ("data.name", "protocol.name", "protocol.share", "model.backbone", "model.dim", "model.cut")
WHERE_VARIED = ("sampler.name", "sampler.per_class", "regulariser.name", "method.name", "data.size")


class OwnRow(TypedDict):
    """A row of a study: its name, the settings of its runs with dotted keys, and seed -> metric -> value."""

    name: str
    spec: Mapping[str, Any]
    values: Mapping[Any, Mapping[str, float]]


def fits(spec: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Has a run these settings? A list is any of its values, None is not set."""
    return all(_meets(spec.get(key), wanted) for key, wanted in settings.items())


def words_of(settings: Mapping[str, Any]) -> str:
    """A method in words: triplet with miner.name=semihard."""
    rest = {key: value for key, value in settings.items() if key != "loss.name"}
    loss = settings.get("loss.name", "a run")
    named = LIFTED[0] if loss == list(LIFTED) else loss
    more = ", ".join(f"{key}={'none' if value is None else value}" for key, value in rest.items())
    return f"{named} with {more}" if more else str(named)


def _meets(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return any(_meets(value, each) for each in wanted)
    if wanted is None:
        return value in (None, "none")
    if isinstance(wanted, float) and isinstance(value, int | float):
        return math.isclose(value, wanted)
    return bool(value == wanted)


def settings_of(method: Any) -> dict[str, Any]:
    """A method of a claim as settings; a word is the name of a loss."""
    found = {"loss.name": method} if isinstance(method, str) else dict(method)
    return found | ({"loss.name": list(LIFTED)} if found.get("loss.name") == LIFTED[0] else {})


def rows_with(rows: Iterable[OwnRow], wanted: Mapping[str, Any], lacks: list[str]) -> list[OwnRow]:
    """The rows with these settings; if there are none, they are noted."""
    found = [row for row in rows if fits(row["spec"], wanted)]
    if not found and (words := words_of(wanted)) not in lacks:
        lacks.append(words)
    return found


def shared_keys(selected: Sequence[Sequence[OwnRow]], said: Iterable[str], *, ablation: bool = False) -> list[str]:
    """The settings that rows must share to be compared. Those that a claim itself names are free; in an ablation the
    hyper-parameters of loss and miner count too."""
    free = set(said)
    parts = {key.partition(".")[0] for key in free}                 # who names a sampler means it with its settings
    varied = [key for key in WHERE_VARIED if key.partition(".")[0] not in parts]
    if ablation:
        spec = {key for rows in selected for row in rows for key in row["spec"]}
        varied += sorted(key for key in spec if key.startswith(("loss.", "miner.")) and key not in free)
    several = [k for k in varied if any(len({repr(row["spec"].get(k)) for row in rows}) > 1 for rows in selected)]
    return [*(key for key in ALWAYS if key not in free), *several]


def place_of(row: OwnRow, keys: Iterable[str]) -> tuple[str, ...]:
    """The values of these settings; rows of the same place may be compared."""
    return tuple(repr(row["spec"].get(key)) for key in keys)


def grouped(rows: Iterable[OwnRow], keys: Sequence[str]) -> dict[tuple[str, ...], list[OwnRow]]:
    """Rows by their place."""
    found: dict[tuple[str, ...], list[OwnRow]] = {}
    for row in rows:
        found.setdefault(place_of(row, keys), []).append(row)
    return found


def common_seeds(rows: Iterable[OwnRow], metrics: Iterable[str]) -> list[Any]:
    """The seeds for which every row has every metric."""
    wanted = list(metrics)

    def complete(values: Mapping[str, float]) -> bool:
        return all(values.get(metric) is not None and math.isfinite(values[metric]) for metric in wanted)

    own = [{seed for seed, values in row["values"].items() if complete(values)} for row in rows]
    return sorted(set.intersection(*own)) if own else []


def note_missing(metrics: Iterable[str], rows: Iterable[OwnRow], lacks: list[str]) -> None:
    """Note the metrics that no row has."""
    there = {metric for row in rows for values in row["values"].values() for metric in values}
    lacks += [f"the metric {metric}" for metric in metrics if metric not in there]
