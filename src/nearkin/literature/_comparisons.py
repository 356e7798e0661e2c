"""From a claim's conditions and the rows of a study to comparisons (evidence.py). The conditions are written in
`data/claims.json`, whose head explains them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from nearkin.literature._evidence import Evidence, Joint, Parts, contrast, incomplete, level
from nearkin.literature._experiments import Experiment
from nearkin.literature._orders import correlations, gains, rank_order, ranks
from nearkin.literature.matching import (
    ALWAYS,
    SEPARATED,
    StudyRow,
    fits,
    grouped,
    place_of,
    settings_of,
    shared_keys,
    words_of,
)
from nearkin.statistics.unit import Row

Measured = Iterator[tuple[str, str, list[Row]]]


def compared(condition: Mapping[str, Any], experiments: Sequence[Experiment]) -> Parts:
    """What a condition comes to in the experiments of a claim; what they lack is noted in them."""
    where = condition.get("where", {})
    narrowed = [replace(one, rows=[row for row in one.rows if fits(row.spec, where)]) for one in experiments]
    for one in narrowed:
        if not one.rows:
            one.lack(words_of(where) if where else "runs")
    there = [one for one in narrowed if one.rows]
    parts = KINDS[condition["kind"]](condition, there) if there else []
    return [Joint(parts, one_suffices=True)] if parts and condition.get("need") == "any" else parts


def _measured(condition: Mapping[str, Any], one: Experiment, rows: Sequence[StudyRow]) -> Measured:
    """Metric, its words, and the values of rows: for every metric and evaluation that all of them have."""
    metrics, evaluations = condition["metric"], condition.get("evaluation", [SEPARATED])
    for metric in metrics:
        for evaluation in evaluations:
            values = one.values(rows, metric, evaluation)
            if values is not None:
                several = [metric] * (len(metrics) > 1) + [evaluation] * (len(evaluations) > 1)
                yield metric, one.where + "".join(f", {word}" for word in several), values


def _difference(condition: Mapping[str, Any], experiments: Sequence[Experiment]) -> Parts:
    """One side less the other lies within bounds, for every pair of rows."""
    return [
        contrast(f"{x.name} less {y.name}{words}", [(x, y, 1.0)], metric, condition["between"])
        for one in experiments
        for pair in _pairs(condition, one)
        for metric, words, (x, y) in _measured(condition, one, pair)
    ]


def _value(condition: Mapping[str, Any], experiments: Sequence[Experiment]) -> Parts:
    """The value of every row lies within bounds."""
    parts: Parts = []
    for one in experiments:
        for method in condition["methods"]:
            for row in one.rows_with(settings_of(method)):
                for metric, words, (values,) in _measured(condition, one, [row]):
                    parts.append(level(f"{values.name}{words}", values, metric, condition["between"]))
    return parts


def _mean_difference(condition: Mapping[str, Any], experiments: Sequence[Experiment]) -> Parts:
    """The mean over all pairs and experiments, which must all be there."""
    (metric,), bounds = condition["metric"], condition["between"]
    values = [one.values(pair, metric) for one in experiments for pair in _pairs(condition, one)]
    words = f"mean of {len(values)} differences"
    if not values or experiments[0].missing:
        return incomplete(words) if values else []
    weighted = [(rows[0], rows[1], 1 / len(values)) for rows in values if rows is not None]
    return [contrast(words, weighted, metric, bounds)]


def _pairs(condition: Mapping[str, Any], one: Experiment) -> list[tuple[StudyRow, StudyRow]]:
    """The rows of either side with settings that are otherwise equal."""
    if methods := condition.get("methods"):  # both sides are laid over each method
        bases = [settings_of(method) for method in methods]
        sides = [(base | condition["left"], base | right) for base in bases for right in condition["right"]]
    else:
        sides = [(settings_of(condition["left"]), settings_of(right)) for right in condition["right"]]
    pairs = []
    for left, right in sides:
        ours, theirs = one.rows_with(left), one.rows_with(right)
        if not ours or not theirs:
            continue
        keys = shared_keys([ours, theirs], left | right, ablation=bool(methods))
        equal = _alike(ours, theirs, keys)
        if not equal and not methods:  # other losses may have been given other batches
            equal = _alike(ours, theirs, [key for key in keys if key in ALWAYS])
        if not equal:
            one.lack(f"{words_of(left)} and {words_of(right)} with settings that are otherwise equal")
        pairs += equal
    return pairs


def _alike(ours: list[StudyRow], theirs: list[StudyRow], keys: list[str]) -> list[tuple[StudyRow, StudyRow]]:
    return [(a, b) for a in ours for b in theirs if a is not b and place_of(a, keys) == place_of(b, keys)]


def _best(condition: Mapping[str, Any], experiments: Sequence[Experiment]) -> Parts:
    """At every metric one of the left, whichever, is above all of the right."""
    parts: Parts = []
    for one in experiments:
        pairs = [pair for left in condition["left"] for pair in _pairs({**condition, "left": left}, one)]
        if one.missing.rows:  # what is missing might be the best
            return incomplete("the best") if pairs else []
        rows = list(dict.fromkeys(row for pair in pairs for row in pair))
        for metric, words, values in _measured(condition, one, rows):
            leads: dict[StudyRow, list[Evidence | Joint]] = {}
            value = dict(zip(rows, values, strict=True))
            for a, b in pairs:
                name = f"{a.name} less {b.name}{words}"
                leads.setdefault(a, []).append(contrast(name, [(value[a], value[b], 1.0)], metric, (0.0, None)))
            parts.append(Joint([Joint(above) for above in leads.values()], one_suffices=True))
    return parts


def _spread(condition: Mapping[str, Any], experiments: Sequence[Experiment]) -> Parts:
    """Largest less smallest is below a bound: so is every difference of two, whichever is the larger."""
    over, below = condition["over"], condition["below"]
    parts: Parts = []
    for one in experiments:
        for method in map(settings_of, condition["methods"]):
            mine = [row for choice in condition["choices"] for row in one.rows_with(method | {over: choice})]
            for group in grouped(mine, shared_keys([mine], [*method, over], ablation=True)).values():
                for metric, words, values in _measured(condition, one, group):
                    parts += [
                        contrast(f"{x.name} less {y.name}{words}", [(x, y, 1.0)], metric, (-below, below))
                        for x, y in combinations(values, 2)
                    ]
    return parts


def _best_less_mean(condition: Mapping[str, Any], experiments: Sequence[Experiment]) -> Parts:
    """The best less the mean is below a bound: so is every one less the mean."""
    parts: Parts = []
    for one in experiments:
        for group in one.groups(condition["methods"]):
            rows = [row for method in group for row in method]
            for metric, words, values in _measured(condition, one, rows):
                for x in values:
                    weighted = [(x, y, 1 / len(values)) for y in values if y is not x]
                    name = f"{x.name} less the mean of {len(values)}{words}"
                    parts.append(contrast(name, weighted, metric, (None, condition["below"])))
    return parts


KINDS: dict[str, Callable[[Mapping[str, Any], Sequence[Experiment]], Parts]] = {
    "difference": _difference,
    "value": _value,
    "mean difference": _mean_difference,
    "best": _best,
    "spread": _spread,
    "best less mean": _best_less_mean,
    "rank": ranks,
    "rank order": rank_order,
    "gain": gains,
    "correlation": correlations,
}
