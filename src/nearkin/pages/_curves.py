"""How training went: time, learning curves, and epochs to the chosen one."""

import statistics
from dataclasses import replace
from functools import partial
from typing import Any

from nearkin.comparison.compare import best_first
from nearkin.comparison.rows import row_of, setting_of
from nearkin.comparison.words import kinds_words
from nearkin.evaluation.metrics.base import EPOCH
from nearkin.pages._base import Grid, Part, Section
from nearkin.pages._board import Board, by_board
from nearkin.pages._members import final_of
from nearkin.pages._words import called, ends, mean_columns, means_figure, metric_column, span_columns
from nearkin.present import Column, Dots, Lines, Points, Table
from nearkin.units import COUNT, NUMBER, SECONDS

SHOWN = 8  # lines that a figure shows before a click
JOINED = "The test curve was joined after each run was final: it chose nothing."
STOPPED = (
    "Not all runs of a method have all epochs: where some have stopped, points are means over the others, and a jump "
    "may come from that. The numbers say how many runs there are."
)


def section(boards: list[Board]) -> Section | None:
    """None where nothing was trained."""
    lead = "What it cost, how the curves went, and when the chosen epoch came."
    return by_board(boards, "training", "Training", lead, _time, _curves, _convergence, _epochs)


def _time(board: Board) -> list[Part]:
    metric, rows = board.metric, []
    for method in board.trained:
        seconds = board.row(method, lambda member: final_of(member).get("seconds")).values
        if seconds and method.interval is not None:
            rows.append([method.name, method.kind, statistics.fmean(seconds.values()), *ends(method.interval)])
    if not rows:
        return []
    columns: list[Column | str] = ["method", "kind", Column("seconds", "training time", SECONDS), *mean_columns(metric)]
    table, times = Table("time", columns, rows), [row[2] for row in rows]
    looks = {
        "title": f"{called(metric)} against training time",
        "x": "seconds",
        "by": "kind",
        "text": "method",
        "x_title": "seconds of training, mean of a method's runs",
        "log": max(times) > 8 * max(min(times), 1e-9),
        "alt": f"Training took from {SECONDS.text(min(times))} to {SECONDS.text(max(times))}.",
        "notes": ["The time is that of the machine that trained, with whatever else ran on it."],
    }
    return [means_figure(Points, table, metric, board.slicing(most=1000), **looks)]


def curve_table(board: Board, split: str, metric: str) -> Table:
    """Mean, lowest and highest value over the runs of a method at every epoch, and how many runs have that epoch."""
    rows: list[list[Any]] = []
    for method in board.trained:
        epochs: dict[int, list[float]] = {}
        for point in (point for member in method.members if member.done for point in member.run.curve()):
            if (value := point.get(f"{split}.{metric}")) is not None:
                epochs.setdefault(point["epoch"], []).append(value)
        rows += [
            [method.name, epoch, statistics.fmean(v), min(v), max(v), len(v)] for epoch, v in sorted(epochs.items())
        ]
    ends_of_range = span_columns(metric, "range")
    columns = ["method", "epoch", metric_column(metric), *ends_of_range, Column("runs", unit=COUNT)]
    return Table(f"curve-{split}", columns, rows)


def _curves(board: Board) -> list[Part]:
    parts: list[Part] = []
    for split, metric in (("validation", board.gathered.select), ("test", board.metric)):
        table = curve_table(board, split, metric)
        if not table.rows:
            continue
        counts: dict[str, set[int]] = {}
        for row in table:
            counts.setdefault(row["method"], set()).add(row["runs"])
        notes = [JOINED] if split == "test" else []
        if len(counts) > SHOWN:
            first = f"The first {SHOWN} of {len(counts)} methods are drawn; a click on a name shows or hides it."
            notes.insert(0, first)
        if any(len(numbers) > 1 for numbers in counts.values()):
            notes.append(STOPPED)
        looks = {
            "title": f"{split.capitalize()} curve",
            "x": "epoch",
            "by": "method",
            "y_title": f"{split} {metric_column(metric).title}",
            "visible": SHOWN,
            "alt": f"{split.capitalize()} {called(metric)} of every epoch: mean over runs, and their range.",
        }
        parts.append(means_figure(Lines, table, metric, board.slicing(), notes=notes, **looks))
    return parts


def _convergence(board: Board) -> list[Part]:
    """The epoch at which each method was best, by kind of loss, and what the two kinds differ by."""
    for metric in dict.fromkeys((board.gathered.select, board.metric)):
        key = f"{EPOCH}{metric}"
        methods = [method for method in board.by_metric(key).values() if method.trained and method.interval is not None]
        if methods:
            break
    else:
        return []
    methods = sorted(best_first(methods, key), key=lambda method: method.kind)
    rows = [[method.name, method.kind, *ends(method.interval), len(method.values)] for method in methods]
    table = Table("convergence", ["method", "kind", *mean_columns(key), Column("seeds", unit=COUNT)], rows)
    looks = {
        "title": "Convergence: the epoch at which each method was best",
        "x": "method",
        "by": "kind",
        "alt": f"One point per method: its {called(key)}, with the interval over seeds, by kind of loss.",
    }
    ranked, setting = board.ranked, partial(setting_of, keys=board.ranked.block_keys)
    alone = [replace(m, row=row_of(m.name, m.members, key, setting=setting)) for m in ranked.trained]
    words = kinds_words(replace(ranked, metric=key, methods=[method for method in alone if method.values], within=None))
    notes = [
        "The first epoch with the highest value, on validation images where there are any, else on the test curve."
    ]
    notes += [f"Epochs: {line}." for line in words]
    return [means_figure(Dots, table, key, board.slicing(), notes=notes, **looks)]


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
    columns = ["method", Column("chosen epoch", unit=NUMBER, digits=1), "lowest", "highest", "epochs trained", "rule"]
    table = Table("epochs", columns, rows, "Epochs to the chosen one")
    table.notes = ["Mean, lowest and highest over runs. Chosen epochs close to the last one say that more might help."]
    if len(set(table.column("rule"))) == 1:
        table = table.only(table.header[:-1])
    return [Grid(table, folded=len(rows) > 12, slice=board.grid)]
