"""The metric against the spectral decay of the training embeddings, and how metrics go together over runs."""

import numpy as np
from scipy import stats

from nearkin.report.base import Chart, Part, Section, Table
from nearkin.report.material import Board, Material, called, interval_of

RHO = "train.rho"


def section(material: Material) -> Section | None:
    """None where there is nothing to correlate."""
    parts = [part for board in material.boards for part in (*_rho(material, board), *_metrics(material, board))]
    if not parts:
        return None
    return Section(
        "correlations",
        "What goes together",
        "Spectral decay of the training embeddings against the result, and metrics against each other.",
        parts,
    )


def _rho(material: Material, board: Board) -> list[Part]:
    metric, rows = material.metric, []
    for method in board.methods:
        rho = material.interval(method.members, RHO)
        if method.kind != "untrained" and rho is not None and method.interval is not None and metric != RHO:
            found = method.interval
            rows.append([method.name, method.kind, rho.mean, found.mean, found.low, found.high])
    if len(rows) < 3:
        return []
    table = Table(f"rho{board.suffix}", ["method", "kind", "rho", metric, "low", "high"], rows)
    x, y = np.array(table.column("rho")), np.array(table.column(metric))
    words = correlation_words(x, y)
    return [
        Chart(
            f"rho{board.suffix}",
            f"{board.where}{called(metric)} against spectral decay ρ",
            table,
            form="points",
            x="rho",
            by="kind",
            **interval_of(metric),
            text="method",
            x_title="ρ of the training embeddings",
            alt=f"{len(rows)} trained methods, means over seeds. {words}",
            notes=[
                "ρ is low where the embeddings use many directions evenly. A correlation says nothing about a cause."
            ],
        )
    ]


def correlation_words(x: np.ndarray, y: np.ndarray) -> str:
    """Pearson's and Spearman's correlation in a sentence."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return "There is no correlation to tell: one of the two does not vary."
    pearson, spearman = stats.pearsonr(x, y), stats.spearmanr(x, y)
    told = f"Pearson's correlation is {pearson.statistic:.2f} (p = {pearson.pvalue:.2g})"
    return f"{told}, Spearman's {spearman.statistic:.2f}; n = {len(x)}."


def _metrics(material: Material, board: Board) -> list[Part]:
    records = [material.record(m) for method in board.methods for m in method.members if m.done and not m.untrained]
    records = list({record.member.run.hash: record for record in records}.values())
    names = [m for m in [*material.stored_metrics(), RHO] if all(record.value(m) is not None for record in records)]
    values = np.array([[record.value(m) for m in names] for record in records], dtype=float)
    if len(records) < 4:
        return []
    keep = [i for i in range(len(names)) if np.ptp(values[:, i]) > 0]
    if len(keep) < 2:
        return []
    found = np.corrcoef(values[:, keep].T)
    kept = [names[i] for i in keep]
    rows = [[a, b, float(found[i, j])] for i, a in enumerate(kept) for j, b in enumerate(kept)]
    table = Table(f"metric-correlation{board.suffix}", ["metric", "with", "correlation"], rows)
    return [
        Chart(
            f"metric-correlation{board.suffix}",
            f"{board.where}Correlation between metrics",
            table,
            form="heatmap",
            x="with",
            y="metric",
            value="correlation",
            more={"band": [-1, 1]},
            alt=f"Pearson's correlation between {len(kept)} metrics over {len(records)} trained runs.",
        )
    ]
