"""Differences between rows on what they have in common: the interval with its two parts, and the verdict."""

from typing import Any

from nearkin.comparison.verdicts import first_family, untrained_pairs, verdict_words
from nearkin.comparison.words import ALL_PAIRS, NOT_TESTED, family_words
from nearkin.evaluation.metrics.base import difference_unit, metric_of
from nearkin.pages._base import Figure, Grid, Part
from nearkin.pages._board import Board
from nearkin.pages._words import called, span_columns
from nearkin.present import Column, Dots, Table, sentence
from nearkin.statistics.verdict import Pair
from nearkin.units import COUNT, P

MANY = 20  # rows of a table that waits behind its title
PARTS = ("± seeds", "± classes")  # of an interval


def parts(board: Board) -> list[Part]:
    """The first family of a comparison as a table and, where validation ranks a row first, as a chart. Untrained rows
    stand beside the family and are not tested; in the chart they would lie so far off that nothing else could be
    seen."""
    if len(board.methods) < 2 or not board.trained:
        return []
    metric, reference = board.metric, board.comparison.reference
    family, unit = first_family(board.comparison), difference_unit(metric)
    rows = [[*_numbers(pair), pair.p, str(pair.outcome), verdict_words(pair, metric)] for pair in family.pairs]
    beside = [[*_numbers(pair), None, None, NOT_TESTED] for pair in untrained_pairs(board.comparison)]
    columns: list[Column | str] = [
        "method",
        "against",
        Column("difference", unit=unit, signed=True),
        *span_columns(metric, signed=True),
        *(Column(name, unit=unit, about="a part of the interval") for name in PARTS),
        Column("common seeds", unit=COUNT),
        Column("p", "p (Holm)", P),
        "outcome",
        "verdict",
    ]
    notes, many = [sentence(words) for words in family_words(family)], len(rows) + len(beside) > MANY
    if reference is None:
        notes.insert(0, "Without validation there is no row to compare all others with.")
    title = ALL_PAIRS.capitalize() if reference is None else f"Differences to {reference.name}, first by validation"
    table = Table("differences", columns, [*rows, *beside], title, notes)
    shown: list[Part] = [Grid(table, search=many, folded=many, slice=board.grid)]
    drawn = Table("differences-drawn", columns, rows).only(["method", "difference", "low", "outcome"])
    if reference is None or all(low is None for low in drawn.column("low")):
        return shown
    chart = Dots(
        name="differences-chart",
        table=drawn,
        x="method",
        y="difference",
        by="outcome",
        low="low",
        high="high",
        y_title=f"difference to {reference.name}, {'points of ' * metric_of(metric).is_share}{called(metric)}",
        alt=f"{called(metric)} of every other trained row less that of {reference.name}, with 95 % intervals.",
    )
    return [*shown, Figure(chart, board.slicing())]


def _numbers(pair: Pair) -> list[Any]:
    d = pair.difference
    numbers = [None] * 6 if d is None else [d.mean, d.low, d.high, d.seeds, d.classes, d.n]
    return [pair.first.name, pair.second.name, *numbers]
