"""The leaderboard: means with intervals, best first, and whether neighbours can be told apart."""

import json
from collections.abc import Mapping
from typing import Any

from nearkin.comparison.compare import Method
from nearkin.comparison.verdicts import ALPHA, Pair, amount, neighbours, span
from nearkin.report.base import Chart, Column, Grid, Part, Section, Table, Words
from nearkin.report.material import Board, Material, called, interval_of, metric_column, shown_metric, unit
from nearkin.statistics.intervals import mean_interval

# what a leaderboard can be filtered by, where it varies: heading -> setting
BESIDE = {"backbone": "model.backbone", "size": "model.dim", "sampler": "sampler.name"}


def section(material: Material) -> Section:
    """One leaderboard for each data set."""
    parts: list[Part] = []
    for board in material.boards:
        parts += _board(material, board)
    lead = "Mean over seeds with its 95 % interval, best first; and whether the lead over the next row can be believed."
    return Section("leaderboard", "Leaderboard", lead, parts)


def table_of(material: Material, board: Board) -> Table:
    """One row per method: what it is, its mean and interval, its other metrics, the difference to the next row."""
    metric = material.metric
    beside = {name: key for name, key in BESIDE.items() if _varies(board, key)}
    axes = [axis for axis in material.gathered.axes if len(material.gathered.axes) > 1]
    others = [m for m in _others(material) if m != metric]
    header = [
        "place",
        "data",
        "method",
        *axes,
        "kind",
        *beside,
        "seeds",
        metric,
        "low",
        "high",
        *others,
        "ahead by",
        "p",
        "seeds needed",
        "verdict",
    ]
    pairs = {pair.first: pair for pair in neighbours(board.comparison)}
    rows = []
    for place, method in enumerate(board.methods, start=1):
        found, pair = method.interval, pairs.get(method.name)
        own = [_only(m.labels.get(axis) for m in method.members) for axis in axes]
        settings = [_only(m.settings.get(key) for m in method.members) for key in beside.values()]
        numbers = [None, None, None] if found is None else [found.mean, found.low, found.high]
        values = [None if (each := _mean(material, method, m)) is None else each for m in others]
        ahead = (
            [None] * 4
            if pair is None
            else [pair.difference.mean if pair.difference else None, pair.p, pair.needed, pair.verdict]
        )
        rows.append(
            [
                place,
                board.data,
                method.name,
                *own,
                method.kind,
                *settings,
                len(method.values),
                *numbers,
                *values,
                *ahead,
            ]
        )
    return Table(f"leaderboard{board.suffix}", header, rows)


def _board(material: Material, board: Board) -> list[Part]:
    metric, table = material.metric, table_of(material, board)
    others = [m for m in _others(material) if m != metric]

    def interval(row: Mapping[str, Any]) -> str:
        return span(metric, row["low"], row["high"]) if row["low"] is not None else "one seed: none"

    skipped = {"data", "low", "high", "ahead by", "p", "seeds needed", metric, "verdict", *others}
    columns = [Column(name) for name in table.header if name not in skipped]
    columns += [
        metric_column(metric),
        Column("low", "95 % interval", interval),
    ]
    columns += [
        Column(
            "ahead by",
            "lead",
            lambda row: "–" if row["ahead by"] is None else amount(metric, row["ahead by"], signed=True),
            "over the next row, on common seeds",
        ),
        Column("verdict", "told apart?", _short_verdict, "the verdict in full is in the download"),
    ]
    columns += [metric_column(m) for m in others]
    filters = [
        name
        for name in table.header[: table.header.index("seeds")]
        if name not in ("place", "data", "method") and 1 < len({str(v) for v in table.column(name)}) < len(table.rows)
    ]
    title = board.data if len(material.boards) > 1 else f"{board.data}, test {called(metric)}"
    notes = []
    if any(row["low"] is None for row in table.records()):
        notes.append("With one seed there is no interval: nothing is known of what another seed would give.")
    notes.append(
        "Verdicts come from paired t tests over common seeds, Holm-corrected over all neighbours. The seed is the "
        "unit, never the query."
    )
    grid = Grid(
        f"leaderboard-grid{board.suffix}",
        title,
        table,
        columns=columns,
        filters=filters,
        search=len(table.rows) > 12,
        notes=notes,
    )
    chart = Chart(
        f"leaderboard-chart{board.suffix}",
        "Means and 95 % intervals",
        Table(
            f"means{board.suffix}",
            ["method", "kind", metric, "low", "high"],
            [[r["method"], r["kind"], r[metric], r["low"], r["high"]] for r in table.records()],
        ),
        form="dots",
        x="method",
        by="kind",
        **interval_of(metric),
        sideways=True,
        alt=_alt(board, metric),
    )
    return [grid, chart, *_joined(material, board)]


