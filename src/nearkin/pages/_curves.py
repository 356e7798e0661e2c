"""How training went: time, learning curves, and epochs to the chosen one."""

import statistics
from collections.abc import Iterable
from typing import Any

from nearkin.pages._base import Figure, Grid, Part, Section
from nearkin.pages._material import Board, Material, final_of
from nearkin.pages._words import called, cut_note, ends, interval_of, mean_columns, metric_column, span_columns
from nearkin.present import Column, Lines, Points, Table
from nearkin.units import COUNT, NUMBER, SECONDS

SHOWN = 8  # lines that a figure shows before a click


def section(material: Material) -> Section | None:
    """None where nothing was trained."""
    boards = material.boards
    parts = [part for b in boards for part in (*_time(material, b), *_curves(material, b), *_epochs(b))]
    if not parts:
        return None
    return Section("training", "Training", "What it cost, how the curves went, and when the chosen epoch came.", parts)


def _time(material: Material, board: Board) -> list[Part]:
    metric, rows = material.metric, []
    for method in board.trained:
        seconds = board.row(method, lambda member: final_of(member).get("seconds")).values
        if seconds and method.interval is not None:
            rows.append([method.name, method.kind, statistics.fmean(seconds.values()), *ends(method.interval)])
    if not rows:
        return []
    columns: list[Column | str] = ["method", "kind", Column("seconds", "training time", SECONDS), *mean_columns(metric)]
    table = Table(f"time{board.suffix}", columns, rows)
    times = table.column("seconds")
    chart = Points(
        name=f"time{board.suffix}",
        title=f"{board.where}{called(metric)} against training time",
        table=table,
        x="seconds",
        by="kind",
        **interval_of(metric),
        text="method",
        x_title="seconds of training, mean of a method's runs",
        log=max(times) > 8 * max(min(times), 1e-9),
        alt=f"Training took from {SECONDS.text(min(times))} to {SECONDS.text(max(times))}.",
        notes=[
            "The time is that of the machine that trained, with whatever else ran on it.",
            *cut_note(table.column("cut")),
        ],
    )
    return [Figure(chart, board.slicing(most=1000))]


def curve_tables(board: Board, curves: Iterable[tuple[str, str]]) -> list[Table]:
    """For every curve, as ("validation", "map_at_r"): mean, lowest and highest value over the runs of a method at every
    epoch, and how many runs have that epoch."""
    asked = list(curves)
    rows: dict[tuple[str, str], list[list[Any]]] = {curve: [] for curve in asked}
    for method in board.trained:
        epochs: dict[tuple[str, str], dict[int, list[float]]] = {curve: {} for curve in asked}
        for point in (point for member in method.members if member.done for point in member.run.curve()):
            for split, metric in asked:
                if (value := point.get(f"{split}.{metric}")) is not None:
                    epochs[split, metric].setdefault(point["epoch"], []).append(value)
        for curve, values in epochs.items():
            rows[curve] += [
                [method.name, epoch, statistics.fmean(v), min(v), max(v), len(v)] for epoch, v in sorted(values.items())
            ]
    return [
        Table(
            f"curve-{split}{board.suffix}",
            ["method", "epoch", metric_column(metric), *span_columns(metric, "range"), Column("runs", unit=COUNT)],
            content,
        )
        for (split, metric), content in rows.items()
    ]


def _curves(material: Material, board: Board) -> list[Part]:
    parts: list[Part] = []
    curves = [("validation", material.gathered.select), ("test", material.metric)]
    for (split, metric), table in zip(curves, curve_tables(board, curves), strict=True):
        if not table.rows:
            continue
        methods, notes = len(set(table.column("method"))), []
        if methods > SHOWN:
            notes.append(f"The first {SHOWN} of {methods} methods are drawn; a click on a name shows or hides it.")
        if split == "test":
            notes.append("The test curve was joined after each run was final: it chose nothing.")
        if _some_stopped(table):
            notes.append(
                "Not all runs of a method have all epochs: where some have stopped, points are means over "
                "the others, and a jump may come from that. The numbers say how many runs there are."
            )
        chart = Lines(
            name=f"curve-{split}{board.suffix}",
            title=f"{board.where}{split.capitalize()} curve",
            table=table,
            x="epoch",
            by="method",
            **interval_of(metric),
            y_title=f"{split} {metric_column(metric).title}",
            visible=SHOWN,
            alt=f"{split.capitalize()} {called(metric)} of every epoch: mean over runs, and their range.",
            notes=notes,
        )
        parts.append(Figure(chart, board.slicing()))
    return parts


def _some_stopped(table: Table) -> bool:
    """Has a method's curve points over different numbers of runs?"""
    counts: dict[str, set[int]] = {}
    for row in table:
        counts.setdefault(row["method"], set()).add(row["runs"])
    return any(len(numbers) > 1 for numbers in counts.values())


def _epochs(board: Board) -> list[Part]:
    rows = []
    for method in board.trained:
        finals = [final_of(member) for member in method.members if member.done]
        epochs = [final["epoch"] for final in finals if final.get("epoch") is not None]
        if epochs:
            longest = max(final["epochs_trained"] for final in finals)
            rules = "; ".join(dict.fromkeys(final["rule"] for final in finals))
            rows.append([method.name, statistics.fmean(epochs), min(epochs), max(epochs), longest, rules])
    if not rows:
        return []
    mean = Column("chosen epoch", unit=NUMBER, digits=1)
    table = Table(
        f"epochs{board.suffix}",
        ["method", mean, "lowest", "highest", "epochs trained", "rule"],
        rows,
        f"{board.where}Epochs to the chosen one",
        ["Mean, lowest and highest over runs. Chosen epochs close to the last one say that more might help."],
    )
    if len(set(table.column("rule"))) == 1:
        table = table.only(table.header[:-1])
    return [Grid(table, folded=len(rows) > 12, slice=board.grid)]
