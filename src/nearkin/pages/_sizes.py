"""One setting that varies while all others stay: embedding size, backbone, p_switch; and the bars of the literature."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nearkin.comparison.gather import Member
from nearkin.comparison.method import kind_of
from nearkin.comparison.rows import row_of
from nearkin.evaluation.metrics.base import metric_of
from nearkin.pages._base import Figure, Part, Section
from nearkin.pages._material import Board, Material, year_of
from nearkin.pages._slicing import Slicing
from nearkin.pages._words import called, cut_note, ends, interval_of, mean_columns
from nearkin.present import Bars, Column, Lines, Table
from nearkin.statistics.intervals import mean_interval
from nearkin.statistics.unit import Nothing, Row, common
from nearkin.units import COUNT, POINTS, SHARE

# setting -> (heading, beginnings of settings that go with it and may differ)
VARIED: dict[str, tuple[str, tuple[str, ...]]] = {
    "model.dim": ("embedding size", ()),
    "model.backbone": (
        "backbone",
        ("model.", "data.size", "data.resize", "data.crop", "data.keep", "train.lr", "recipe"),
    ),
    "regulariser.p_switch": ("p_switch", ()),
}
NEVER = ("model.dim", "model.head")  # they go with no other setting
ALWAYS = (
    "train.seed",
    "protocol.fold",
    "train.device",
    "train.loaders",
    "train.curve",
    "data.root",
    "data.cache",
    "purpose",
)
KS = (1, 2, 4, 8)


def section(material: Material) -> Section | None:
    """None where no setting varies by itself and no recall is stored."""
    parts: list[Part] = []
    for board in material.boards:
        for key in VARIED:
            parts += _curve(material, board, key)
        parts += _rho_bars(material, board) + _recalls(material, board)
    if not parts:
        return None
    lead = "One setting at a time, all others equal."
    return Section("settings", "Settings, as the literature draws them", lead, parts)


def groups_of(members: Iterable[Member], key: str, beside: tuple[str, ...] = ()) -> list[list[Member]]:
    """Trained members that differ in nothing but one setting, and in settings that begin with what goes with it."""

    def free(name: str) -> bool:
        return name == key or name in ALWAYS or (name.startswith(beside) and name not in NEVER)

    groups: dict[tuple[Any, ...], list[Member]] = {}
    for member in members:
        if not member.untrained:
            rest = sorted((name, str(value)) for name, value in member.settings.items() if not free(name))
            groups.setdefault((kind_of(member), *rest), []).append(member)
    return list(groups.values())


def _named(groups: Iterable[list[Member]]) -> dict[str, list[Member]]:
    """Groups by what the study calls all of a group's members; else by the loss. A star tells equal names apart."""
    names: dict[str, list[Member]] = {}
    for members in groups:
        first = members[0]
        shared = [label for axis, label in first.labels.items() if all(m.labels.get(axis) == label for m in members)]
        loss, miner = first.settings["loss.name"], first.settings.get("miner.name")
        name = ", ".join(shared) or (f"{loss} + {miner}" if miner else loss)
        while name in names:
            name += " *"
        names[name] = members
    return names


def _row(name: str, members: Sequence[Member], metric: str) -> Row:
    """Members with one value of the setting that varies. What else differs between them is a setting beside: it is
    averaged for each seed, as folds are."""
    keys = list(dict.fromkeys(key for member in members for key in member.settings if key not in ALWAYS))
    differing = [key for key in keys if len({str(member.settings.get(key)) for member in members}) > 1]
    return row_of(name, members, metric, setting=lambda member: tuple(str(member.settings.get(k)) for k in differing))


def _cells(row: Row, metric: str) -> list[Any]:
    """Mean, interval and number of seeds."""
    values = list(row.values.values())
    return [*ends(mean_interval(values, bounds=metric_of(metric).bounds) if values else None), len(values)]


def _unlike(lines: Iterable[Sequence[Row]]) -> list[str]:
    """What must be said where points of one line stand on different seeds or folds."""
    for rows in lines:
        if len({(tuple(sorted(row.values)), frozenset(place.fold for place in row.places)) for row in rows}) > 1:
            return [
                "Points that stand beside each other are not all over the same seeds and folds: a part of what "
                "they differ by may be luck. The leaderboard takes differences on common seeds."
            ]
    return []


