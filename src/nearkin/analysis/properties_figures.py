"""Figures of the properties that neighbours share."""

from typing import Any

import numpy as np
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure

from nearkin.analysis.figures import canvas
from nearkin.analysis.nr_precision import BAR
from nearkin.comparison.figures import label


def bars(properties: dict[str, dict[str, Any]]) -> Figure:
    """One bar per property; a mark where the class alone would bring it, a line at the bar of significance."""
    order = sorted(properties, key=lambda name: properties[name]["nr_precision"])
    figure, axes = canvas(1.6 + 0.42 * len(order))
    values = [properties[name]["nr_precision"] for name in order]
    axes.barh(range(len(order)), values, color=["#1f77a4" if value >= BAR else "#b8c4cc" for value in values])
    shown = [(properties[name]["by_class"], i) for i, name in enumerate(order)]
    known = [(value, i) for value, i in shown if value is not None]
    if known:
        axes.plot(
            *zip(*known, strict=True),
            "|",
            color="#d1495b",
            markersize=14,
            markeredgewidth=2.5,
            label="shuffled within classes",
        )
    axes.set_yticks(range(len(order)), [label(name) for name in order])
    axes.axvline(BAR, color="#333333", linewidth=1, linestyle="--", label=f"{BAR}")
    axes.set_xscale("symlog", linthresh=BAR)
    axes.set_xlabel("normalised R-precision")
    axes.legend(frameon=False, fontsize=12, loc="lower right")
    return figure


def matrix(methods: dict[str, dict[str, Any]], names: list[str]) -> Figure:
    """Methods in rows, properties in columns, the value in each cell."""
    found = [[own["properties"].get(name, {}).get("mean", np.nan) for name in names] for own in methods.values()]
    values = np.array(found)
    figure, axes = canvas(2.2 + 0.4 * len(methods))
    limit = float(np.nanmax(np.abs(values)))
    axes.imshow(values, cmap="RdBu_r", norm=SymLogNorm(BAR, vmin=-limit, vmax=limit), aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            axes.text(
                j,
                i,
                f"{value:.1f}",
                ha="center",
                va="center",
                fontsize=11,
                color="white" if abs(value) > 0.4 * limit else "black",
            )
    axes.set_xticks(range(len(names)), [label(name) for name in names], rotation=40, ha="right")
    axes.set_yticks(range(len(methods)), [label(name) for name in methods])
    axes.set_title(f"Normalised R-precision (chance: 0; beyond {BAR}: not chance)", fontsize=15)
    return figure
