"""Ranks: the tournament over settings or seeds, and the critical-difference diagram."""

import math

from nearkin.comparison.tables import standing_of
from nearkin.comparison.tournament import Standing, words_of
from nearkin.comparison.words import kinds_words
from nearkin.pages._base import Figure, Grid, Part, Section, Words
from nearkin.pages._material import Board, Material
from nearkin.present import Column, Ranks, Table, sentence
from nearkin.units import NUMBER


def section(material: Material) -> Section | None:
    """None where there are not two trained methods to rank."""
    parts = [part for board in material.boards for part in _board(board)]
    if not parts:
        return None
    lead = (
        "Every experiment ranks the trained methods, 1 is best; average ranks closer than the critical difference "
        "cannot be told apart."
    )
    return Section("ranks", "Ranks and tournament", lead, parts)


def _board(board: Board) -> list[Part]:
    kinds: list[Part] = [Words(f"{board.where}{sentence(words)}") for words in kinds_words(board.ranked)]
    standing = standing_of(board.ranked) if board.ranked.sign else None  # neither end is the good one: no ranks
    if standing is None:
        return kinds
    result = standing.result
    rows = [
        [
            name,
            float(result.total[i]),
            float(result.average[i]),
            None if math.isnan(result.std[i]) else float(result.std[i]),
            *(float(row[i]) for row in result.ranks),
        ]
        for i, name in enumerate(standing.methods)
    ]
    ranks = [Column("average", unit=NUMBER, digits=2), Column("std", unit=NUMBER, digits=2)]
    table = Table(
        f"tournament{board.suffix}",
        ["method", "total", *ranks, *standing.experiments],
        rows,
        f"{board.where}Tournament",
        [sentence(words) for words in words_of(standing)],
    )
    return [*_diagram(board, standing), Grid(table), *kinds]


def _diagram(board: Board, standing: Standing) -> list[Part]:
    """The critical-difference diagram; nothing where ranks are not tested."""
    if standing.test is None:
        return []
    difference, average = standing.test.critical_difference, standing.result.average.tolist()
    rows = [list(row) for row in zip(standing.methods, average, strict=True)]
    columns: list[Column | str] = ["method", Column("average", "average rank", NUMBER, digits=2)]
    chart = Ranks(
        name=f"ranks-chart{board.suffix}",
        title=f"{board.where}Critical-difference diagram",
        table=Table(f"ranks{board.suffix}", columns, rows),
        x="average",
        y="method",
        x_title="average rank, best on the left",
        joined=[list(group) for group in standing.groups],
        difference=difference if math.isfinite(difference) else None,
        alt=f"Average ranks over {len(standing.experiments)} {standing.over}, from {rows[0][0]} with {rows[0][1]:.2f} "
        f"to {rows[-1][0]} with {rows[-1][1]:.2f}; upright bars join methods that ranks cannot tell apart.",
    )
    return [Figure(chart)]
