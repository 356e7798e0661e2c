"""Ranks: the tournament over settings or seeds, and the critical-difference diagram."""

import math
from dataclasses import replace

from nearkin.comparison.tables import standing_of, tournament_table
from nearkin.comparison.words import kinds_words
from nearkin.pages._base import Figure, Grid, Part, Section, Words
from nearkin.pages._board import Board, by_board
from nearkin.present import Ranks, sentence


def section(boards: list[Board]) -> Section | None:
    """None where there are not two trained methods to rank."""
    lead = (
        "Every experiment ranks the trained methods, 1 is best; average ranks closer than the critical difference "
        "cannot be told apart."
    )
    return by_board(boards, "ranks", "Ranks and tournament", lead, _tournament, _kinds)


def _kinds(board: Board) -> list[Part]:
    return [Words(sentence(words)) for words in kinds_words(board.ranked)]


def _tournament(board: Board) -> list[Part]:
    """The diagram, where ranks are tested, and the table; nothing where neither end of the metric is the good one."""
    standing = standing_of(board.ranked) if board.ranked.sign else None
    if standing is None:
        return []
    table = tournament_table(standing, "")
    table.title, table.notes = "Tournament", [sentence(words) for words in table.notes]
    if standing.test is None:
        return [Grid(table)]
    difference, averages = standing.test.critical_difference, table.only(["method", "average"])
    method, average = averages.columns
    averages = replace(averages, name="ranks", columns=[method, replace(average, heading="average rank")], title="")
    best, *_, last = averages.texts()
    chart = Ranks(
        name="ranks-chart",
        title="Critical-difference diagram",
        table=averages,
        x="average",
        y="method",
        x_title="average rank, best on the left",
        joined=[list(group) for group in standing.groups],
        difference=difference if math.isfinite(difference) else None,
        alt=f"Average ranks over {len(standing.experiments)} {standing.over}, from {' with '.join(best)} to "
        f"{' with '.join(last)}; upright bars join methods that ranks cannot tell apart.",
    )
    return [Figure(chart), Grid(table)]
