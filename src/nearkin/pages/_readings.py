"""What other readings of the same runs would say: how much picking the epoch on the test images flatters."""

import statistics
from dataclasses import replace
from typing import Any

from nearkin.comparison.method import Method
from nearkin.evaluation.metrics.base import metric_of
from nearkin.pages._base import Grid, Part, Section, Words
from nearkin.pages._material import Board, Material
from nearkin.pages._words import called, cut_note, ends, mean_columns, points_of
from nearkin.present import Column, Table
from nearkin.statistics.verdict import judge
from nearkin.studies.readings import PICKED, READINGS
from nearkin.units import COUNT


def section(material: Material) -> Section | None:
    """None where no test curve is stored, or where the metric is none of the test."""
    if material.metric.startswith(("train.", "validation ")):
        return None
    parts = [part for board in material.boards for part in _readings(material, board)]
    if not parts:
        return None
    lead = "The literature mostly reports the epoch that was best on the test images. It is no result: they chose it."
    return Section("readings", "What picking the epoch on test images would give", lead, parts)


def table_of(material: Material, board: Board) -> Table:
    """One row per trained method and reading: its mean, and the difference to the chosen epoch on common seeds."""
    metric, unit = material.metric, points_of(material.metric)
    rows: list[list[Any]] = []
    for method in board.trained:
        if not any((member.run.path / "curve.json").exists() for member in method.members):
            continue
        for reading, (label, of_curve) in READINGS.items():
            if of_curve is not None and not (reading in material.gathered.readings or PICKED in label):
                continue
            other = board.by_metric(metric, reading=reading)[method.name]
            if other.interval is not None:
                gain = [None] * 4 if of_curve is None else _gain(other, method)
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
    table = Table(f"readings{board.suffix}", columns, rows, f"{board.where}Readings of the test curve", warn=picked)
    table.notes = [
        "Differences to the chosen epoch are taken seed by seed; their interval is over seeds alone.",
        *cut_note(table.column("cut"), " (*)"),
    ]
    return table


def _gain(other: Method, chosen: Method) -> list[Any]:
    """A reading less the chosen epoch, over the seeds, settings and folds that have both."""
    row = replace(other.row, queries=chosen.row.queries)  # the same queries: the resolution of both
    d = judge([(row, chosen.row)])[0].difference
    return [None] * 4 if d is None else [d.mean, d.low, d.high, d.n]


def _readings(material: Material, board: Board) -> list[Part]:
    metric, table = material.metric, table_of(material, board)
    if not table.rows:
        return []
    gains = [gain for i in table.warn if (gain := table.column("against chosen")[i]) is not None]
    warning: list[Part] = []
    if gains:
        points = "points of " if metric_of(metric).is_share else ""
        gain = points_of(metric).text(statistics.fmean(gains), signed=True)
        warning.append(
            Words(
                f"{board.where}Rows in red were picked on the test images: no results. Picking them so gives "
                f"{gain} {points}{called(metric)} on average.",
                "warning",
            )
        )
    return [*warning, Grid(table, f"readings-grid{board.suffix}", filters=["epoch"], slice=board.grid)]