def _curve(material: Material, board: Board, key: str) -> list[Part]:
    name, beside = VARIED[key]
    metric, rows, lines = material.metric, [], []
    known = [member for member in board.members if member.settings.get(key) is not None]
    varied = [group for group in groups_of(known, key, beside) if len({str(m.settings[key]) for m in group}) > 1]
    for label, members in _named(varied).items():
        values = sorted({m.settings[key] for m in members}, key=lambda v: (isinstance(v, str), v))
        points = {value: _row(label, [m for m in members if m.settings[key] == value], metric) for value in values}
        points = {value: row for value, row in points.items() if row.values}
        lines.append(list(points.values()))
        rows += [[label, value, *_cells(row, metric)] for value, row in points.items()]
    if not rows:
        return []
    columns: list[Column | str] = ["method", name, *mean_columns(metric), Column("seeds", unit=COUNT)]
    table = Table(f"{name.replace(' ', '-')}{board.suffix}", columns, rows)
    numbers = [v for v in table.column(name) if not isinstance(v, str)]
    chart = Lines(
        name=f"by-{key.rpartition('.')[2].replace('_', '-')}{board.suffix}",
        title=f"{board.where}{called(metric)} over {name}",
        table=table,
        x=name,
        by="method",
        **interval_of(metric),
        log=key == "model.dim" and len(numbers) > 2,
        visible=10,
        alt=f"{called(metric)} over {name}, {', '.join(map(str, dict.fromkeys(table.column(name))))}: "
        "mean and 95 % interval over seeds.",
        notes=[*_unlike(lines), *cut_note(table.column("cut"))],
    )
    return [Figure(chart, Slicing())]


def _rho_bars(material: Material, board: Board) -> list[Part]:
    """Each loss with and without rho switching; p is the one with the best validation, where there is any."""
    metric, rows, lines, chosen_everywhere = material.metric, [], [], True
    known = [member for member in board.members if member.settings.get("regulariser.name") in (None, "rho")]
    for label, members in _named(groups_of(known, "regulariser.p_switch", ("regulariser",))).items():
        sides: dict[float, list[Member]] = {}
        for member in members:
            sides.setdefault(float(member.settings.get("regulariser.p_switch") or 0.0), []).append(member)
        if 0.0 not in sides or len(sides) < 2:
            continue
        chosen = best_validated({p: runs for p, runs in sides.items() if p > 0}, material.gathered.select)
        chosen_everywhere = chosen_everywhere and chosen is not None
        switched = sorted(p for p in sides if p > 0) if chosen is None else [chosen]
        shown = {p: _row(label, sides[p], metric) for p in (0.0, *switched)}
        lines.append(list(shown.values()))
        for p, row in shown.items():
            bar = "without" if p == 0 else "with rho switching" if chosen is not None else f"p_switch {p:g}"
            rows += [[label, bar, p, *_cells(row, metric)]] if row.values else []
    if not rows:
        return []
    note = "p_switch is the one with the best mean on validation images, not on test images."
    if not chosen_everywhere:
        note = "Without validation on common seeds no p_switch can be chosen: there is one bar for each."
    columns: list[Column | str] = [
        "method",
        "regulariser",
        "p_switch",
        *mean_columns(metric),
        Column("seeds", unit=COUNT),
    ]
    table = Table(f"rho-switching{board.suffix}", columns, rows)
    chart = Bars(
        name=f"rho-switching{board.suffix}",
        title=f"{board.where}With and without rho switching",
        table=table,
        x="method",
        by="regulariser",
        **interval_of(metric),
        lying=True,
        alt=f"Pairs of bars: {called(metric)} of each loss without and with rho switching, with 95 % intervals.",
        notes=[note, *_unlike(lines), *cut_note(table.column("cut"))],
    )
    return [Figure(chart, Slicing())]


def best_validated(sides: dict[float, list[Member]], select: str) -> float | None:
    """The value of a setting that is best on validation images, on the seeds and folds that all have; None where they
    have nothing in common."""
    if len(sides) == 1:
        return next(iter(sides))
    shared = common([_row(str(p), runs, f"validation {select}") for p, runs in sides.items()])
    if isinstance(shared, Nothing):
        return None
    return list(sides)[int(np.argmax((metric_of(select).sign or 1) * shared.values.mean(axis=1)))]


def _recalls(material: Material, board: Board) -> list[Part]:
    """Recall@1, 2, 4, 8 of every method, in the order in which their papers appeared."""
    stored = set(material.stored_metrics())
    ks = [k for k in KS if f"recall@{k}" in stored]
    dated = [
        (year, place, method)
        for place, method in enumerate(board.trained)
        if (year := year_of(method.members[0])) is not None
    ]
    if len(ks) < 2 or len(dated) < 2:
        return []
    rows, methods = list[list[Any]](), {}
    for year, _, method in sorted(dated, key=lambda dating: dating[:2]):
        methods[name := f"{method.name} ({year})"] = method.name
        for k in ks:
            if (interval := board.interval(method, f"recall@{k}")) is not None:
                rows.append([name, str(year), f"Recall@{k}", *ends(interval)])
    span = Column("low", "95 % interval", POINTS, to="high", star="cut")
    columns: list[Column | str] = ["method", "year", "metric", Column("recall", "Recall@k", SHARE), span]
    columns += [Column("high", unit=POINTS), "cut"]
    table = Table(f"recall-by-year{board.suffix}", columns, rows)
    chart = Bars(
        name=f"recall-by-year{board.suffix}",
        title=f"{board.where}Recall@k in order of publication",
        table=table,
        x="method",
        **interval_of("recall"),
        by="metric",
        lying=True,
        alt="Recall at " + ", ".join(map(str, ks)) + " of every method, oldest paper first.",
        notes=cut_note(table.column("cut")),
    )
    return [Figure(chart, board.slicing(methods))]
