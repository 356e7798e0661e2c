"""Numbers -> figures. Nothing is computed here; every figure is 1000 pixels wide."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator


def canvas(height: float) -> tuple[Figure, Axes]:
    """A figure of its own: no display, no global state."""
    figure = Figure(figsize=(10, height), dpi=100, layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.label.set_fontsize(14)
    axes.yaxis.label.set_fontsize(14)
    axes.tick_params(labelsize=12)
    return figure, axes


def prototype_matrix(cosine: np.ndarray, summary: dict[str, Any]) -> Figure:
    """Red is alike, blue is opposite, white is neither; the scale reaches equally far on both sides of 0."""
    figure, axes = canvas(9)
    limit = float(np.abs(cosine).max())
    image = axes.imshow(cosine, cmap="RdBu_r", vmin=-limit, vmax=limit)
    share = f"{100 * summary['own_class_share']:.1f} % are nearest to their own"
    means = f"mean cosine {summary['diagonal']:.3f} on the diagonal, {summary['off_diagonal']:.3f} elsewhere"
    axes.set_title(f"Learned means against true class means: {share}\n{means}", fontsize=15)
    axes.set_xlabel("true mean of class (its number in prototypes.csv)")
    axes.set_ylabel("learned mean of class")
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(10, integer=True))
    bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.02)
    bar.set_label("cosine", fontsize=14)
    bar.ax.tick_params(labelsize=12)
    return figure


def prototype_spread(spread: np.ndarray, size: np.ndarray, summary: dict[str, Any]) -> Figure:
    """One point per class: its spread, and the width of its learned distribution."""
    figure, axes = canvas(7.5)
    axes.scatter(spread, size, s=45, alpha=0.75, edgecolors="white", linewidths=0.6)
    if summary["undefined"]:
        found = f"correlation undefined: {summary['undefined']}"
    else:
        found = f"Pearson {summary['pearson']:.2f}, Spearman {summary['spearman']:.2f}"
    axes.set_title(
        f"Width of the learned distributions against the spread of their classes\n{found} (n = {summary['n']} classes)",
        fontsize=15,
    )
    axes.set_xlabel("mean squared distance of a class's embeddings to its learned mean")
    axes.set_ylabel("width of its learned distribution, ‖Q‖ (Frobenius)")
    axes.ticklabel_format(useOffset=False)
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    return figure
