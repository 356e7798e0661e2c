"""The metric against the spectral decay of the training embeddings, and how metrics go together over runs."""

import numpy as np
from scipy import stats

from nearkin.comparison.alike import regulariser
from nearkin.pages._base import Figure, Part, Section
from nearkin.pages._board import Board, by_board
from nearkin.pages._members import distinct, stored_metrics
from nearkin.pages._words import called, ends, mean_columns, means_figure
from nearkin.present import Column, Heatmap, Points, Table
from nearkin.units import NUMBER

RHO = "train.rho"


def section(boards: list[Board]) -> Section | None:
    """None where there is nothing to correlate."""
    lead = "Spectral decay of the training embeddings against the result, and metrics against each other."
    return by_board(boards, "correlations", "What goes together", lead, _rho, _metrics)


def _rho(board: Board) -> list[Part]:
    metric, rows = board.metric, []
    for method in board.trained if metric != RHO else ():
        rho = board.interval(method, RHO)
        if rho is not None and method.interval is not None:
            switched = regulariser(method.members[0]).partition(" ")[0]
            rows.append([method.name, method.kind, switched, *ends(rho)[:3], *ends(method.interval)])
    if len(rows) < 3:
        return []
    columns: list[Column | str] = [
        "method",
        "kind",
        "regulariser",
        Column("rho", "ρ of the training embeddings", NUMBER),
    ]
    columns += [Column("rho_low", "95 % interval of ρ", NUMBER, to="rho_high"), Column("rho_high", unit=NUMBER)]
    table = Table("rho", [*columns, *mean_columns(metric)], rows)
    by = "regulariser" if len(set(table.column("regulariser"))) > 1 else "kind"
    words = correlation_words(np.array(table.column("rho")), np.array(table.column(metric)))
    caution = "ρ is low where the embeddings use many directions evenly. A correlation says nothing about a cause."
    looks = {"x": "rho", "by": by, "text": "method", "named": by == "kind" or len(rows) <= 6}
    looks |= {"left": "rho_low", "right": "rho_high", "title": f"{called(metric)} against spectral decay ρ"}
    alt = f"{len(rows)} trained methods, means over seeds. {words}"
    return [means_figure(Points, table, metric, board.slicing(most=1000), alt=alt, notes=[caution], **looks)]


def correlation_words(x: np.ndarray, y: np.ndarray) -> str:
    """Pearson's and Spearman's correlation in a sentence. There is no p value: rows of a study that share a loss or a
    network are no independent draws."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return "There is no correlation to tell: one of the two does not vary."
    pearson, spearman = stats.pearsonr(x, y).statistic, stats.spearmanr(x, y).statistic
    return f"Over these {len(x)} Pearson's correlation is {pearson:.2f}, Spearman's {spearman:.2f}; neither is tested."


def _metrics(board: Board) -> list[Part]:
    runs = [member for member in distinct(board.members) if not member.untrained]
    values = {name: [member.value(name) for member in runs] for name in [*stored_metrics(board.gathered), RHO]}
    varied = {name: numbers for name, numbers in values.items() if None not in numbers and len(set(numbers)) > 1}
    if len(runs) < 4 or len(varied) < 2:
        return []
    correlations = np.corrcoef(np.array(list(varied.values()), dtype=float))
    rows = [[a, b, float(correlations[i, j])] for i, a in enumerate(varied) for j, b in enumerate(varied)]
    table = Table("metric-correlation", ["metric", "with", Column("correlation", unit=NUMBER)], rows)
    chart = Heatmap(
        name="metric-correlation",
        title="Correlation between metrics",
        table=table,
        x="with",
        y="metric",
        value="correlation",
        band=[-1, 1],
        alt=f"Pearson's correlation between {len(varied)} metrics over {len(runs)} trained runs; not tested.",
    )
    return [Figure(chart)]
