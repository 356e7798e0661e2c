"""How training went: time, learning curves, and epochs to the chosen one."""

import statistics
from collections.abc import Iterable
from typing import Any

from nearkin.pages.base import Chart, Column, Grid, Part, Section, Table, rounded
from nearkin.pages.material import Board, Material, final_of
from nearkin.pages.words import ENDS, called, cut_note, ends, heading, interval_of

SHOWN = 8  # lines that a figure shows before a click


def section(material: Material) -> Section | None:
    """None where nothing was trained."""
    parts = [
        part
        for board in material.boards
        for part in (*_time(material, board), *_curves(material, board), *_epochs(board))
    ]
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
    table = Table(f"time{board.suffix}", ["method", "kind", "seconds", metric, *ENDS], rows)
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
            notes=[
                "Seconds are those of the machine that trained, with whatever else ran on it.",
                *cut_note(table.column("cut")),
            ],
        )
    ]


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
        Table(f"curve-{split}{board.suffix}", ["method", "epoch", metric, "low", "high", "runs"], content)
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
        parts.append(
            Chart(
                f"curve-{split}{board.suffix}",
                f"{board.where}{split.capitalize()} curve",
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


def _some_stopped(table: Table) -> bool:
    """Has a method's curve points over different numbers of runs?"""
    counts: dict[str, set[int]] = {}
    for row in table.records():
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
    header = ["method", "chosen epoch", "lowest", "highest", "epochs trained", "rule"]
    table = Table(f"epochs{board.suffix}", header, rows)
    shown = [name for name in header if name != "rule" or len(set(table.column("rule"))) > 1]
    columns = [rounded(name, 1) if name == "chosen epoch" else Column(name) for name in shown]
    return [
        Grid(
            f"epochs{board.suffix}",
            f"{board.where}Epochs to the chosen one",
            table,
            columns=columns,
            folded=len(rows) > 12,
            notes=["Mean, lowest and highest over runs. Chosen epochs close to the last one say that more might help."],
        )
    ]
