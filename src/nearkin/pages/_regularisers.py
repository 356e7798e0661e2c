"""Methods with and without a regulariser side by side, as bars."""

from typing import Any

import numpy as np

from nearkin.comparison.alike import NONE, regulariser
from nearkin.comparison.gather import Member
from nearkin.evaluation.metrics.base import difference_unit, metric_of
from nearkin.pages._base import Part, slug
from nearkin.pages._board import Board
from nearkin.pages._one_setting import SWITCH, averaged, cells, groups_of, unlike
from nearkin.pages._slicing import Slicing
from nearkin.pages._words import called, mean_columns, means_figure
from nearkin.present import Bars, Column, Table
from nearkin.statistics.unit import Nothing, Row, common
from nearkin.units import COUNT

RHO = "train.rho"
WORDS = {"rho": "rho switching"}  # a regulariser in words


def regularisers(board: Board) -> list[Part]:
    """For every regulariser, bars of the metric and of ρ of the training embeddings."""
    names = dict.fromkeys(m.settings["regulariser.name"] for m in trained_members(board) if regulariser(m) != NONE)
    metrics = [board.metric, *[RHO] * (board.metric != RHO)]
    return [part for name in names for metric in metrics for part in _with_and_without(board, name, metric)]


def _with_and_without(board: Board, name: str, metric: str) -> list[Part]:
    """The bars of every method without and with a regulariser. Of several p_switch one is drawn: the best on validation
    images, where there is any. A method that has no twin is a bar by itself."""
    lines, chosen_everywhere, paired = [], True, False
    rows: list[list[Any]] = []
    candidates = [m for m in trained_members(board) if regulariser(m) == NONE or m.settings["regulariser.name"] == name]
    for label, members in groups_of(candidates, SWITCH, ("regulariser",)).items():
        sides: dict[str, list[Member]] = {}
        for member in sorted(members, key=lambda member: member.settings.get(SWITCH) or 0.0):
            sides.setdefault(regulariser(member), []).append(member)
        acting = {words: runs for words, runs in sides.items() if words != NONE}
        chosen = best_validated(acting, board.gathered.select) if acting else None
        chosen_everywhere = chosen_everywhere and (chosen is not None or not acting)
        paired = paired or len(sides) > len(acting) > 0
        shown = [words for words in sides if words == NONE or chosen in (words, None)]
        drawn = {words: averaged(label, sides[words], metric) for words in shown}
        lines.append(drawn.values())
        for words, row in drawn.items():
            bar = "without" if words == NONE else words if chosen is None else f"with {WORDS.get(name, name)}"
            switch = 0.0 if words == NONE else sides[words][0].settings.get(SWITCH)
            rows += [[label, bar, switch, *cells(row, metric), _deviation(row)]] if row.values else []
    if not paired or not rows:
        return []
    note = "p_switch is the one with the best mean on validation images, not on test images."
    if not chosen_everywhere:
        note = "Without validation on common seeds no p_switch can be chosen: there is one bar for each."
    std = Column("std", "std over seeds", difference_unit(metric))
    columns = ["method", "regulariser", "p_switch", *mean_columns(metric), Column("seeds", unit=COUNT), std]
    title = f"With and without {WORDS.get(name, name)}"
    looks: dict[str, Any] = {
        "title": title if metric == board.metric else f"{title}: {called(metric)}",
        "x": "method",
        "by": "regulariser",
        "lying": True,
    }
    alt = f"{called(metric)} of every method {title.lower()}: means with 95 % intervals; a lone bar has no twin."
    id = slug(WORDS.get(name, name)) + "-decay" * (metric != board.metric)
    table, notes = Table(id, columns, rows), [*[note] * (name == "rho"), *unlike(lines)]
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
    shared = common([averaged(words, runs, f"validation {select}") for words, runs in sides.items()])
    if isinstance(shared, Nothing):
        return None
    return list(sides)[int(np.argmax((metric_of(select).sign or 1) * shared.values.mean(axis=1)))]


def trained_members(board: Board) -> list[Member]:
    """The tested runs of a board, without the untrained networks."""
    return [member for member in board.members if not member.untrained]
