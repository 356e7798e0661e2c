"""Which rows of a study a claim speaks of, and which of them may be compared.

Rows are compared within equal settings: the same images, protocol, network and size; and the same sampler, regulariser,
method and image size where a method was run with several of them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nearkin.statistics.unit import Row

LIFTED = ("lifted_structure", "lifted_similarity", "lifted_weighted", "generalized_lifted")
ALWAYS = ("data.name", "protocol.name", "protocol.share", "model.backbone", "model.dim", "model.cut")
WHERE_VARIED = ("sampler.name", "sampler.per_class", "regulariser.name", "method.name", "data.size")
SEPARATED = "separated"


@dataclass(frozen=True, eq=False)
class StudyRow:
    """A row of a study, as claims see it.

    Parameters:
        name: of the row.
        spec: the settings of its runs, with dotted keys.
        metrics: metric -> the values of its runs by seed and fold.
        joined: metric -> the values of its joined folds by seed; only what is stored.
        data: the hash of the images: rows on other images are never compared.
    """

    name: str
    spec: Mapping[str, Any]
    metrics: Mapping[str, Row]
    joined: Mapping[str, Row] = field(default_factory=dict)
    data: str = ""

    def values(self, metric: str, evaluation: str = SEPARATED) -> Row | None:
        """Its values of a metric: of its runs (separated), or of their joined folds (concatenated); None without."""
        row = (self.metrics if evaluation == SEPARATED else self.joined).get(metric)
        return row if row is not None and row.members else None


def fits(spec: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Has a run these settings? A list is any of its values, None is not set."""
    return all(_meets(spec.get(key), required) for key, required in settings.items())


def words_of(settings: Mapping[str, Any]) -> str:
    """A method in words: triplet with miner.name=semihard."""
    rest = {key: value for key, value in settings.items() if key != "loss.name"}
    loss = settings.get("loss.name", "a run")
    name = LIFTED[0] if loss == list(LIFTED) else loss
    more = ", ".join(f"{key}={'none' if value is None else value}" for key, value in rest.items())
    return f"{name} with {more}" if more else str(name)


def _meets(value: Any, required: Any) -> bool:
    if isinstance(required, list):
        return any(_meets(value, choice) for choice in required)
    if required is None:
        return value in (None, "none")
    if isinstance(required, float) and isinstance(value, int | float):
        return math.isclose(value, required)
    return bool(value == required)


def settings_of(method: Any) -> dict[str, Any]:
    """A method of a claim as settings; a word is the name of a loss."""
    settings = {"loss.name": method} if isinstance(method, str) else dict(method)
    return settings | ({"loss.name": list(LIFTED)} if settings.get("loss.name") == LIFTED[0] else {})


def shared_keys(selected: Sequence[Sequence[StudyRow]], named: Iterable[str], *, ablation: bool = False) -> list[str]:
    """The settings that rows must share to be compared. Those that a claim itself names are free; in an ablation the
    hyper-parameters of loss and miner count too."""
    free = set(named)
    parts = {key.partition(".")[0] for key in free}  # who names a sampler means it with its settings
    varied = [key for key in WHERE_VARIED if key.partition(".")[0] not in parts]
    if ablation:
        spec = {key for rows in selected for row in rows for key in row.spec}
        varied += sorted(key for key in spec if key.startswith(("loss.", "miner.")) and key not in free)
    several = [k for k in varied if any(len({repr(row.spec.get(k)) for row in rows}) > 1 for rows in selected)]
    return [*(key for key in ALWAYS if key not in free), *several]


def place_of(row: StudyRow, keys: Iterable[str]) -> tuple[str, ...]:
    """Its images and the values of these settings; rows of the same place may be compared."""
    return (row.data, *(repr(row.spec.get(key)) for key in keys))


def grouped(rows: Iterable[StudyRow], keys: Sequence[str]) -> dict[tuple[str, ...], list[StudyRow]]:
    """Rows by their place, each once."""
    groups: dict[tuple[str, ...], list[StudyRow]] = {}
    for row in rows:
        group = groups.setdefault(place_of(row, keys), [])
        if row not in group:
            group.append(row)
    return groups
