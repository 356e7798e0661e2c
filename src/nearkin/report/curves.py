"""How training went: time, learning curves, epochs to the chosen one, and what other readings would tell."""

import statistics
from collections.abc import Callable
from typing import Any

from nearkin.comparison.compare import Method
from nearkin.report.base import Chart, Column, Grid, Part, Section, Table, Words, rounded
from nearkin.report.material import Board, Material, Record, called, heading, interval_of, metric_column, signed, unit
from nearkin.studies.readings import PICKED, READINGS

SHOWN = 8  # lines that a figure shows before a click


def section(material: Material) -> Section | None:
    """None where nothing was trained."""
    parts = [
        part
        for board in material.boards
        for part in (*_time(material, board), *_curves(material, board), *_epochs(material, board))
    ]
    if not parts:
        return None
    return Section("training", "Training", "What it cost, how the curves went, and when the chosen epoch came.", parts)


def readings_section(material: Material) -> Section | None:
    """How much the epoch that is best on the test images flatters; None where no test curve is stored."""
    parts = [part for board in material.boards for part in _readings(material, board)]
    if not parts:
        return None
    lead = "The literature mostly reports the epoch that was best on the test images. It is no result: they chose it."
    return Section("readings", "What picking the epoch on test images would tell", lead, parts)


def _time(material: Material, board: Board) -> list[Part]:
    metric, rows = material.metric, []
    for method in _trained(board):
        seconds = material.interval(method.members, lambda record: record.final.get("seconds"))
        if seconds is not None and method.interval is not None:
            found = method.interval
            rows.append([method.name, method.kind, seconds.mean, found.mean, found.low, found.high])
    if not rows:
        return []
    table = Table(f"time{board.suffix}", ["method", "kind", "seconds", metric, "low", "high"], rows)
    times = table.column("seconds")
    return [
        Chart(
            f"time{board.suffix}",
            f"{board.where}{called(metric)} against training time",
            table,
            form="points",
            x="seconds",
            by="kind",
            **interval_of(metric),
            text="method",
            x_title="seconds of training, mean of a method's runs",
            log=max(times) > 8 * max(min(times), 1e-9),
            alt=f"Training took from {min(times):,.0f} to {max(times):,.0f} seconds.",
            notes=["Seconds are those of the machine that trained, with whatever else ran on it."],
        )
    ]


def curve_table(material: Material, board: Board, split: str, metric: str) -> Table:
    """Mean, lowest and highest value over the runs of a method at every epoch."""
    rows: list[list[Any]] = []
    for method in _trained(board):
        epochs: dict[int, list[float]] = {}
        for member in method.members:
            if member.done:
                for point in material.record(member).curve:
                    value = point.get(f"{split}.{metric}")
                    if value is not None:
                        epochs.setdefault(point["epoch"], []).append(value)
        rows += [
            [method.name, epoch, statistics.fmean(v), min(v), max(v), len(v)] for epoch, v in sorted(epochs.items())
        ]
    return Table(f"curve-{split}{board.suffix}", ["method", "epoch", metric, "low", "high", "runs"], rows)


def _curves(material: Material, board: Board) -> list[Part]:
    parts: list[Part] = []
    for split, metric in (("validation", material.gathered.select), ("test", material.metric)):
        table = curve_table(material, board, split, metric)
        if not table.rows:
            continue
        methods = len(set(table.column("method")))
        notes = (
            [f"The first {SHOWN} of {methods} methods are drawn; a click on a name shows or hides it."]
            if methods > SHOWN
            else []
        )
        if split == "test":
            notes.append("The test curve was joined after each run was final: it chose nothing.")
        parts.append(
            Chart(
                f"curve-{split}{board.suffix}",
                f"{board.where}{'Validation' if split == 'validation' else 'Test'} curve",
                table,
                form="lines",
                x="epoch",
                by="method",
                **(interval_of(metric) | {"y_title": f"{split} {heading(metric)}"}),
                more={"shown": SHOWN},
                notes=notes,
                alt=f"{split.capitalize()} {called(metric)} of every epoch: mean over runs, and their range.",
            )
        )
    return parts


def _epochs(material: Material, board: Board) -> list[Part]:
    rows = []
    for method in _trained(board):
        found = [material.record(m).final for m in method.members if m.done]
        epochs = [final["epoch"] for final in found if final.get("epoch") is not None]
        if epochs:
            trained = max(final["epochs_trained"] for final in found)
            rows.append(
                [
                    method.name,
                    statistics.fmean(epochs),
                    min(epochs),
                    max(epochs),
                    trained,
                    _all(f["rule"] for f in found),
                ]
            )
    if not rows:
        return []
    table = Table(
        f"epochs{board.suffix}", ["method", "chosen epoch", "lowest", "highest", "epochs trained", "rule"], rows
    )
    shown = [name for name in table.header if name != "rule" or len(set(table.column("rule"))) > 1]
    columns = [rounded(name, 1) if name == "chosen epoch" else Column(name) for name in shown]
    return [
        Grid(
            f"epochs{board.suffix}",
            f"{board.where}Epochs to the chosen one",
            table,
            columns=columns,
            folded=len(rows) > 12,
            notes=[
                "Mean, lowest and highest over runs. Chosen epochs close to the last one say that more might help."
            ],
        )
    ]


def _readings(material: Material, board: Board) -> list[Part]:
    metric, warn = material.metric, []
    rows: list[list[Any]] = []
    for method in _trained(board):
        if not any(material.record(m).test_curve for m in method.members if m.done):
            continue
        chosen = material.interval(method.members, metric)
        for reading, (label, of) in READINGS.items():
            if of is not None and not (reading in material.gathered.readings or PICKED in label):
                continue
            found = material.interval(method.members, _reader(of, metric))
            if found is None or chosen is None:
                continue
            if PICKED in label:
                warn.append(len(rows))
            gain = None if of is None else found.mean - chosen.mean
            rows.append([method.name, label, found.n, found.mean, found.low, found.high, gain])
    if not rows:
        return []
    table = Table(
        f"readings{board.suffix}", ["method", "epoch", "seeds", metric, "low", "high", "against chosen"], rows
    )
    columns = [
        *(Column(name) for name in table.header[:3]),
        metric_column(metric),
        Column("against chosen", "against chosen", lambda row: signed(metric, row["against chosen"])),
    ]
    gains = [row[6] for i, row in enumerate(rows) if i in warn]
    told: list[Part] = []
    if gains:
        mean = statistics.fmean(gains)
        told.append(
            Words(
                f"Rows in red were picked on the test images: no results. Picking them so gives {signed(metric, mean)} "
                f"{'points of ' if unit(metric) else ''}{called(metric)} on average.",
                "warning",
            )
        )
    return [
        *told,
        Grid(
            f"readings-grid{board.suffix}",
            f"{board.where}Readings of the test curve",
            table,
            columns=columns,
            warn=warn,
            filters=["epoch"],
        ),
    ]


def _reader(of: Any, metric: str) -> Callable[[Record], float | None]:
    """What a reading tells of a run; `of` is None for the run's own result."""

    def read(record: Record) -> float | None:
        if of is None:
            return record.value(metric)
        return of(record.test_curve).get(metric) if record.test_curve else None

    return read


def _trained(board: Board) -> list[Method]:
    return [method for method in board.methods if method.kind != "untrained"]


def _all(values: Any) -> str:
    return "; ".join(dict.fromkeys(values))
