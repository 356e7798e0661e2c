"""Figures of how alike runs are."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nearkin.analysis.figures import canvas
from nearkin.comparison.figures import label


def levels(told: Mapping[str, Mapping[str, Any]], measures: Mapping[str, str]) -> Figure:
    """Level by level: pairs of seeds and pairs of methods, and below them their difference with its interval."""
    figure = Figure(figsize=(10, 7.2), dpi=100, layout="constrained")
    places = np.arange(len(told))
    for column, (measure, words) in enumerate(measures.items()):
        top, bottom = (figure.add_subplot(2, 2, 2 * row + column + 1) for row in (0, 1))
        own = [level[measure] for level in told.values()]
        for key, legend, colour in (
            ("seeds", "two seeds of one method", "#1f77a4"),
            ("losses", "two methods", "#ee8434"),
        ):
            values = [np.nan if o[key] is None else o[key] for o in own]
            top.plot(places, values, marker="o", color=colour, label=legend)
        top.set_title(words, fontsize=14)
        known = [i for i in places if own[i]["low"] is not None]
        differences = np.array([own[i]["difference"] for i in known])
        spans = np.array([[own[i]["difference"] - own[i]["low"], own[i]["high"] - own[i]["difference"]] for i in known])
        if len(known):
            bottom.errorbar(known, differences, spans.T, marker="o", color="#333333", capsize=3)
        bottom.axhline(0, color="#b8c4cc", linewidth=1)
        bottom.set_title("difference, 95 % interval over classes, these models", fontsize=13)
        for axes in (top, bottom):
            axes.set_xticks(places, [label(level) for level in told], rotation=40, ha="right")
            axes.spines[["top", "right"]].set_visible(False)
        top.legend(frameon=False, fontsize=11)
    return figure


def matrix(values: np.ndarray, names: list[str]) -> Figure:
    """CKA of all pairs of runs at the embedding."""
    figure, axes = canvas(3 + 0.32 * len(names))
    shown = [label(name) for name in names]
    image = axes.imshow(values, cmap="viridis", vmax=1, aspect="auto")
    axes.set_xticks(range(len(names)), shown, rotation=60, ha="right", fontsize=9)
    axes.set_yticks(range(len(names)), shown, fontsize=9)
    axes.set_title("Linear CKA at the embedding", fontsize=15)
    figure.colorbar(image, ax=axes, fraction=0.046, pad=0.02)
    return figure
