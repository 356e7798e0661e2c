"""The metric against the spectral decay of the training embeddings, and how metrics go together over runs."""

import numpy as np
from scipy import stats

from nearkin.pages._base import Figure, Part, Section
from nearkin.pages._material import Board, Material
from nearkin.pages._words import called, cut_note, ends, interval_of, mean_columns
from nearkin.present import Column, Heatmap, Points, Table
from nearkin.units import NUMBER

RHO = "train.rho"


def section(material: Material) -> Section | None:
    """None where there is nothing to correlate."""
    parts = [part for board in material.boards for part in (*_rho(material, board), *_metrics(material, board))]
    if not parts:
        return None
    lead = "Spectral decay of the training embeddings against the result, and metrics against each other."
    return Section("correlations", "What goes together", lead, parts)


def _rho(material: Material, board: Board) -> list[Part]:
    metric, rows = material.metric, []
    for method in board.trained if metric != RHO else ():
        rho = board.interval(method, RHO)
        if rho is not None and method.interval is not None:
            rows.append([method.name, method.kind, rho.mean, *ends(method.interval)])
    if len(rows) < 3:
        return []
    rho_column = Column("rho", "ρ of the training embeddings", NUMBER)
    table = Table(f"rho{board.suffix}", ["method", "kind", rho_column, *mean_columns(metric)], rows)
    words = correlation_words(np.array(table.column("rho")), np.array(table.column(metric)))
    chart = Points(
        name=f"rho{board.suffix}",
        title=f"{board.where}{called(metric)} against spectral decay ρ",
        table=table,
        x="rho",
        by="kind",
        **interval_of(metric),
        text="method",
        alt=f"{len(rows)} trained methods, means over seeds. {words}",
        notes=[
            "ρ is low where the embeddings use many directions evenly. A correlation says nothing about a cause.",
            *cut_note(table.column("cut")),
        ],
    )
    return [Figure(chart, board.slicing(most=1000))]


def correlation_words(x: np.ndarray, y: np.ndarray) -> str:
    """Pearson's and Spearman's correlation in a sentence. There is no p value: rows of a study that share a loss or a
    network are no independent draws."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return "There is no correlation to tell: one of the two does not vary."
    pearson, spearman = stats.pearsonr(x, y).statistic, stats.spearmanr(x, y).statistic
    return f"Over these {len(x)} Pearson's correlation is {pearson:.2f}, Spearman's {spearman:.2f}; neither is tested."


def _metrics(material: Material, board: Board) -> list[Part]:
    runs = list({member.run.hash: member for member in board.members if not member.untrained}.values())
    if len(runs) < 4:
        return []
    values = {name: [member.value(name) for member in runs] for name in [*material.stored_metrics(), RHO]}
    varied = {name: numbers for name, numbers in values.items() if None not in numbers and len(set(numbers)) > 1}
    if len(varied) < 2:
        return []
    correlations = np.corrcoef(np.array(list(varied.values()), dtype=float))
    rows = [[a, b, float(correlations[i, j])] for i, a in enumerate(varied) for j, b in enumerate(varied)]
    table = Table(f"metric-correlation{board.suffix}", ["metric", "with", Column("correlation", unit=NUMBER)], rows)
    chart = Heatmap(
        name=f"metric-correlation{board.suffix}",
        title=f"{board.where}Correlation between metrics",
        table=table,
        x="with",
        y="metric",
        value="correlation",
        band=[-1, 1],
        alt=f"Pearson's correlation between {len(varied)} metrics over {len(runs)} trained runs; not tested.",
    )
    return [Figure(chart)]
