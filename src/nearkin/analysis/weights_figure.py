"""The curves of `Weights` as one figure of small multiples. Nothing is computed here."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from nearkin.comparison.figures import label

if TYPE_CHECKING:
    from nearkin.analysis.weights import Curve

COLOURS = {"positive": "#1f6f8b", "negative": "#b3541e"}
COLUMNS = 5


def multiples(curves: Sequence["Curve"], grid: np.ndarray) -> Figure:
    """One small figure per loss: its weights divided by the largest, whose value stands in the title."""
    lines = -(-len(curves) // COLUMNS)
    figure = Figure(figsize=(14, 2.3 * lines + 0.8), dpi=100, layout="constrained")
    axes = figure.subplots(lines, COLUMNS, squeeze=False, sharex=True, sharey=True)
    for ax in axes.flat[len(curves) :]:
        ax.axis("off")
    for ax, curve in zip(axes.flat, curves, strict=False):
        values = np.concatenate(list(curve.weights.values()))
        finite = np.abs(values[np.isfinite(values)])
        largest = float(finite.max()) if len(finite) and finite.max() > 0 else 1.0
        for kind, own in curve.weights.items():
            ax.plot(grid, own / largest, color=COLOURS[kind], lw=1.8)
        ax.axhline(0, color="#8a8a8a", lw=0.6)
        ax.set_title(f"{label(curve.name.replace('_', ' '))}  (x {largest:.2g})", fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=9)
    for ax in axes[-1]:
        ax.set_xlabel("similarity s of the pair", fontsize=10)
    for ax in axes[:, 0]:
        ax.set_ylabel("∂L/∂s / largest", fontsize=10)
    title = "Weight of a positive pair (blue, below 0: attracts) and of a negative pair (orange, above 0: repels)"
    figure.suptitle(title, fontsize=13)
    return figure
