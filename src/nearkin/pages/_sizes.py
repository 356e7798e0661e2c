"""One setting that varies while all others stay: embedding size, backbone, p_switch; and the bars of the literature."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nearkin.comparison.gather import Member
from nearkin.comparison.method import kind_of
from nearkin.comparison.rows import row_of
from nearkin.config.recipes import Recipe, names
from nearkin.evaluation.metrics.base import metric_of
from nearkin.pages._base import Part, Section
from nearkin.pages._board import Board, by_board
from nearkin.pages._members import stored_metrics, year_of
from nearkin.pages._slicing import Slicing
from nearkin.pages._words import called, ends, mean_columns, means_figure, span_columns
from nearkin.present import Bars, Column, Lines, Table
from nearkin.statistics.intervals import mean_interval
from nearkin.statistics.unit import Nothing, Row, common
from nearkin.units import COUNT, SHARE

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
ALWAYS = {"train.seed", "protocol.fold", "train.device", "train.loaders", "train.curve"}
ALWAYS |= {"data.root", "data.cache", "purpose"}
KS = (1, 2, 4, 8)
UNLIKE = (
    "Points that stand beside each other are not all over the same seeds and folds: a part of what they differ by may "
    "be luck. The leaderboard takes differences on common seeds."
)


def section(boards: list[Board]) -> Section | None:
    """None where no setting varies by itself and no recall is stored."""
    lead = "One setting at a time, all others equal."
    return by_board(boards, "settings", "Settings, as the literature draws them", lead, _curves, _rho_bars, _recalls)


def published_beside(member: Member, key: str) -> set[str]:
    """The settings that belong to the network of a member as its recipe has them: where networks are compared, each is
    trained as published. What a study sets otherwise is none of them."""
    name = member.settings.get("recipe")
    if key != "model.backbone" or name not in names():
        return set()
    recipe = Recipe.named(name)
    return recipe.network_settings() - recipe.overridden(member.settings).keys()


def groups_of(members: Iterable[Member], key: str, beside: tuple[str, ...] = ()) -> dict[str, list[Member]]:
    """Trained members that differ in nothing but one setting, in settings that begin with what goes with it, and in
    what is published for their networks; by what the study calls all of a group's members, else by the loss. A star
    tells equal names apart."""

    def free(name: str, published: set[str]) -> bool:
        return name == key or name in ALWAYS or name in published or (name.startswith(beside) and name not in NEVER)

    groups: dict[tuple[Any, ...], list[Member]] = {}
    for member in members:
        if not member.untrained:
            published = published_beside(member, key)
            rest = sorted((name, str(value)) for name, value in member.settings.items() if not free(name, published))
            groups.setdefault((kind_of(member), *rest), []).append(member)
    names: dict[str, list[Member]] = {}
    for alike in groups.values():
        first = alike[0]
        shared = [label for axis, label in first.labels.items() if all(m.labels.get(axis) == label for m in alike)]
        loss, miner = first.settings["loss.name"], first.settings.get("miner.name")
        name = ", ".join(shared) or (f"{loss} + {miner}" if miner else loss)
        while name in names:
            name += " *"
        names[name] = alike
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


def _unlike(lines: Iterable[Iterable[Row]]) -> list[str]:
    """What must be said where points of one line stand on different seeds or folds."""
    places = [{(tuple(sorted(row.values)), frozenset(p.fold for p in row.places)) for row in rows} for rows in lines]
    return [UNLIKE] if any(len(place) > 1 for place in places) else []


def _curves(board: Board) -> list[Part]:
    return [part for key in VARIED for part in _curve(board, key)]


def _curve(board: Board, key: str) -> list[Part]:
    (name, beside), metric = VARIED[key], board.metric
    rows: list[list[Any]] = []
    lines, shown = [], list[Member]()
    candidates = [member for member in board.members if member.settings.get(key) is not None]
    for label, members in groups_of(candidates, key, beside).items():
        values = sorted({m.settings[key] for m in members}, key=lambda v: (isinstance(v, str), v))
        if len(values) < 2:
            continue
        points = {value: _row(label, [m for m in members if m.settings[key] == value], metric) for value in values}
        points = {value: row for value, row in points.items() if row.values}
        lines.append(points.values())
        shown += members
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
        "alt": f"{called(metric)} over {name}, {', '.join(map(str, values))}: mean and 95 % interval over seeds.",
    }
    notes = [*_unlike(lines), *_published_words(shown, key)]
    return [means_figure(Lines, table, metric, Slicing(), notes=notes, **looks)]


def _published_words(members: Sequence[Member], key: str) -> list[str]:
    """What differs beside the networks, because each is trained as published."""
    values: dict[str, dict[str, list[str]]] = {}  # setting -> value -> networks
    for member in members:
        for name in sorted(published_beside(member, key) - {key}):
            if name in member.settings and not name.startswith(VARIED[key][1]):
                networks = values.setdefault(name, {}).setdefault(str(member.settings[name]), [])
                networks += [str(member.settings[key])] * (str(member.settings[key]) not in networks)
    words = [
        f"{name} " + ", ".join(f"{value} ({', '.join(networks)})" for value, networks in by_value.items())
        for name, by_value in values.items()
        if len(by_value) > 1
    ]
    said = "Each network is trained as its recipe has it, so that other settings differ with it"
    return [f"{said}: {'; '.join(words)}."] if words else []


def _rho_bars(board: Board) -> list[Part]:
    """Each loss with and without rho switching; p is the one with the best validation, where there is any."""
    metric, lines, chosen_everywhere = board.metric, [], True
    rows: list[list[Any]] = []
    candidates = [member for member in board.members if member.settings.get("regulariser.name") in (None, "rho")]
    for label, members in groups_of(candidates, "regulariser.p_switch", ("regulariser",)).items():
        sides: dict[float, list[Member]] = {}
        for member in members:
            sides.setdefault(float(member.settings.get("regulariser.p_switch") or 0.0), []).append(member)
        if 0.0 not in sides or len(sides) < 2:
            continue
        chosen = best_validated({p: runs for p, runs in sides.items() if p > 0}, board.gathered.select)
        chosen_everywhere = chosen_everywhere and chosen is not None
        switched = sorted(p for p in sides if p > 0) if chosen is None else [chosen]
        shown = {p: _row(label, sides[p], metric) for p in (0.0, *switched)}
        lines.append(shown.values())
        for p, row in shown.items():
            bar = "without" if p == 0 else "with rho switching" if chosen is not None else f"p_switch {p:g}"
            rows += [[label, bar, p, *_cells(row, metric)]] if row.values else []
    if not rows:
        return []
    note = "p_switch is the one with the best mean on validation images, not on test images."
    if not chosen_everywhere:
        note = "Without validation on common seeds no p_switch can be chosen: there is one bar for each."
    columns = ["method", "regulariser", "p_switch", *mean_columns(metric), Column("seeds", unit=COUNT)]
    looks: dict[str, Any] = {
        "title": "With and without rho switching",
        "x": "method",
        "by": "regulariser",
        "lying": True,
    }
    alt = f"Pairs of bars: {called(metric)} of each loss without and with rho switching, with 95 % intervals."
    table, notes = Table("rho-switching", columns, rows), [note, *_unlike(lines)]
    return [means_figure(Bars, table, metric, Slicing(), notes=notes, alt=alt, **looks)]


def best_validated(sides: dict[float, list[Member]], select: str) -> float | None:
    """The value of a setting that is best on validation images, on the seeds and folds that all have; None where they
    have nothing in common."""
    if len(sides) == 1:
        return next(iter(sides))
    shared = common([_row(str(p), runs, f"validation {select}") for p, runs in sides.items()])
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
