"""What a comparison shows: its tables, of plain values, for the screen, for files and for the report."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nearkin.comparison.compare import Comparison
from nearkin.comparison.tournament import Standing, standing, words_of
from nearkin.comparison.verdicts import (
    Family,
    all_pairs,
    first_family,
    ranks,
    tied_for_first,
    untrained_pairs,
    verdict_words,
)
from nearkin.comparison.words import ALL_PAIRS, NOT_TESTED, family_words, first_words, kinds_words
from nearkin.errors import NearkinError
from nearkin.evaluation.metrics.base import OF_RUNS, difference_unit, metric_of, unit_of
from nearkin.present import Column, Table
from nearkin.statistics.verdict import Pair
from nearkin.studies.readings import READINGS
from nearkin.units import COUNT, NUMBER, P

RANK = Column("rank", to="rank_high", unit=COUNT, about="the ranks that the row may have, over all pairs of rows")


def tables_of(comparison: Comparison) -> dict[str, Table]:
    """All tables of a comparison, by name: leaderboard, differences, pairs, values and, where there is one, tournament.
    The terminal leaves out pairs and values."""
    tables, first = {"leaderboard": leaderboard(comparison)}, comparison.reference
    if len(comparison.methods) > 1:
        title = ALL_PAIRS if first is None else f"differences to {first.name}"
        title += ", first by validation" if first is not None and not comparison.against else ""
        tables["differences"] = differences(comparison, first_family(comparison), title, untrained_pairs(comparison))
        tables["pairs"] = replace(differences(comparison, all_pairs(comparison), ALL_PAIRS), detail=True)
    ranked = standing_of(comparison)
    if ranked is not None:
        tables["tournament"] = tournament_table(ranked, f"{comparison.data}, by {comparison.metric}")
    tables["values"] = values_table(comparison)
    return {name: replace(table, name=name) for name, table in tables.items()}


def leaderboard(comparison: Comparison) -> Table:
    """Mean and interval of every method, best first, and the ranks that it may have."""
    metric, may_be, tied = comparison.metric, ranks(comparison), tied_for_first(comparison)
    rows = []
    for method in comparison.methods:
        low, high = may_be.get(method.name, (None, None))
        i = method.interval
        numbers = [None] * 4 if i is None else [i.mean, i.low, i.high, i.cut]
        rows.append([method.name, method.kind, low, high, len(method.values), *numbers, method.name in tied])
    epoch = READINGS[comparison.reading][0]
    title = f"{comparison.data}: test {metric}, epoch {epoch}; mean over seeds with 95 % interval"
    if metric.startswith(OF_RUNS):
        title = f"{comparison.data}: {metric}; mean over seeds with 95 % interval"
    intervals = [method.interval for method in comparison.methods if method.interval is not None]
    notes = [*first_words(comparison), *comparison.notes]
    if any(interval.low is None for interval in intervals):
        notes.append("with one seed there is no interval: nothing is known of what another seed would give")
    if any(interval.cut for interval in intervals):
        notes.append("* cut at the end of the metric's range")
    unit = unit_of(metric)
    interval = Column("low", "95 % interval", difference_unit(metric), to="high", star="cut")
    columns = ["method", "kind", RANK, "rank_high", Column("seeds", unit=COUNT), Column(metric, unit=unit), interval]
    return Table("leaderboard", [*columns, "high", "cut", Column("tied_for_first", hidden=True)], rows, title, notes)


def values_table(comparison: Comparison) -> Table:
    """Every method's value for every seed, folds and settings averaged."""
    rows = [[method.name, seed, value] for method in comparison.methods for seed, value in method.values.items()]
    columns = ["method", "seed", Column(comparison.metric, unit=unit_of(comparison.metric))]
    return Table("values", columns, rows, f"{comparison.data}: {comparison.metric} by seed", detail=True)


def differences(comparison: Comparison, family: Family, title: str, beside: Sequence[Pair] = ()) -> Table:
    """Every pair: difference, interval with its two parts, corrected p, chance to be better, verdict. The pairs
    `beside` stand there without a verdict."""
    metric = comparison.metric
    rows = [_pair_row(pair, verdict_words(pair, metric)) for pair in family.pairs]
    rows += [_pair_row(replace(pair, p=None), NOT_TESTED) for pair in beside]
    unit, one = difference_unit(metric), len({row[1] for row in rows}) == 1  # the title and the notes name it
    columns = [
        "method",
        Column("against", hidden=one),
        "verdict",
        Column("seeds", unit=COUNT),
        Column("difference", f"difference, {'points' if metric_of(metric).is_share else metric}", unit, signed=True),
        Column("low", "95 % interval", unit, signed=True, to="high"),
        "high",
        Column("half_over_seeds", "± seeds", unit),
        Column("half_over_classes", "± classes", unit),
        Column("p_holm", "p (Holm)", P),
        Column("p_better", "P(better)", NUMBER, digits=2),
        *(Column(name, hidden=True) for name in ("family", "outcome", "winner")),
    ]
    notes = [*family_words(family), "P(better) is the share of pairs of runs in which the first is better"]
    notes += kinds_words(comparison)
    return Table("differences", columns, rows, f"{comparison.data}: {title}, {metric}", notes)


def _pair_row(pair: Pair, verdict: str) -> list[object]:
    d = pair.difference
    numbers = [None] * 6 if d is None else [d.n, d.mean, d.low, d.high, d.seeds, d.classes]
    winner = None if pair.winner is None else pair.winner.name
    names = [pair.first.name, pair.second.name, verdict]
    return [*names, *numbers, pair.p, pair.improvement, pair.family, str(pair.outcome), winner]


def standing_of(comparison: Comparison) -> Standing | None:
    """Its tournament, or None where there is none to hold."""
    try:
        return standing(comparison)
    except NearkinError:
        return None


def tournament_table(ranked: Standing, title: str) -> Table:
    """Total, average and deviation of the ranks, then the rank in every experiment; and what their test says."""
    result = ranked.result
    numbers = np.column_stack([result.total, result.average, result.std, result.ranks.T]).tolist()
    rows = [
        [name, *(None if math.isnan(x) else x for x in row)] for name, row in zip(ranked.methods, numbers, strict=True)
    ]
    spread = [Column(name, unit=NUMBER, digits=2) for name in ("average", "std")]
    columns = ["method", "total", *spread, *(Column(name) for name in ranked.experiments)]
    return Table("tournament", columns, rows, f"tournament: {title}", words_of(ranked))
