"""One setting that varies while all others stay: embedding size, backbone, p_switch; and the bars of the literature."""

from collections.abc import Iterable, Sequence
from typing import Any

from nearkin.comparison.alike import NONE, regulariser
from nearkin.comparison.gather import Member
from nearkin.pages._base import Part, Section
from nearkin.pages._board import Board, by_board
from nearkin.pages._members import stored_metrics, year_of
from nearkin.pages._one_setting import SWITCH, averaged, cells, differing, groups_of, unlike
from nearkin.pages._regularisers import regularisers
from nearkin.pages._slicing import Slicing
from nearkin.pages._words import called, ends, mean_columns, means_figure, span_columns
from nearkin.present import Bars, Column, Lines, Table
from nearkin.units import COUNT, SHARE

# setting -> (heading, beginnings of settings that go with it and may differ)
VARIED: dict[str, tuple[str, tuple[str, ...]]] = {
    "model.dim": ("embedding size", ()),
    "model.backbone": (
        "backbone",
        ("model.", "data.size", "data.resize", "data.crop", "data.keep", "train.lr", "recipe"),
    ),
    SWITCH: ("p_switch", ("regulariser",)),
}
KS = (1, 2, 4, 8)


def section(boards: list[Board]) -> Section | None:
    """None where no setting varies by itself and no recall is stored."""
    lead = "One setting at a time, all others equal."
    return by_board(boards, "settings", "Settings, as the literature draws them", lead, _curves, regularisers, _recalls)


def _curves(board: Board) -> list[Part]:
    return [part for key in VARIED for part in _curve(board, key)]


def _value(member: Member, key: str) -> Any:
    """A setting that varies; without a regulariser nothing is switched."""
    return 0.0 if key == SWITCH and regulariser(member) == NONE else member.settings.get(key)


def _curve(board: Board, key: str) -> list[Part]:
    (name, beside), metric = VARIED[key], board.metric
    level = 0.0 if key == SWITCH else None  # no point of the curve, but what it is seen against
    rows: list[list[Any]] = []
    lines, shown = [], list[list[Member]]()
    candidates = [member for member in board.members if _value(member, key) is not None]
    for label, members in groups_of(candidates, key, beside).items():
        values = sorted({_value(m, key) for m in members}, key=lambda v: (isinstance(v, str), v))
        if len([value for value in values if value != level]) < 2:
            continue
        points = {value: averaged(label, [m for m in members if _value(m, key) == value], metric) for value in values}
        points = {value: row for value, row in points.items() if row.values}
        lines.append(points.values())
        shown.append(members)
        rows += [[label, value, *cells(row, metric)] for value, row in points.items()]
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
    dashed = "Dashed: p_switch 0, without switching; its interval is among the numbers."
    notes = [*([dashed] if level in values else []), *unlike(lines), *_by_recipe(shown, key, beside)]
    return [means_figure(Lines, table, metric, Slicing(), notes=notes, **looks)]


def _by_recipe(groups: Iterable[Sequence[Member]], key: str, beside: tuple[str, ...]) -> list[str]:
    """What else differs with the setting, because the recipe has it so: each network is trained as published."""
    values: dict[str, dict[str, dict[str, None]]] = {}  # setting -> its values -> those of the setting that varies
    for members in groups:
        for name in differing(members):
            if name != key and not name.startswith(beside):
                for member in members:
                    varied = values.setdefault(name, {}).setdefault(str(member.settings.get(name)), {})
                    varied[str(_value(member, key))] = None
    words = [
        f"{name} " + ", ".join(f"{value} ({', '.join(varied)})" for value, varied in by_value.items())
        for name, by_value in values.items()
    ]
    return [f"The recipe has other settings with it: {'; '.join(words)}."] if words else []


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
