"""`Saliency` as figures. Nothing is computed here."""

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from nearkin.comparison.figures import label

if TYPE_CHECKING:
    from nearkin.analysis.saliency import Saliency

MOST = 12  # methods side by side


def panel(found: "Saliency") -> Figure:
    """One row per image: the image, then its map for the first run of every method."""
    groups, places = found.groups[:MOST], [own[0] for own in found.places[:MOST]]
    count = found.maps.shape[1]
    columns = len(groups) + (found.pixels is not None)
    figure = Figure(figsize=(1.5 * columns, 1.5 * count + 0.5), dpi=100, layout="constrained")
    axes = figure.subplots(count, columns, squeeze=False)
    for each in axes.flat:
        each.axis("off")
    for row in range(count):
        shown = list(axes[row])
        if found.pixels is not None:
            shown.pop(0).imshow(found.pixels[row])
        for ax, place in zip(shown, places, strict=True):
            ax.imshow(found.maps[place, row].astype(np.float32), cmap="magma", vmin=0, vmax=1)
    titles = [*(["image"] if found.pixels is not None else []), *(group.name for group in groups)]
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(label(fill(title.replace("_", " "), 16)), fontsize=10)
    return figure


def agreement(found: "Saliency") -> Figure:
    """Correlation and divergence of methods against methods; the diagonal is that of two seeds."""
    names = [label(group.name.replace("_", " ")) for group in found.groups]
    size = max(4.5, 0.75 * len(names) + 2)
    figure = Figure(figsize=(2 * size, size), dpi=100, layout="constrained")
    parts = (
        ("Pearson correlation, %", found.correlation, "viridis"),
        ("Jensen-Shannon divergence, nats x 100", found.divergence, "viridis_r"),
    )
    for ax, (title, cells, colours) in zip(figure.subplots(1, 2), parts, strict=True):
        values = np.full((len(names), len(names)), np.nan)
        for (i, j), cell in cells.items():
            values[i, j] = values[j, i] = np.nan if cell.mean is None else 100 * cell.mean
        ax.imshow(values, cmap=colours)
        middle = np.nanmean(values) if np.isfinite(values).any() else 0
        for i in range(len(names)):
            for j in range(len(names)):
                if np.isfinite(values[i, j]):
                    dark = (values[i, j] < middle) == (colours == "viridis")
                    ax.text(
                        j,
                        i,
                        f"{values[i, j]:.1f}",
                        ha="center",
                        va="center",
                        fontsize=9,
                        color="white" if dark else "black",
                    )
        ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
        ax.set_yticks(range(len(names)), names)
        ax.set_title(f"{title}\ndiagonal: two seeds of one method", fontsize=12)
    return figure
