"""Ranks: the tournament over settings or seeds, and the critical-difference diagram."""

import math

from nearkin.comparison.pages import kinds_words, standing_of
from nearkin.report.base import Chart, Column, Grid, Part, Section, Table, Words, rounded
from nearkin.report.material import Board, Material


def section(material: Material) -> Section | None:
    """None where there are not two trained methods to rank."""
    parts = [part for board in material.boards for part in _board(material, board)]
    if not parts:
        return None
    lead = (
        "Every experiment ranks the trained methods, 1 is best; average ranks closer than the critical difference "
        "cannot be told apart."
    )
    return Section("ranks", "Ranks and tournament", lead, parts)


def _board(material: Material, board: Board) -> list[Part]:
    found = standing_of(board.ranked)
    if found is None:
        return []
    result, over = found.result, found.over
    header = ["method", "total", "average", "std", *found.experiments]
    rows = [
        [
            name,
            float(result.total[i]),
            float(result.average[i]),
            None if math.isnan(result.std[i]) else float(result.std[i]),
            *(float(row[i]) for row in result.ranks),
        ]
        for i, name in enumerate(found.methods)
    ]
    table = Table(f"tournament{board.suffix}", header, rows)
    parts: list[Part] = []
    notes = []
    if over == "seeds":
        notes.append("There is one setting only: each seed counts as an experiment.")
    if found.test is None:
        why = "one experiment" if len(found.experiments) < 2 else "two methods"
        notes.append(f"With {why} there is no critical difference.")
    else:
        test = found.test
        p = "p < 0.001" if test.p < 0.001 else f"p = {test.p:.3f}"
        notes.append(
            f"Friedman test over {len(found.experiments)} {over}: {p}; critical difference of average "
            f"ranks {test.critical_difference:.2f} (Nemenyi, 5 %)."
        )
        ranks = Table(f"ranks{board.suffix}", ["method", "average"], [[row[0], row[2]] for row in rows])
        parts.append(
            Chart(
                f"ranks-chart{board.suffix}",
                f"{board.where}Critical-difference diagram",
                ranks,
                form="ranks",
                x="average",
                y="method",
                x_title="average rank, best on the left",
                more={"groups": [list(g) for g in found.groups], "difference": test.critical_difference},
                alt=f"Average ranks over {len(found.experiments)} {over}, from {rows[0][0]} with {rows[0][2]:.2f} to "
                f"{rows[-1][0]} with "
                f"{rows[-1][2]:.2f}; upright bars join methods that ranks cannot tell apart.",
            )
        )
    columns = [rounded(name, 2) if name != "method" else Column(name) for name in table.header]
    parts.append(Grid(f"tournament{board.suffix}", f"{board.where}Tournament", table, columns=columns, notes=notes))
    return parts + [Words(f"{words[0].upper()}{words[1:]}.") for words in kinds_words(board.ranked)]