def _short_verdict(row: Mapping[str, Any]) -> str:
    """Yes or no, and how many seeds it would take."""
    if row["verdict"] is None:
        return "–"
    if row["p"] is None:
        return str(row["verdict"]).partition(":")[0]
    if row["p"] < ALPHA:
        return "yes"
    if row["ahead by"] == 0:
        return "no: the same in all seeds"
    return f"no; {'over 1,000' if row['seeds needed'] is None else row['seeds needed']} seeds needed"


def _joined(material: Material, board: Board) -> list[Part]:
    """Folds whose embeddings were joined, as far as their values are stored."""
    if "concatenated" not in material.gathered.evaluations:
        return []
    stored = [json.loads(file.read_text()) for file in sorted(material.gathered.joined.glob("*.json"))]
    known = {frozenset(each["runs"]): each["metrics"] for each in stored}
    metric = material.metric
    rows: list[list[Any]] = []
    for method in board.methods:
        values = []
        for seed in method.values:
            runs = frozenset(m.run.hash for m in method.members if m.seed == seed)
            value = known.get(runs, {}).get(metric)
            values += [value] if value is not None else []
        if values:
            found = mean_interval(values)
            rows.append([method.name, method.kind, found.n, found.mean, found.low, found.high])
    if not rows:
        return [Words("The embeddings of joined folds were not evaluated by this metric.")]
    rows.sort(key=lambda row: row[3], reverse=board.comparison.better == "high")
    table = Table(f"joined-folds{board.suffix}", ["method", "kind", "seeds", metric, "low", "high"], rows)
    columns = [
        *(Column(name) for name in table.header[:3]),
        metric_column(metric),
        Column("low", "95 % interval", lambda row: span(metric, row["low"], row["high"])),
    ]
    return [
        Grid(
            f"joined-folds{board.suffix}",
            "Embeddings of all folds joined",
            table,
            columns=columns,
            notes=["One long vector per image, as many times the size: not to be compared with the rows above."],
        )
    ]


def lead_words(material: Material, board: Board) -> tuple[str, str]:
    """Who won, and whether that can be believed: a short value and a sentence."""
    metric, methods = material.metric, board.comparison.trained or board.methods
    best = methods[0]
    if best.interval is None:
        return best.name, "no value"
    words = " ".join(f"{shown_metric(metric, best.interval.mean)} {unit(metric)} {called(metric)}".split())
    words += (
        f" ({span(metric, best.interval.low, best.interval.high)})"
        if best.interval.low is not None
        else " (one seed: no interval)"
    )
    pair = _lead(board, best)
    return (
        best.name,
        words if pair is None else f"{words}; against {pair.second}: {pair.verdict.partition(' (alone')[0]}",
    )


def _lead(board: Board, best: Method) -> Pair | None:
    return next((pair for pair in neighbours(board.comparison) if pair.first == best.name), None)


def _others(material: Material) -> list[str]:
    """The study's other metrics, as far as every run has them."""
    asked = [m for m in material.gathered.metrics or ("recall@1", "r_precision", "map_at_r")]
    records = [material.record(member) for member in material.gathered.tested]
    return [m for m in asked if all(record.value(m) is not None for record in records)]


def _mean(material: Material, method: Method, metric: str) -> float | None:
    kept = [member for member in method.members if member.seed in method.values]
    found = material.interval(kept, metric)
    return None if found is None else found.mean


def _varies(board: Board, key: str) -> bool:
    return len({str(m.settings.get(key)) for method in board.methods for m in method.members if not m.untrained}) > 1


def _only(values: Any) -> Any:
    """The one value, or all of them."""
    found = list(dict.fromkeys(values))
    return found[0] if len(found) == 1 else ", ".join(map(str, found))


def _alt(board: Board, metric: str) -> str:
    best, last = board.methods[0], board.methods[-1]
    if best.interval is None or last.interval is None:
        return f"Means of {called(metric)}."
    return (
        f"{called(metric)} of {len(board.methods)} methods with 95 % intervals over seeds: from {best.name} with "
        f"{amount(metric, best.interval.mean)} "
        f"to {last.name} with {amount(metric, last.interval.mean)}."
    )
