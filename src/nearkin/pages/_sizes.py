"""One setting that varies while all others stay: embedding size, backbone, p_switch; and the bars of the literature."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nearkin.comparison.alike import NEVER_COUNTS, NONE, alike, regulariser
from nearkin.comparison.gather import Member
from nearkin.comparison.rows import row_of
from nearkin.evaluation.metrics.base import difference_unit, metric_of
from nearkin.pages._base import Part, Section, slug
from nearkin.pages._board import Board, by_board
from nearkin.pages._members import stored_metrics, year_of
from nearkin.pages._slicing import Slicing
from nearkin.pages._words import called, ends, mean_columns, means_figure, span_columns
from nearkin.present import Bars, Column, Lines, Table
from nearkin.statistics.intervals import mean_interval
from nearkin.statistics.unit import Nothing, Row, common
from nearkin.units import COUNT, SHARE

SWITCH = "regulariser.p_switch"
# setting -> (heading, beginnings of settings that go with it and may differ)
VARIED: dict[str, tuple[str, tuple[str, ...]]] = {
    "model.dim": ("embedding size", ()),
    "model.backbone": (
        "backbone",
        ("model.", "data.size", "data.resize", "data.crop", "data.keep", "train.lr", "recipe"),
    ),
    SWITCH: ("p_switch", ("regulariser",)),
}
CALLED_HERE = {"rho": "rho switching"}  # a regulariser in words
NEVER = ("model.dim", "model.head")  # they go with no other setting
KS = (1, 2, 4, 8)
RHO = "train.rho"
UNLIKE = (
    "Points that stand beside each other are not all over the same seeds and folds: a part of what they differ by may "
    "be luck. The leaderboard takes differences on common seeds."
)


def section(boards: list[Board]) -> Section | None:
    """None where no setting varies by itself and no recall is stored."""
    lead = "One setting at a time, all others equal."
    return by_board(
        boards, "settings", "Settings, as the literature draws them", lead, _curves, _regularisers, _recalls
    )


def groups_of(members: Iterable[Member], key: str, beside: tuple[str, ...] = ()) -> dict[str, list[Member]]:
    """Trained members that differ in nothing but one setting, and in settings that begin with what goes with it."""

    def free(name: str) -> bool:
        return name == key or (name.startswith(beside) and name not in NEVER)

    return alike([member for member in members if not member.untrained], free)


def _row(name: str, members: Sequence[Member], metric: str) -> Row:
    """Members with one value of the setting that varies. What else differs between them is a setting beside: it is
    averaged for each seed, as folds are."""
    keys = list(dict.fromkeys(key for member in members for key in member.settings if key not in NEVER_COUNTS))
    differing = [key for key in keys if len({str(member.settings.get(key)) for member in members}) > 1]
    return row_of(name, members, metric, setting=lambda member: tuple(str(member.settings.get(k)) for k in differing))


def _cells(row: Row, metric: str) -> list[Any]:
    """Mean, interval and number of seeds."""
    values = list(row.values.values())
    return [*ends(mean_interval(values, bounds=metric_of(metric).bounds) if values else None), len(values)]


def _unlike(lines: Iterable[Iterable[Row]]) -> list[str]:
    """What must be said where points of one line stand on different seeds or folds."""
    places = [{(tuple(sorted(row.values)), frozenset(p.fold for p in row.places)) for row in rows} for rows in lines]
    return [UNLIKE] if any(len(place) > 1 for place in places) else []


def _curves(board: Board) -> list[Part]:
    return [part for key in VARIED for part in _curve(board, key)]


def _value(member: Member, key: str) -> Any:
    """A setting that varies; without a regulariser nothing is switched."""
    return 0.0 if key == SWITCH and regulariser(member) == NONE else member.settings.get(key)


def _curve(board: Board, key: str) -> list[Part]:
    (name, beside), metric = VARIED[key], board.metric
    level = 0.0 if key == SWITCH else None  # no point of the curve, but what it is seen against
    rows: list[list[Any]] = []
    lines = []
    candidates = [member for member in board.members if _value(member, key) is not None]
    for label, members in groups_of(candidates, key, beside).items():
        values = sorted({_value(m, key) for m in members}, key=lambda v: (isinstance(v, str), v))
        if len([value for value in values if value != level]) < 2:
            continue
        points = {value: _row(label, [m for m in members if _value(m, key) == value], metric) for value in values}
        points = {value: row for value, row in points.items() if row.values}
        lines.append(points.values())
        rows += [[label, value, *_cells(row, metric)] for value, row in points.items()]
    if not rows:
        return []
    table = Table(name.replace(" ", "-"), ["method", name, *mean_columns(metric), Column("seeds", unit=COUNT)], rows)
    values = list(dict.fromkeys(table.column(name)))
    looks = {
        "name": f"by-{key.rpartition('.')[2].replace('_', '-')}",
        "title": f"{called(metric)} over {name}",
        "x": name,
        "by": "method",
        "log": key == "model.dim" and len(rows) > 2,
        "visible": 10,
        "level": level,
        "alt": f"{called(metric)} over {name}, {', '.join(map(str, values))}: mean and 95 % interval over seeds.",
    }
    notes = ["Dashed: p_switch 0, without switching."] * (level in values) + _unlike(lines)
    return [means_figure(Lines, table, metric, Slicing(), notes=notes, **looks)]


def _trained(board: Board) -> list[Member]:
    return [member for member in board.members if not member.untrained]


def _regularisers(board: Board) -> list[Part]:
    names = dict.fromkeys(m.settings["regulariser.name"] for m in _trained(board) if regulariser(m) != NONE)
    metrics = [board.metric, *[RHO] * (board.metric != RHO)]
    return [part for name in names for metric in metrics for part in _with_and_without(board, name, metric)]


def _with_and_without(board: Board, name: str, metric: str) -> list[Part]:
    """The bars of every method without and with a regulariser. Of several p_switch one is drawn: the best on validation
    images, where there is any. A method that has no twin is a bar by itself."""
    lines, chosen_everywhere, paired = [], True, False
    rows: list[list[Any]] = []
    candidates = [m for m in _trained(board) if regulariser(m) == NONE or m.settings["regulariser.name"] == name]
    for label, members in groups_of(candidates, SWITCH, ("regulariser",)).items():
        sides: dict[str, list[Member]] = {}
        for member in sorted(members, key=lambda member: member.settings.get(SWITCH) or 0.0):
            sides.setdefault(regulariser(member), []).append(member)
        acting = {words: runs for words, runs in sides.items() if words != NONE}
        chosen = best_validated(acting, board.gathered.select) if acting else None
        chosen_everywhere = chosen_everywhere and (chosen is not None or not acting)
        paired = paired or len(sides) > len(acting) > 0
        shown = [words for words in sides if words == NONE or chosen in (words, None)]
        drawn = {words: _row(label, sides[words], metric) for words in shown}
        lines.append(drawn.values())
        for words, row in drawn.items():
            bar = "without" if words == NONE else words if chosen is None else f"with {CALLED_HERE.get(name, name)}"
            switch = 0.0 if words == NONE else sides[words][0].settings.get(SWITCH)
            rows += [[label, bar, switch, *_cells(row, metric), _deviation(row)]] if row.values else []
    if not paired or not rows:
        return []
    note = "p_switch is the one with the best mean on validation images, not on test images."
    if not chosen_everywhere:
        note = "Without validation on common seeds no p_switch can be chosen: there is one bar for each."
    std = Column("std", "std over seeds", difference_unit(metric))
    columns = ["method", "regulariser", "p_switch", *mean_columns(metric), Column("seeds", unit=COUNT), std]
    title = f"With and without {CALLED_HERE.get(name, name)}"
    looks: dict[str, Any] = {
        "title": title if metric == board.metric else f"{title}: {called(metric)}",
        "x": "method",
        "by": "regulariser",
        "lying": True,
    }
    alt = f"{called(metric)} of every method {title.lower()}: means with 95 % intervals; a lone bar has no twin."
    id = slug(CALLED_HERE.get(name, name)) + "-decay" * (metric != board.metric)
    table, notes = Table(id, columns, rows), [*[note] * (name == "rho"), *_unlike(lines)]
    return [means_figure(Bars, table, metric, Slicing(), notes=notes, alt=alt, **looks)]


def _deviation(row: Row) -> float | None:
    """The standard deviation over seeds, as papers print it; None of one seed."""
    values = list(row.values.values())
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def best_validated(sides: dict[str, list[Member]], select: str) -> str | None:
    """Which runs are best on validation images, on the seeds and folds that all have; None where they have nothing in
    common."""
    if len(sides) == 1:
        return next(iter(sides))
    shared = common([_row(words, runs, f"validation {select}") for words, runs in sides.items()])
    if isinstance(shared, Nothing):
        return None
    return list(sides)[int(np.argmax((metric_of(select).sign or 1) * shared.values.mean(axis=1)))]


def _recalls(board: Board) -> list[Part]:
    """Recall@1, 2, 4, 8 of every method, in the order in which their papers appeared."""
    stored = set(stored_metrics(board.gathered))
    ks = [k for k in KS if f"recall@{k}" in stored]
    dated = [(year, method) for method in board.trained if (year := year_of(method.members[0])) is not None]
    if len(ks) < 2 or len(dated) < 2:
        return []
    rows: list[list[Any]] = []
    methods = {}
    for year, method in sorted(dated, key=lambda pair: pair[0]):
        methods[name := f"{method.name} ({year})"] = method.name
        for k in ks:
            if (interval := board.interval(method, f"recall@{k}")) is not None:
                rows.append([name, str(year), f"Recall@{k}", *ends(interval)])
    recall = [Column("recall", "Recall@k", SHARE), *span_columns("recall@1", star="cut"), "cut"]
    table = Table("recall-by-year", ["method", "year", "metric", *recall], rows)
    looks: dict[str, Any] = {"title": "Recall@k in order of publication", "x": "method", "by": "metric", "lying": True}
    alt = f"Recall at {', '.join(map(str, ks))} of every method, oldest paper first."
    return [means_figure(Bars, table, "recall", board.slicing(methods), alt=alt, **looks)]
