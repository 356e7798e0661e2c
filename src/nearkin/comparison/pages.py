"""What a comparison shows: small tables of words and numbers, for the screen, for files and for the report."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nearkin.comparison.compare import Comparison
from nearkin.comparison.gather import Gathered
from nearkin.comparison.tournament import Standing, standing, tables_of
from nearkin.comparison.verdicts import Pair, all_pairs, amount, kinds, neighbours, span
from nearkin.errors import NearkinError
from nearkin.statistics.ranks import Tournament
from nearkin.studies.readings import READINGS
from nearkin.studies.summary import is_share


@dataclass
class Sheet:
    """A table: a title, names of the columns, texts, and what a reader must know below it."""

    title: str
    header: list[str]
    rows: list[list[str]]
    numbers: int                                # columns at the end that hold numbers; -1: none
    notes: list[str] = field(default_factory=list)


def sentence(note: str) -> str:
    """A note as a sentence of its own: a capital letter, unless it begins with a symbol, and a full stop."""
    first = note.partition(" ")[0]
    return (f"{note[:1].upper()}{note[1:]}" if len(first) > 1 and first.isascii() else note) + "."


def sheets(comparison: Comparison) -> dict[str, Sheet]:
    """All tables of a comparison, by name: leaderboard, differences, pairs and, where there is one, tournament."""
    found = {"leaderboard": leaderboard(comparison)}
    if len(comparison.methods) > 1:
        found["differences"] = differences(comparison, neighbours(comparison), "differences between neighbours")
        found["pairs"] = differences(comparison, all_pairs(comparison), "differences between all pairs")
    ranked = standing_of(comparison)
    if ranked is not None:
        found["tournament"] = tournament_sheet(ranked, f"{comparison.data}, by {comparison.metric}")
    return found


def leaderboard(comparison: Comparison) -> Sheet:
    """Mean and interval of every method, best first."""
    metric, share = comparison.metric, is_share(comparison.metric)
    rows = []
    for i, method in enumerate(comparison.methods, start=1):
        found = method.interval
        mean = "–" if found is None else amount(metric, found.mean)
        interval = "–" if found is None else span(metric, found.low, found.high)
        rows.append([method.name, method.kind, str(i), str(len(method.values)), mean, interval])
    heading = f"{metric} %" if share else metric
    epoch = READINGS[comparison.reading][0]
    title = f"{comparison.data}: test {metric}, epoch {epoch}; mean over seeds with 95 % interval"
    if metric.startswith(("train.", "validation ")):
        title = f"{comparison.data}: {metric}; mean over seeds with 95 % interval"
    notes = list(comparison.notes)
    if any(method.interval is not None and method.interval.low is None for method in comparison.methods):
        notes.append("with one seed there is no interval: nothing is known of what another seed would give")
    return Sheet(title, ["method", "kind", "place", "seeds", heading, "95 % interval"], rows, 4, notes)


def differences(comparison: Comparison, pairs: list[Pair], title: str) -> Sheet:
    """Each pair: difference, interval, corrected p, chance to be better, verdict."""
    metric = comparison.metric
    rows = []
    for pair in pairs:
        d = pair.difference
        rows.append([
            pair.first, pair.second, pair.verdict,
            "–" if d is None else str(d.n),
            "–" if d is None else amount(metric, d.mean, signed=True),
            "–" if d is None else span(metric, d.low, d.high, signed=True),
            "–" if pair.p is None else ("< 0.001" if pair.p < 0.001 else f"{pair.p:.3f}"),
            "–" if pair.improvement is None else f"{pair.improvement:.2f}",
        ])  # fmt: skip
    unit = "points" if is_share(metric) else metric
    header = ["method", "against", "verdict", "seeds", f"difference, {unit}", "95 % interval", "p (Holm)", "P(better)"]
    family = f"{len(pairs)} pair{'s' * (len(pairs) > 1)}"
    words = f"p is that of the paired t test, after Holm's correction over {family}"
    words += "; P(better) is the share of pairs of runs in which the first is better"
    return Sheet(f"{comparison.data}: {title}, {metric}", header, rows, 5, [words, *kinds_words(comparison)])


def kinds_words(comparison: Comparison) -> list[str]:
    """Ranking against classification losses, in one sentence; nothing where one kind is missing."""
    found = kinds(comparison)
    if found is None:
        return []
    result, first, second = found
    d, metric = result.difference, comparison.metric
    unit = " points" if is_share(metric) else ""
    counted = ((first, "ranking"), (second, "classification"))
    sides = [f"{len(names)} {kind} loss{'es' * (len(names) > 1)}" for names, kind in counted]
    words = f"the {sides[0]} minus the {sides[1]}: "
    words += f"{amount(metric, d.mean, signed=True)}{unit}"
    if d.low is not None:
        words += f" ({span(metric, d.low, d.high, signed=True)} over seeds)"
    return [f"{words}; whether the two kinds differ beyond these losses: p = {result.p_methods:.2f} (Mann-Whitney)"]


def standing_of(comparison: Comparison) -> Standing | None:
    """Its tournament, or None where there is none to hold."""
    try:
        return standing(comparison)
    except NearkinError:
        return None


def tournament_sheet(ranked: Standing, title: str) -> Sheet:
    """The table of a tournament, and what the Friedman test says."""
    header, rows = tables_of(ranked)
    notes = []
    if ranked.over == "seeds":
        notes.append("one setting only: each seed counts as an experiment")
    if ranked.test is not None:
        p = "p < 0.001" if ranked.test.p < 0.001 else f"p = {ranked.test.p:.3f}"
        notes.append(
            f"Friedman test over {len(ranked.experiments)} {ranked.over}: {p}; critical difference of average ranks "
            f"{ranked.test.critical_difference:.2f} (Nemenyi, 5 %)"
        )
        if ranked.test.critical_difference >= len(ranked.methods) - 1:
            count = f"{len(ranked.experiments)} {ranked.over}"
            notes.append(f"it is wider than the scale: ranks in {count} tell no two apart")
        else:
            notes += [f"not distinguishable by ranks: {'; '.join(group)}" for group in ranked.groups]
    return Sheet(f"tournament: {title}", header, rows, len(header) - 1, notes)


def published_tournaments() -> tuple[dict[str, Sheet], list[dict[str, Any]]]:
    """The tournaments over the published tables of Psomas 2020, as tables and as plain values."""
    from nearkin.published.tournament import datasets, published_tournament, published_tournament_table

    found, told = {}, []
    for data in datasets():
        header, rows, notes = published_tournament_table(data)
        title = f"tournament: Psomas 2020 on {data}, recomputed from its tables"
        found[f"tournament-{data}"] = Sheet(title, header, rows, len(header) - 2, notes)
        each = published_tournament(data)
        order = sorted(range(len(each.methods)), key=lambda i: float(each.ranked.total[i]))
        told.append({
            "data": data, "experiments": [table.id for table in each.experiments],
            "methods": [_ranked(each.methods[i], each.ranked, i) for i in order],
        })  # fmt: skip
    return found, told


def _ranked(name: str, r: Tournament, i: int) -> dict[str, Any]:
    std = None if np.isnan(r.std[i]) else float(r.std[i])
    return {"name": name, "total": float(r.total[i]), "average": float(r.average[i]), "std": std,
            "ranks": r.ranks[:, i].tolist()}  # fmt: skip


def standing_told(ranked: Standing) -> dict[str, Any]:
    """A tournament as plain values."""
    r, test = ranked.result, ranked.test
    return {
        "experiments": ranked.experiments, "over": ranked.over,
        "methods": [_ranked(name, r, i) for i, name in enumerate(ranked.methods)],
        "friedman": None if test is None else {"statistic": test.statistic, "p": test.p,
                                               "critical_difference": test.critical_difference},
        "groups": [list(group) for group in ranked.groups],
    }  # fmt: skip


def told(comparison: Comparison) -> dict[str, Any]:
    """A comparison as plain values."""
    def pair(found: Pair) -> dict[str, Any]:
        d = found.difference
        own = None if d is None else {"mean": d.mean, "low": d.low, "high": d.high, "seeds": d.n}
        return {"first": found.first, "second": found.second, "difference": own, "p_holm": found.p,
                "p_better": found.improvement, "seeds_needed": found.needed, "verdict": found.verdict}  # fmt: skip

    methods = []
    for method in comparison.methods:
        i = method.interval
        interval = None if i is None else {"mean": i.mean, "low": i.low, "high": i.high, "seeds": i.n}
        methods.append({"name": method.name, "kind": method.kind, "interval": interval, "values": method.values})
    ranked = standing_of(comparison)
    return {
        "data": comparison.data, "metric": comparison.metric, "reading": comparison.reading, "methods": methods,
        "neighbours": [pair(each) for each in neighbours(comparison)],
        "pairs": [pair(each) for each in all_pairs(comparison)],
        "tournament": None if ranked is None else standing_told(ranked), "notes": comparison.notes,
    }  # fmt: skip


def claims_sheet(gathered: Gathered, reading: str = "chosen") -> Sheet:
    """What the literature claims, checked against these runs: decided claims first, those that lack runs last."""
    from nearkin.comparison.claims import check_claims

    rows = []
    for claim, verdict in check_claims(gathered, reading):
        measured = "–" if verdict.measured is None else f"{verdict.measured:.2f}"
        interval = "–" if verdict.low is None or verdict.high is None else f"{verdict.low:.2f} to {verdict.high:.2f}"
        reason = f"{verdict.reason}; unlike the source: {verdict.differs}" if verdict.differs else verdict.reason
        rows.append([claim.id, claim.claim, verdict.state, reason, measured, interval])
    order = ["holds", "does not hold", "cannot be decided"]
    rows.sort(key=lambda row: (row[4] == "–", order.index(row[2])))
    notes = ["the claims are no random sample of what was published: their share says nothing about the literature"]
    header = ["claim", "it says", "here", "because", "measured", "95 % interval"]
    return Sheet(f"claims of the literature against {gathered.name}", header, rows, 2, notes)


def measured_claims(sheet: Sheet) -> Sheet:
    """The same without the claims that these runs cannot measure; a note counts those."""
    rows = [row for row in sheet.rows if row[4] != "–"]
    left = len(sheet.rows) - len(rows)
    note = f"{left} further claims need runs that are not here: --csv, --markdown and --latex write all of them"
    return Sheet(sheet.title, sheet.header, rows, sheet.numbers, [*sheet.notes, *([note] if left else [])])
