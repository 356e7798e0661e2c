"""Figures of spectra, and of ρ and densities against the test."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from nearkin.analysis.base import Table
from nearkin.comparison.figures import label

MARKS = ("o", "^", "s", "D", "v", "P", "X", "*")


def curves(spectra: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Singular values of all training embeddings, and of a class on average, each as a share of their sum."""
    figure = Figure(figsize=(10, 5.2), dpi=100, layout="constrained")
    for i, (axes, title) in enumerate(
        zip(figure.subplots(1, 2), ("all training images", "a class, mean over classes"), strict=True)
    ):
        for name, both in spectra.items():
            values = both[i][both[i] > 0]
            numbers = np.arange(1, len(values) + 1)
            axes.plot(numbers, values / values.sum(), marker=".", linewidth=1.4, label=label(name))
        axes.set_yscale("log")
        axes.set_title(title, fontsize=14)
        axes.set_xlabel("number of the singular value", fontsize=13)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("share of the sum", fontsize=13)
    if len(spectra) > 1:
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=10
        )
    return figure


def against_test(table: Table) -> Figure:
    """One point per run: ρ and densities against Recall@1; the mark tells the regulariser, the colour the method.
    Untrained networks lie far away from all others: they are left out where there are others."""
    header, rows = table
    runs = [dict(zip(header, row, strict=True)) for row in rows]
    runs = [run for run in runs if run["kind"] != "untrained"] or runs
    figure = Figure(figsize=(10, 7.6), dpi=100, layout="constrained")
    names = list(dict.fromkeys(run["method"].split(",")[0] for run in runs))
    kinds = list(dict.fromkeys(run["regulariser"] for run in runs))
    words = {"rho": "ρ", "pi_ratio": "π intra / π inter", "pi_intra": "π intra", "pi_inter": "π inter"}
    for axes, (key, title) in zip(figure.subplots(2, 2).flat, words.items(), strict=True):
        for run in runs:
            if run["recall@1"] is None:
                continue
            colour = f"C{names.index(run['method'].split(',')[0]) % 10}"
            axes.plot(
                run[key],
                100 * run["recall@1"],
                MARKS[kinds.index(run["regulariser"]) % len(MARKS)],
                color=colour,
                alpha=0.8,
                markersize=7,
            )
        axes.set_xlabel(title, fontsize=13)
        axes.set_ylabel("test Recall@1, %", fontsize=13)
        axes.spines[["top", "right"]].set_visible(False)
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=f"C{i % 10}", marker="o", linestyle="", label=label(name)) for i, name in enumerate(names)
    ]
    if len(kinds) > 1:
        handles += [
            Line2D([], [], color="#333333", marker=MARKS[i % len(MARKS)], linestyle="", label=label(kind))
            for i, kind in enumerate(kinds)
        ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=10)
    return figure
