"""From a claim's conditions and the rows of a study to comparisons: one number per seed, and the bounds it is claimed
to lie in. The conditions are written in `data/claims.json`, whose head explains them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from scipy import stats

from nearkin.evaluation.metrics.base import metric_of
from nearkin.published.matching import (
    OwnRow,
    common_seeds,
    fits,
    grouped,
    note_missing,
    place_of,
    rows_with,
    settings_of,
    shared_keys,
    words_of,
)


@dataclass(frozen=True)
class Comparison:
    """A number per common seed, and the bounds within which a claim says that it lies."""

    words: str
    values: list[float]
    low: float | None
    high: float | None
    unit: str = "points"
    least_std: float = 0.0                      # ranks are whole numbers: their spread is at least that of rounding


@dataclass
class Compared:
    """The comparisons that a condition comes to, and what the study lacks for it."""

    comparisons: list[Comparison] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)


def compared(condition: Mapping[str, Any], rows: Sequence[OwnRow]) -> Compared:
    """What a condition comes to in these rows. Untrained networks are no methods."""
    trained = [row for row in rows if row["spec"].get("train.epochs") != 0]
    return KINDS[condition["kind"]](condition, trained)


def _scale(metric: str) -> tuple[float, str]:
    """Shares are told in points of a hundred, others as they are."""
    return (100.0, "points") if metric_of(metric).is_share else (1.0, "")


def _difference(condition: Mapping[str, Any], rows: Sequence[OwnRow]) -> Compared:
    found, (low, high) = Compared(), condition["between"]
    if methods := condition.get("methods"):                         # both sides are laid over each method
        each = [settings_of(method) for method in methods]
        sides = [(own | condition["left"], own | right) for own in each for right in condition["right"]]
    else:
        sides = [(settings_of(condition["left"]), settings_of(right)) for right in condition["right"]]
    pairs: list[tuple[OwnRow, OwnRow]] = []
    for left, right in sides:
        ours, theirs = rows_with(rows, left, found.lacks), rows_with(rows, right, found.lacks)
        keys = shared_keys([ours, theirs], left | right, ablation=bool(methods))
        equal = [(a, b) for a in ours for b in theirs if a is not b and place_of(a, keys) == place_of(b, keys)]
        if ours and theirs and not equal:
            found.lacks.append(f"{words_of(left)} and {words_of(right)} with settings that are otherwise equal")
        pairs += equal
    note_missing(condition["metric"], rows, found.lacks)
    for metric in condition["metric"]:
        scale, unit = _scale(metric)
        said = f", {metric}" if len(condition["metric"]) > 1 else ""
        judged = [(f"{a['name']} less {b['name']}{said}", [(a, b)]) for a, b in pairs]
        if condition.get("mean"):                                   # of all pairs, which must all be there
            judged = [] if found.lacks else [(f"mean of {len(pairs)} differences{said}", pairs)]
        for words, chosen in judged:
            seeds = common_seeds([row for pair in chosen for row in pair], [metric])
            values = [scale * float(np.mean([a["values"][s][metric] - b["values"][s][metric] for a, b in chosen]))
                      for s in seeds]  # fmt: skip
            found.comparisons.append(Comparison(words, values, low, high, unit))
    return found


def _spread(condition: Mapping[str, Any], rows: Sequence[OwnRow]) -> Compared:
    """Largest less smallest is below a bound: so is every difference of two, whichever is the larger."""
    found, over, below = Compared(), condition["over"], condition["below"]
    (metric,) = condition["metric"]
    for method in map(settings_of, condition["methods"]):
        mine = [row for choice in condition["choices"] for row in rows_with(rows, method | {over: choice}, found.lacks)]
        for group in grouped(mine, shared_keys([mine], [*method, over], ablation=True)).values():
            for a, b in combinations(group, 2):
                seeds = common_seeds([a, b], [metric])
                values = [100 * (a["values"][s][metric] - b["values"][s][metric]) for s in seeds]
                found.comparisons.append(Comparison(f"{a['name']} less {b['name']}", values, -below, below))
    note_missing([metric], rows, found.lacks)
    return found


def _best(condition: Mapping[str, Any], rows: Sequence[OwnRow]) -> Compared:
    """The best less the mean is below a bound: so is every one less the mean."""
    found, (metric,) = Compared(), condition["metric"]
    for group in _whole(condition["methods"], rows, found):
        seeds = common_seeds(group, [metric])
        mean = {s: float(np.mean([row["values"][s][metric] for row in group])) for s in seeds}
        for row in group:
            values = [100 * (row["values"][s][metric] - mean[s]) for s in seeds]
            words = f"{row['name']} less the mean of {len(group)}"
            found.comparisons.append(Comparison(words, values, None, condition["below"]))
    note_missing([metric], rows, found.lacks)
    return found


def _whole(methods: Sequence[Any], rows: Sequence[OwnRow], found: Compared, *, one: bool = False) -> list[list[OwnRow]]:
    """The groups of equal settings in which every method was run; `one`: with one row each, in the given order."""
    settings = [settings_of(method) for method in methods]
    selected = [rows_with(rows, each, found.lacks) for each in settings]
    if not all(selected):
        return []
    keys = shared_keys(selected, {key for each in settings for key in each})
    groups = []
    for group in grouped((row for rows in selected for row in rows), keys).values():
        mine = [[row for row in group if fits(row["spec"], each)] for each in settings]
        if all(mine) and one and any(len(rows) > 1 for rows in mine):
            twice = next(words_of(each) for each, rows in zip(settings, mine, strict=True) if len(rows) > 1)
            found.lacks.append(f"one row per method and setting (of {twice} it has several)")
        elif all(mine):
            groups.append([row for rows in mine for row in rows])
    if not groups and not found.lacks:
        found.lacks.append("all methods with settings that are otherwise equal")
    return groups


def _ranks(group: Sequence[OwnRow], metric: str, seeds: Iterable[Any]) -> dict[Any, Any]:
    """Seed -> the rank of every row, 1 the highest.                                                            (k,)"""
    return {s: stats.rankdata([-row["values"][s][metric] for row in group]) for s in seeds}


def _rank(condition: Mapping[str, Any], rows: Sequence[OwnRow]) -> Compared:
    found, (metric,), (low, high) = Compared(), condition["metric"], condition["between"]
    among = [settings_of(m) | condition["where"] for m in condition["among"]]
    place = condition["among"].index(condition["method"])
    for group in _whole(among, rows, found, one=True):
        values = [float(ranks[place]) for ranks in _ranks(group, metric, common_seeds(group, [metric])).values()]
        words = f"rank of {group[place]['name']} among {len(group)}"
        found.comparisons.append(Comparison(words, values, low, high, "ranks", math.sqrt(1 / 12)))
    note_missing([metric], rows, found.lacks)
    return found


def _rank_order(condition: Mapping[str, Any], rows: Sequence[OwnRow]) -> Compared:
    """Neighbours in the claimed order by the sum of their ranks over all settings, seed by seed."""
    found, (metric,) = Compared(), condition["metric"]
    groups = _whole(condition["order"], rows, found, one=True)
    seeds = common_seeds([row for group in groups for row in group], [metric])
    ranks = [_ranks(group, metric, seeds) for group in groups]
    for i, (first, second) in enumerate(pairwise(condition["order"])):
        if groups:
            values = [float(sum(each[s][i] - each[s][i + 1] for each in ranks)) for s in seeds]
            words = f"sum of ranks of {words_of(settings_of(first))} less that of {words_of(settings_of(second))}"
            found.comparisons.append(Comparison(words, values, None, 0, "ranks", math.sqrt(len(groups) * 2 / 12)))
    note_missing([metric], rows, found.lacks)
    return found


def _gain(condition: Mapping[str, Any], rows: Sequence[OwnRow]) -> Compared:
    """What a step along a setting brings, less what a later one brings: the mean over all methods and settings."""
    found, along, (metric,) = Compared(), condition["along"], condition["metric"]
    late = condition["above"]
    wanted = sorted({value for step in [*condition["steps"], late] for value in step})
    lines: list[dict[Any, OwnRow]] = []                             # along the setting: its value -> row
    for method in map(settings_of, condition["methods"]):
        mine = [row for value in wanted for row in rows_with(rows, method | {along: value}, found.lacks)]
        for group in grouped(mine, shared_keys([mine], [*method, along], ablation=True)).values():
            lines.append({row["spec"][along]: row for row in group})
    whole = [line for line in lines if line.keys() >= set(wanted)]
    seeds = common_seeds([row for line in whole for row in line.values()], [metric])
    if not whole and not found.lacks:
        found.lacks.append(f"{along} {', '.join(map(str, wanted))} with settings that are otherwise equal")
    for step in [] if found.lacks else condition["steps"]:
        values = []
        for s in seeds:
            at = [{value: 100 * row["values"][s][metric] for value, row in line.items()} for line in whole]
            values.append(float(np.mean([v[step[1]] - v[step[0]] - v[late[1]] + v[late[0]] for v in at])))
        words = f"gain of {along} {step[0]} to {step[1]} less that of {late[0]} to {late[1]}, mean of {len(whole)}"
        found.comparisons.append(Comparison(words, values, 0, None))
    note_missing([metric], rows, found.lacks)
    return found


def _correlation(condition: Mapping[str, Any], rows: Sequence[OwnRow]) -> Compared:
    """Pearson's correlation over the methods, seed by seed."""
    found, (x, y), (low, high) = Compared(), condition["of"], condition["between"]
    for group in _whole(condition["methods"], rows, found):
        values = [stats.pearsonr(*([row["values"][s][metric] for row in group] for metric in (x, y))).statistic
                  for s in common_seeds(group, [x, y])]  # fmt: skip
        words = f"correlation of {x} and {y} over {len(group)} rows"
        found.comparisons.append(Comparison(words, [float(v) for v in values if math.isfinite(v)], low, high, ""))
    note_missing([x, y], rows, found.lacks)
    return found


KINDS: dict[str, Callable[[Mapping[str, Any], Sequence[OwnRow]], Compared]] = {
    "difference": _difference,
    "spread": _spread,
    "best less mean": _best,
    "rank": _rank,
    "rank order": _rank_order,
    "gain": _gain,
    "correlation": _correlation,
}
