"""Comparisons of more than two rows at a time: ranks, gains along a setting, correlations over methods."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from nearkin.evaluation.metrics.base import metric_of
from nearkin.literature._evidence import (
    Bounds,
    Evidence,
    Parts,
    claimed,
    contrast,
    few_seeds,
    incomplete,
    tail,
    weighed,
)
from nearkin.literature._experiments import Experiment
from nearkin.literature.matching import grouped, settings_of, shared_keys, words_of
from nearkin.statistics.correlation import least_methods, rank_correlation
from nearkin.statistics.unit import LEAST_SEEDS, Nothing, Row, common
from nearkin.statistics.verdict import judge

QUANTILE = 1.959964  # of the normal distribution, for an interval of 95 %


def ranks(condition: Mapping[str, Any], experiments: Sequence[Experiment]) -> Parts:
    """The rank of a method among others."""
    (metric,), place = condition["metric"], condition["among"].index(condition["method"])
    parts: Parts = []
    for one in experiments:
        for group in one.groups(condition["among"], single=True):
            values = one.values([row for (row,) in group], metric)
            if values is not None:
                words = f"rank of {group[place][0].name} among {len(group)}{one.where}"
                parts.append(rank(words, values, values[place], condition["rank"], metric))
    return parts


def rank(words: str, rows: Sequence[Row], method: Row, claimed_rank: int, metric: str) -> Evidence:
    """A rank among rows, 1 the best, by the differences of one row to the others.

    For: as many of the others as the rank says are better, and the rest worse, each by its own test. Against: too many
    are better, or too many worse (partial conjunction, Benjamini and Heller 2008).
    """
    rank_word, sign, k = str(claimed_rank), metric_of(metric).sign or 1, len(rows)
    pairs = judge([(row, method) for row in rows if row is not method], sign=sign)
    differences = [pair.difference for pair in pairs]
    if (apart := next((pair.shared for pair in pairs if isinstance(pair.shared, Nothing)), None)) is not None:
        return Evidence(words, rank_word, reason=apart.reason)
    n = min(d.n for d in differences if d is not None)
    if n < LEAST_SEEDS:
        return Evidence(words, rank_word, reason=few_seeds(n))
    better = np.array([tail(d, 0.0, sign) for d in differences if d is not None])  # (k - 1,)
    worse = np.array([tail(d, 0.0, -sign) for d in differences if d is not None])
    order = np.argsort(better, kind="stable")
    sides = [*better[order[: claimed_rank - 1]], *worse[order[claimed_rank - 1 :]]]
    against = [
        2 * (k - count) * float(np.sort(side)[count - 1])  # two ways to miss it
        for count, side in ((claimed_rank, better), (k + 1 - claimed_rank, worse))
        if count < k
    ]
    place = 1 + sum(sign * d.mean > 0 for d in differences if d is not None)
    low, high = 1 + sum(p.winner is p.first for p in pairs), k - sum(p.winner is method for p in pairs)
    return Evidence(words, rank_word, place, low, high, n, "ranks", min(1.0, 2 * float(max(sides))), min(1.0, *against))


def rank_order(condition: Mapping[str, Any], experiments: Sequence[Experiment]) -> Parts:
    """Neighbours in the claimed order by the sum of their ranks over all experiments, seed by seed."""
    (metric,), order = condition["metric"], condition["order"]
    groups = [
        one.values([row for (row,) in group], metric) for one in experiments for group in one.groups(order, single=True)
    ]
    if not groups or experiments[0].missing:
        return incomplete("sums of ranks") if groups else []
    measured = [rows for rows in groups if rows is not None]
    names = [words_of(settings_of(method)) for method in order]
    words = [f"sum of ranks of {first} less that of {second}" for first, second in pairwise(names)]
    shared = common([row for rows in measured for row in rows])
    if isinstance(shared, Nothing):
        return [Evidence(text, "below 0", reason=shared.reason) for text in words]
    scores = -(metric_of(metric).sign or 1) * shared.values.reshape(len(measured), len(order), -1)  # (G, k, S)
    sums = stats.rankdata(scores, axis=1).sum(axis=0)  # (k, S)
    least = math.sqrt(len(measured) * 2 / 12)  # ranks are whole numbers, and may agree by chance
    return [weighed(text, sums[i] - sums[i + 1], (None, 0.0), "ranks", least_std=least) for i, text in enumerate(words)]


def gains(condition: Mapping[str, Any], experiments: Sequence[Experiment]) -> Parts:
    """What a step along a setting brings, less what a later one brings: the mean over all methods and experiments."""
    along, late, (metric,) = condition["along"], condition["above"], condition["metric"]
    wanted = sorted({value for step in [*condition["steps"], late] for value in step})
    lines = []  # along the setting: its value -> values of a row
    for one in experiments:
        for method in map(settings_of, condition["methods"]):
            mine = [row for value in wanted for row in one.rows_with(method | {along: value})]
            for group in grouped(mine, shared_keys([mine], [*method, along], ablation=True)).values():
                if {row.spec[along] for row in group} >= set(wanted) and (values := one.values(group, metric)):
                    lines.append({row.spec[along]: x for row, x in zip(group, values, strict=True)})
        if not lines and not one.missing:
            one.lack(f"{along} {', '.join(map(str, wanted))} with settings that are otherwise equal")
    if experiments[0].missing:
        return incomplete("gains") if lines else []
    parts: Parts = []
    for step in condition["steps"]:
        weighted = [(line[b], line[a], sign / len(lines)) for line in lines for (a, b), sign in ((step, 1), (late, -1))]
        words = f"gain of {along} {step[0]} to {step[1]} less that of {late[0]} to {late[1]}, mean of {len(lines)}"
        parts.append(contrast(words, weighted, metric, (0.0, None)))
    return parts


def correlations(condition: Mapping[str, Any], experiments: Sequence[Experiment]) -> Parts:
    """The correlation of two metrics over the methods: one point each, whatever rows it has."""
    parts: Parts = []
    for one in experiments:
        for group in one.groups(condition["methods"]):
            sides = [[one.values(rows, metric) for rows in group] for metric in condition["of"]]
            x, y = ([rows for rows in side if rows is not None] for side in sides)
            if len(x) == len(y) == len(group):
                words = f"correlation of {' and '.join(condition['of'])} over {len(group)} methods{one.where}"
                parts.append(correlation(words, x, y, condition["sign"]))
    return parts


def correlation(words: str, x: Sequence[Sequence[Row]], y: Sequence[Sequence[Row]], sign: int) -> Evidence:
    """Spearman's correlation of two metrics over methods, each a mean over common seeds and over the method's rows,
    with a permutation test over methods. The interval is Fisher's, over methods.

    Parameters:
        words: what is compared.
        x, y: the rows of every method, by the one metric and by the other.
        sign: the claimed sign of the correlation.
    """
    bounds: Bounds = (0.0, None) if sign > 0 else (None, 0.0)
    least = least_methods(1)
    shared = common([row for side in (x, y) for method in side for row in method])
    if isinstance(shared, Nothing):
        return Evidence(words, claimed(bounds), reason=shared.reason)
    if len(shared.seeds) < LEAST_SEEDS:
        return Evidence(words, claimed(bounds), reason=few_seeds(len(shared.seeds)))
    if len(x) < least:
        return Evidence(words, claimed(bounds), reason=f"{len(x)} methods, at least {least} are needed")
    means = iter(shared.values.mean(axis=1).tolist())
    points = [[float(np.mean([next(means) for _ in method])) for method in side] for side in (x, y)]
    r = rank_correlation(*points)
    if r is None:
        return Evidence(words, claimed(bounds), reason="all methods have the same value")
    z, half = math.atanh(max(-0.999999, min(0.999999, r.value))), QUANTILE * math.sqrt(1.06 / (r.n - 3))  # Fieller
    sides = (r.p / 2, 1 - r.p / 2)  # in the direction that was seen, and in the other
    p_for, p_against = sides if sign * r.value > 0 else sides[::-1]
    return Evidence(
        words,
        claimed(bounds),
        r.value,
        math.tanh(z - half),
        math.tanh(z + half),
        len(shared.seeds),
        "",
        p_for,
        p_against,
    )
