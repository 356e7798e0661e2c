"""What other readings of the same runs would say: how much picking the epoch on the test images flatters."""

import statistics
from dataclasses import replace
from typing import Any

from nearkin.comparison.method import Method
from nearkin.evaluation.metrics.base import OF_RUNS, difference_unit, metric_of
from nearkin.pages._base import Grid, Part, Section, Words
from nearkin.pages._board import Board, by_board
from nearkin.pages._words import called, cut_note, ends, mean_columns
from nearkin.present import Column, Table
from nearkin.statistics.verdict import judge
from nearkin.studies.readings import PICKED, READINGS
from nearkin.units import COUNT


def section(boards: list[Board]) -> Section | None:
    """None where no test curve is stored, or where the metric is none of the test."""
    if boards[0].metric.startswith(OF_RUNS):
        return None
    lead = "The literature mostly reports the epoch that was best on the test images. It is no result: they chose it."
    return by_board(boards, "readings", "What picking the epoch on test images would give", lead, _readings)


def table_of(board: Board) -> Table:
    """One row per trained method and reading: its mean, and the difference to the chosen epoch on common seeds."""
    metric, unit = board.metric, difference_unit(board.metric)
    readings = {
        name: (label, of_curve is None)
        for name, (label, of_curve) in READINGS.items()
        if of_curve is None or name in board.gathered.readings or PICKED in label
    }
    rows: list[list[Any]] = []
    for method in board.trained:
        if not any((member.run.path / "curve.json").exists() for member in method.members):
            continue
        for reading, (label, is_chosen) in readings.items():
            other = board.by_metric(metric, reading=reading)[method.name]
            if other.interval is not None:
                gain = [None] * 4 if is_chosen else _gain(other, method)
                rows.append([method.name, label, *ends(other.interval), other.interval.n, *gain])
    columns: list[Column | str] = [
        "method",
        "epoch",
        *mean_columns(metric),
        Column("seeds", unit=COUNT),
        Column("against chosen", unit=unit, signed=True),
        Column("from", "its 95 % interval", unit, signed=True, to="to"),
        Column("to", unit=unit),
        Column("common seeds", unit=COUNT),
    ]
    picked = [i for i, row in enumerate(rows) if PICKED in row[1]]
    table = Table("readings", columns, rows, "Readings of the test curve", warn=picked)
    apart = "Differences to the chosen epoch are taken seed by seed; their interval is over seeds alone."
    table.notes = [apart, *cut_note(table, " (*)")]
    return table


def _gain(other: Method, chosen: Method) -> list[Any]:
    """A reading less the chosen epoch, over the seeds, settings and folds that have both."""
    row = replace(other.row, queries=chosen.row.queries)  # the same queries: the resolution of both
    d = judge([(row, chosen.row)])[0].difference
    return [None] * 4 if d is None else [d.mean, d.low, d.high, d.n]


def _readings(board: Board) -> list[Part]:
    table = table_of(board)
    if not table.rows:
        return []
    grid = Grid(table, "readings-grid", filters=["epoch"], slice=board.grid)
    gains = [gain for i in table.warn if (gain := table.column("against chosen")[i]) is not None]
    if not gains:
        return [grid]
    points = "points of " * metric_of(board.metric).is_share
    gain = difference_unit(board.metric).text(statistics.fmean(gains), signed=True)
    warning = "Rows in red were picked on the test images: no results. Picking them so gives "
    return [Words(f"{warning}{gain} {points}{called(board.metric)} on average.", "warning"), grid]
