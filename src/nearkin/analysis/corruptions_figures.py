"""Figures of corrupted test images."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nearkin.analysis.corrupt import CORRUPTIONS
from nearkin.analysis.figures import canvas
from nearkin.comparison.figures import label

METRIC = "recall@1"


def strip(images: np.ndarray) -> Figure:
    """Examples (n, 10, H, W, 3), the clean image first, then every corruption."""
    n, columns, height, width, _ = images.shape
    gap = max(1, width // 24)
    framed = np.full((n, columns, height + gap, width + gap, 3), 255, np.uint8)
    framed[:, :, gap:, gap:] = images
    mosaic = framed.transpose(0, 2, 1, 3, 4).reshape(n * (height + gap), columns * (width + gap), 3)
    figure = Figure(figsize=(10, n + 0.5), dpi=100)
    axes = figure.add_axes((0, 0, 1, n / (n + 0.5)))
    axes.imshow(mosaic, interpolation="nearest", aspect="auto")
    axes.axis("off")
    for i, name in enumerate(("clean", *CORRUPTIONS)[:columns]):
        figure.text((i + 0.5) / columns, 0.99, name.replace("_", "\n"), ha="center", va="top", fontsize=9)
    return figure


def bars(told: dict[str, Any]) -> Figure:
    """Recall@1 under every corruption, on all images and on the queries alone; a line at the clean one."""
    figure, axes = canvas(6)
    names = list(told["corruptions"])
    for where, words, colour, shift in (
        ("all", "queries and gallery", "#1f77a4", 0.2),
        ("queries", "queries only", "#ee8434", -0.2),
    ):
        values = [100 * told["corruptions"][name][where][METRIC] for name in names]
        axes.barh(np.arange(len(names))[::-1] + shift, values, height=0.38, color=colour, label=words)
    axes.axvline(100 * told["clean"][METRIC], color="#333333", linestyle="--", linewidth=1, label="clean images")
    axes.set_yticks(np.arange(len(names))[::-1], [name.replace("_", " ") for name in names])
    axes.set_xlabel("Recall@1, %")
    axes.legend(frameon=False, fontsize=12, loc="upper center", bbox_to_anchor=(0.5, 1.12), ncols=3)
    return figure


def matrix(methods: dict[str, dict[str, Any]]) -> Figure:
    """The relative drop of Recall@1, methods in rows, corruptions in columns, queries and gallery corrupted."""
    figure, axes = canvas(2.6 + 0.4 * len(methods))
    rows = []
    for own in methods.values():
        cells = own["all"][METRIC]
        clean = cells["clean"] and cells["clean"]["mean"]
        rows.append([100 * (1 - cells[name]["mean"] / clean) if clean else np.nan for name in (*CORRUPTIONS, "mean")])
    values = np.array(rows)
    limit = float(np.nanmax(np.abs(values), initial=1))
    axes.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            axes.text(
                j,
                i,
                f"{value:.0f}",
                ha="center",
                va="center",
                fontsize=11,
                color="white" if abs(value) > 0.6 * limit else "black",
            )
    axes.set_xticks(range(10), [name.replace("_", " ") for name in (*CORRUPTIONS, "mean")], rotation=40, ha="right")
    axes.set_yticks(range(len(methods)), [label(name) for name in methods])
    axes.set_title("Relative drop of Recall@1 under corruption, %", fontsize=15)
    return figure
