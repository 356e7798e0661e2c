"""What other readings of the same runs would tell: how much picking the epoch on the test images flatters."""

import statistics
from dataclasses import replace
from typing import Any

from nearkin.comparison.method import Method
from nearkin.comparison.verdicts import span
from nearkin.evaluation.metrics.base import metric_of
from nearkin.pages.base import Column, Grid, Part, Section, Table, Words
from nearkin.pages.material import Board, Material
from nearkin.pages.words import ENDS, called, cut_note, ends, interval_column, metric_column, signed
from nearkin.statistics.verdict import judge
from nearkin.studies.readings import PICKED, READINGS


def section(material: Material) -> Section | None:
    """None where no test curve is stored, or where the metric is none of the test."""
    if material.metric.startswith(("train.", "validation ")):
        return None
    parts = [part for board in material.boards for part in _readings(material, board)]
    if not parts:
        return None
    lead = "The literature mostly reports the epoch that was best on the test images. It is no result: they chose it."
    return Section("readings", "What picking the epoch on test images would tell", lead, parts)


def table_of(material: Material, board: Board) -> Table:
    """One row per trained method and reading: its mean, and the difference to the chosen epoch on common seeds."""
    metric = material.metric
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
                rows.append([method.name, label, other.interval.n, *ends(other.interval), *gain])
    header = ["method", "epoch", "seeds", metric, *ENDS, "against chosen", "from", "to", "common seeds"]
    return Table(f"readings{board.suffix}", header, rows)


def _gain(other: Method, chosen: Method) -> list[Any]:
    """A reading less the chosen epoch, over the seeds, settings and folds that have both."""
    row = replace(other.row, queries=chosen.row.queries)  # the same queries: the resolution of both
    d = judge([(row, chosen.row)])[0].difference
    return [None] * 4 if d is None else [d.mean, d.low, d.high, d.n]


def _readings(material: Material, board: Board) -> list[Part]:
    metric, table = material.metric, table_of(material, board)
    if not table.rows:
        return []
    picked = [i for i, label in enumerate(table.column("epoch")) if PICKED in label]
    gains = [gain for i in picked if (gain := table.column("against chosen")[i]) is not None]
    warning: list[Part] = []
    if gains:
        points = "points of " if metric_of(metric).is_share else ""
        warning.append(
            Words(
                f"{board.where}Rows in red were picked on the test images: no results. Picking them so gives "
                f"{signed(metric, statistics.fmean(gains))} {points}{called(metric)} on average.",
                "warning",
            )
        )
    columns = [
        *map(Column, table.header[:3]),
        metric_column(metric),
        interval_column(metric),
        Column("against chosen", text=lambda row: signed(metric, row["against chosen"])),
        Column("from", "its 95 % interval", lambda row: span(metric, row["from"], row["to"], signed=True)),
    ]
    notes = [
        "Differences to the chosen epoch are taken seed by seed; their interval is over seeds alone.",
        *cut_note(table.column("cut"), " (*)"),
    ]
    return [
        *warning,
        Grid(
            f"readings-grid{board.suffix}",
            f"{board.where}Readings of the test curve",
            table,
            columns=columns,
            warn=picked,
            filters=["epoch"],
            notes=notes,
        ),
    ]
