"""What a comparison shows: small tables of words and numbers, for the screen, for files and for the report."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nearkin.comparison.compare import Comparison
from nearkin.comparison.gather import Gathered
from nearkin.comparison.tournament import Standing, standing, tables_of, words_of
from nearkin.comparison.verdicts import (
    FEW,
    Family,
    all_pairs,
    amount,
    first_family,
    kinds,
    points,
    ranks,
    span,
    tied_for_first,
    untrained_pairs,
    verdict_words,
)
from nearkin.errors import NearkinError
from nearkin.evaluation.metrics.base import metric_of
from nearkin.statistics.ranks import Tournament
from nearkin.statistics.unit import LEAST_SEEDS, Nothing
from nearkin.statistics.verdict import Pair
from nearkin.studies.readings import READINGS

ALL_PAIRS = "differences between all pairs"
NOT_TESTED = "untrained: beside the family, not tested"


@dataclass
class Sheet:
    """A table: a title, names of the columns, texts, and what a reader must know below it."""

    title: str
    header: list[str]
    rows: list[list[str]]
    numbers: int  # columns at the end that hold numbers; -1: none
    notes: list[str] = field(default_factory=list)


def sentence(note: str) -> str:
    """A note as a sentence of its own: a capital letter, unless it begins with a symbol, and a full stop."""
    first = note.partition(" ")[0]
    return (f"{note[:1].upper()}{note[1:]}" if len(first) > 1 and first.isascii() else note) + "."


def sheets(comparison: Comparison) -> dict[str, Sheet]:
    """All tables of a comparison, by name: leaderboard, differences, pairs and, where there is one, tournament."""
    found = {"leaderboard": leaderboard(comparison)}
    if len(comparison.methods) > 1:
        family = first_family(comparison)
        first = comparison.reference
        title = f"differences to {first.name}, first by validation" if first else ALL_PAIRS
        found["differences"] = differences(comparison, family, title, untrained_pairs(comparison))
        found["pairs"] = differences(comparison, all_pairs(comparison), ALL_PAIRS)
    ranked = standing_of(comparison)
    if ranked is not None:
        found["tournament"] = tournament_sheet(ranked, f"{comparison.data}, by {comparison.metric}")
    return found


def leaderboard(comparison: Comparison) -> Sheet:
    """Mean and interval of every method, best first, and the ranks that it may have."""
    metric, share, may_be = comparison.metric, metric_of(comparison.metric).is_share, ranks(comparison)
    rows = []
    for method in comparison.methods:
        found = method.interval
        mean = "–" if found is None else amount(metric, found.mean)
        interval = "–" if found is None else span(metric, found.low, found.high, cut=found.cut)
        rank = rank_words(may_be.get(method.name))
        rows.append([method.name, method.kind, rank, str(len(method.values)), mean, interval])
    heading = f"{metric} %" if share else metric
    epoch = READINGS[comparison.reading][0]
    title = f"{comparison.data}: test {metric}, epoch {epoch}; mean over seeds with 95 % interval"
    if metric.startswith(("train.", "validation ")):
        title = f"{comparison.data}: {metric}; mean over seeds with 95 % interval"
    notes = [*first_words(comparison), *comparison.notes]
    if any(method.interval is not None and method.interval.low is None for method in comparison.methods):
        notes.append("with one seed there is no interval: nothing is known of what another seed would give")
    if any(method.interval is not None and method.interval.cut for method in comparison.methods):
        notes.append("* cut at the end of the metric's range")
    return Sheet(title, ["method", "kind", "rank", "seeds", heading, "95 % interval"], rows, 4, notes)


def rank_words(rank: tuple[int, int] | None) -> str:
    """The ranks that a row may have: 2, or 1 to 4."""
    if rank is None:
        return "–"
    return str(rank[0]) if rank[0] == rank[1] else f"{rank[0]} to {rank[1]}"


def first_words(comparison: Comparison) -> list[str]:
    """Who may be the best, in one sentence; nothing for one row, or where neither end of the metric is the good one."""
    first = tied_for_first(comparison)
    if len(comparison.trained) < 2 or not first:
        return []
    if all(len(method.values) < LEAST_SEEDS for method in comparison.trained):
        return [f"no row is better than another: {FEW} for a verdict"]
    if len(first) == 1:
        return [f"first: {first[0]}, distinguishable from all other trained rows"]
    if len(first) == len(comparison.trained):
        return ["tied for first: all trained rows; none is distinguishably better than another"]
    return [f"tied for first: {'; '.join(first)}"]


def differences(comparison: Comparison, family: Family, title: str, beside: Sequence[Pair] = ()) -> Sheet:
    """Each pair: difference, interval with its two parts, corrected p, chance to be better, verdict. The pairs `beside`
    are told without a verdict."""
    metric = comparison.metric
    rows = [_pair_row(pair, metric, verdict_words(pair, metric)) for pair in family.pairs]
    rows += [_pair_row(replace(pair, p=None), metric, NOT_TESTED) for pair in beside]
    unit = "points" if metric_of(metric).is_share else metric
    header = [
        "method",
        "against",
        "verdict",
        "seeds",
        f"difference, {unit}",
        "95 % interval",
        "± seeds",
        "± classes",
        "p (Holm)",
        "P(better)",
    ]
    if len({row[1] for row in rows}) == 1:  # the title and the notes name it
        header, rows = [header[0], *header[2:]], [[row[0], *row[2:]] for row in rows]
    words = [*family_words(family), "P(better) is the share of pairs of runs in which the first is better"]
    return Sheet(f"{comparison.data}: {title}, {metric}", header, rows, 7, [*words, *kinds_words(comparison)])


def family_words(family: Family) -> list[str]:
    """How many comparisons are corrected together, and what their intervals are over."""
    tested = max((pair.family for pair in family.pairs), default=0)
    count = f"one family of {tested} comparison{'s' * (tested != 1)}, {family.words}"
    words = [
        f"{count}: p is that of the paired t test over common seeds, spreads moderated over the family, or over "
        "seeds and classes, whichever is the larger, after Holm's correction"
    ]
    if not tested:
        words = [f"nothing is tested: {FEW}"] if family.pairs else []
    if any(pair.difference is not None and pair.difference.classes is not None for pair in family.pairs):
        words.append(
            "the interval is over other seeds and other test classes, ± is what each alone would give; "
            "a difference counts when p is below 0.05"
        )
    elif any(pair.difference is not None and pair.difference.low is not None for pair in family.pairs):
        words.append("the interval is over seeds alone: whether other test classes would agree is not known")
    return words


def _pair_row(pair: Pair, metric: str, verdict: str) -> list[str]:
    d = pair.difference
    return [
        pair.first.name,
        pair.second.name,
        verdict,
        "–" if d is None else str(d.n),
        "–" if d is None else amount(metric, d.mean, signed=True),
        "–" if d is None else span(metric, d.low, d.high, signed=True),
        "–" if d is None or d.seeds is None else amount(metric, d.seeds),
        "–" if d is None or d.classes is None else amount(metric, d.classes),
        "–" if pair.p is None else ("< 0.001" if pair.p < 0.001 else f"{pair.p:.3f}"),
        "–" if pair.improvement is None else f"{pair.improvement:.2f}",
    ]


def kinds_words(comparison: Comparison) -> list[str]:
    """Ranking against classification losses, in one sentence; nothing where one kind is missing."""
    found = kinds(comparison)
    if found is None:
        return []
    if isinstance(found, Nothing):
        return [f"ranking and classification losses cannot be compared: {found.reason}"]
    result, first, second = found
    d, metric = result.difference, comparison.metric
    counted = ((first, "ranking"), (second, "classification"))
    sides = [f"{len(names)} {kind} loss{'es' * (len(names) > 1)}" for names, kind in counted]
    words = f"the {sides[0]} minus the {sides[1]}: {points(metric, d.mean, signed=True)}"
    if d.n < LEAST_SEEDS or d.low is None:
        return [f"{words} over {d.n} common seed{'s' * (d.n > 1)}; {FEW} for a verdict"]
    words += f" ({span(metric, d.low, d.high, signed=True)} over {d.n} common seeds, these losses)"
    return [f"{words}; whether the two kinds differ beyond these losses: p = {result.p_methods:.2f} (Mann-Whitney)"]


def standing_of(comparison: Comparison) -> Standing | None:
    """Its tournament, or None where there is none to hold."""
    try:
        return standing(comparison)
    except NearkinError:
        return None


def tournament_sheet(ranked: Standing, title: str) -> Sheet:
    """The table of a tournament, and what the test of the ranks says."""
    header, rows = tables_of(ranked)
    return Sheet(f"tournament: {title}", header, rows, len(header) - 1, words_of(ranked))


def published_tournaments() -> tuple[dict[str, Sheet], list[dict[str, Any]]]:
    """The tournaments over the published tables of Psomas 2020, as tables and as plain values."""
    from nearkin.literature.tournament import datasets, published_tournament, published_tournament_table

    found, told = {}, []
    for data in datasets():
        header, rows, notes = published_tournament_table(data)
        title = f"tournament: Psomas 2020 on {data}, recomputed from its tables"
        found[f"tournament-{data}"] = Sheet(title, header, rows, len(header) - 2, notes)
        each = published_tournament(data)
        order = sorted(range(len(each.methods)), key=lambda i: float(each.ranked.total[i]))
        told.append(
            {
                "data": data,
                "experiments": [table.id for table in each.experiments],
                "methods": [_ranked(each.methods[i], each.ranked, i) for i in order],
            }
        )
    return found, told


def _ranked(name: str, r: Tournament, i: int) -> dict[str, Any]:
    std = None if np.isnan(r.std[i]) else float(r.std[i])
    return {
        "name": name,
        "total": float(r.total[i]),
        "average": float(r.average[i]),
        "std": std,
        "ranks": r.ranks[:, i].tolist(),
    }


def standing_told(ranked: Standing) -> dict[str, Any]:
    """A tournament as plain values."""
    r, test = ranked.result, ranked.test
    return {
        "experiments": ranked.experiments,
        "over": ranked.over,
        "methods": [_ranked(name, r, i) for i, name in enumerate(ranked.methods)],
        "test": None
        if test is None
        else {
            "range": test.statistic,
            "p": test.p,
            "seeds": ranked.seeds,
            "critical_difference": test.critical_difference if np.isfinite(test.critical_difference) else None,
        },
        "groups": [list(group) for group in ranked.groups],
    }


def told(comparison: Comparison) -> dict[str, Any]:
    """A comparison as plain values."""

    def pair(found: Pair) -> dict[str, Any]:
        d, numbers = found.difference, None
        if d is not None:
            numbers = {
                "mean": d.mean,
                "std": d.std,
                "low": d.low,
                "high": d.high,
                "seeds": d.n,
                "classes": d.class_count,
                "half_over_seeds": d.seeds,
                "half_over_classes": d.classes,
            }
        return {
            "first": found.first.name,
            "second": found.second.name,
            "difference": numbers,
            "p_holm": found.p,
            "family": found.family,
            "p_better": found.improvement,
            "outcome": str(found.outcome),
            "winner": None if found.winner is None else found.winner.name,
            "verdict": verdict_words(found, comparison.metric),
        }

    methods, may_be = [], ranks(comparison)
    for method in comparison.methods:
        i = method.interval
        interval = None if i is None else {"mean": i.mean, "low": i.low, "high": i.high, "seeds": i.n, "cut": i.cut}
        methods.append(
            {
                "name": method.name,
                "kind": method.kind,
                "interval": interval,
                "values": method.values,
                "rank": may_be.get(method.name),
            }
        )
    ranked, family = standing_of(comparison), first_family(comparison)
    return {
        "data": comparison.data,
        "metric": comparison.metric,
        "reading": comparison.reading,
        "methods": methods,
        "tied_for_first": tied_for_first(comparison),
        "within": comparison.within,
        "reference": None if comparison.reference is None else comparison.reference.name,
        "family": {"words": family.words, "pairs": [pair(each) for each in family.pairs]},
        "pairs": [pair(each) for each in all_pairs(comparison).pairs],
        "tournament": None if ranked is None else standing_told(ranked),
        "notes": comparison.notes,
    }


def claims_sheet(gathered: Gathered, reading: str = "chosen") -> Sheet:
    """What the literature claims, checked against these runs: decided claims first, those that are not tested last."""
    from nearkin.comparison.claims import check_claims
    from nearkin.literature.own import STATES

    checked = sorted(check_claims(gathered, reading), key=lambda pair: STATES.index(pair[1].state))
    rows = []
    for claim, verdict in checked:
        measured = "–" if verdict.measured is None else f"{verdict.measured:.2f}"
        interval = "–" if verdict.low is None or verdict.high is None else f"{verdict.low:.2f} to {verdict.high:.2f}"
        reason = f"{verdict.reason}; unlike the source: {verdict.differs}" if verdict.differs else verdict.reason
        rows.append([claim.id, claim.claim, verdict.state, reason, measured, interval])
    tested = sum(verdict.p is not None for _, verdict in checked)
    notes = ["the claims are no random sample of what was published: their share says nothing about the literature"]
    if tested > 1:
        notes.append(f"Holm's correction is over the {tested} claims that these runs test")
    header = ["claim", "it says", "here", "because", "measured", "95 % interval"]
    return Sheet(f"claims of the literature against {gathered.name}", header, rows, 2, notes)


def measured_claims(sheet: Sheet) -> Sheet:
    """The same without the claims that these runs do not test; a note counts those."""
    from nearkin.literature.own import ELSEWHERE

    rows = [row for row in sheet.rows if row[2] != ELSEWHERE]
    left = len(sheet.rows) - len(rows)
    note = (
        f"{left} {'further ' if rows else ''}claims are not tested here: they are about other data, networks, "
        "sizes or methods; a table that is written to a file has all of them"
    )
    return Sheet(sheet.title, sheet.header, rows, sheet.numbers, [*sheet.notes, *([note] if left else [])])
