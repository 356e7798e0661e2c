"""Differences between rows on what they have in common: the interval with its two parts, and the verdict."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from nearkin.comparison.pages import ALL_PAIRS, NOT_TESTED, family_words, sentence
from nearkin.comparison.verdicts import Family, first_family, span, untrained_pairs, verdict_words
from nearkin.evaluation.metrics.base import metric_of
from nearkin.pages.base import Chart, Column, Grid, Part, Table
from nearkin.pages.material import Board
from nearkin.pages.words import called, percent, shown_metric, signed
from nearkin.statistics.verdict import Pair

HEADER = [
    "method",
    "against",
    "difference",
    "low",
    "high",
    "± seeds",
    "± classes",
    "common seeds",
    "p",
    "outcome",
    "verdict",
]
MANY = 20  # rows of a table that waits behind its title


def parts(board: Board) -> list[Part]:
    """The first family of a comparison as a table and, where validation ranks a row first, as a chart."""
    if len(board.methods) < 2 or not board.trained:
        return []
    family, table = first_family(board.comparison), table_of(board)
    return [_grid(board, family, table), *_chart(board, table)]


def table_of(board: Board) -> Table:
    """One row per pair of trained rows; untrained rows stand beside the family and are not tested."""
    metric = board.comparison.metric
    rows = [
        [*_numbers(pair), pair.p, str(pair.outcome), verdict_words(pair, metric)]
        for pair in first_family(board.comparison).pairs
    ]
    rows += [[*_numbers(pair), None, None, NOT_TESTED] for pair in untrained_pairs(board.comparison)]
    return Table(f"differences{board.suffix}", HEADER, rows)


def _numbers(pair: Pair) -> list[Any]:
    d = pair.difference
    numbers = [None] * 6 if d is None else [d.mean, d.low, d.high, d.seeds, d.classes, d.n]
    return [pair.first.name, pair.second.name, *numbers]


def _grid(board: Board, family: Family, table: Table) -> Grid:
    metric, reference = board.comparison.metric, board.comparison.reference
    title = ALL_PAIRS.capitalize() if reference is None else f"Differences to {reference.name}, first by validation"
    notes = [sentence(words) for words in family_words(family)]
    if reference is None:
        notes.insert(0, "Without validation there is no row to compare all others with.")
    columns = [
        Column("method"),
        *([Column("against")] if reference is None else []),
        Column("difference", text=lambda row: signed(metric, row["difference"])),
        Column("low", "95 % interval", partial(_between, metric)),
    ]
    for name in ("± seeds", "± classes"):
        if any(value is not None for value in table.column(name)):
            columns.append(Column(name, text=partial(_half, metric, name), about="a part of the interval"))
    columns += [Column("p", "p (Holm)", _p), Column("verdict")]
    return Grid(
        f"differences{board.suffix}",
        f"{board.where}{title}",
        table,
        columns=columns,
        notes=notes,
        search=len(table.rows) > MANY,
        folded=len(table.rows) > MANY,
    )


def _between(metric: str, row: Mapping[str, Any]) -> str:
    return span(metric, row["low"], row["high"], signed=True)


def _half(metric: str, name: str, row: Mapping[str, Any]) -> str:
    return shown_metric(metric, row[name])


def _p(row: Mapping[str, Any]) -> str:
    return "–" if row["p"] is None else "< 0.001" if row["p"] < 0.001 else f"{row['p']:.3f}"


def _chart(board: Board, table: Table) -> list[Part]:
    """The differences of trained rows; an untrained one would lie so far off that nothing else could be seen."""
    comparison = board.comparison
    header = ["method", "outcome", "difference", "low", "high"]
    rows = [[row[name] for name in header] for row in table.records() if row["outcome"] is not None]
    if comparison.reference is None or all(row[3] is None for row in rows):
        return []
    metric, to = comparison.metric, comparison.reference.name
    points = "points of " if metric_of(metric).is_share else ""
    return [
        Chart(
            f"differences-chart{board.suffix}",
            "",
            Table(f"differences-drawn{board.suffix}", header, rows),
            form="dots",
            x="method",
            y="difference",
            by="outcome",
            low="low",
            high="high",
            percent=percent(metric, "difference", "low", "high"),
            sideways=True,
            y_title=f"difference to {to}, {points}{called(metric)}",
            alt=f"{called(metric)} of every other trained row less that of {to}, with 95 % intervals.",
        )
    ]
