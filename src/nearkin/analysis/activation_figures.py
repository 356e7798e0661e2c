"""`Activation` as figures. Nothing is computed here."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from nearkin.comparison.figures import label

if TYPE_CHECKING:
    from nearkin.analysis.activation import Activation


def _axes(lines: int, columns: int) -> tuple[Figure, Any]:
    figure = Figure(figsize=(1.6 * columns, 1.6 * lines + 0.6), dpi=100, layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    return figure, axes


def _over(ax: Any, pixels: np.ndarray, values: np.ndarray, **colours: Any) -> None:
    """A coarse map over a grey image, cell by cell: it is no finer than it looks."""
    side = pixels.shape[:2]
    ax.imshow(pixels.mean(2), cmap="gray", vmin=0, vmax=255)
    ax.imshow(values, extent=(-0.5, side[1] - 0.5, side[0] - 0.5, -0.5), alpha=0.6, interpolation="nearest", **colours)


def channels(found: "Activation") -> Figure:
    """One row per image: the image, then three channels of each run."""
    each = found.seen[0].channels.shape[1]
    figure, axes = _axes(len(found.image_rows), 1 + each * len(found.seen))
    for i in range(len(found.image_rows)):
        axes[i, 0].imshow(found.seen[0].pixels[i])
        for r, seen in enumerate(found.seen):
            for k in range(each):
                ax = axes[i, 1 + each * r + k]
                _over(ax, seen.pixels[i], seen.maps[i, k], cmap="magma")
                above = f"{label(seen.name.replace('_', ' '))}\n" if i == 0 and k == 0 else "\n" if i == 0 else ""
                ax.set_title(f"{above}{seen.channels[i, k]}", fontsize=9)
    return figure


def pairs(found: "Activation") -> Figure:
    """One row per pair: the two images, then for each run what their places add to the similarity: red adds, blue takes
    away; one scale per pair and run."""
    figure, axes = _axes(len(found.pairs), 2 + 2 * len(found.seen))
    for q in range(len(found.pairs)):
        for side in (0, 1):
            axes[q, side].imshow(found.seen[0].pair_pixels[q, side])
            axes[q, side].set_title(label(found.classes[int(found.pairs[q, side])]), fontsize=8)
        for r, seen in enumerate(found.seen):
            limit = float(np.abs(seen.regions[q]).max()) or 1.0
            for side in (0, 1):
                ax = axes[q, 2 + 2 * r + side]
                _over(ax, seen.pair_pixels[q, side], seen.regions[q, side], cmap="RdBu_r", vmin=-limit, vmax=limit)
            name = f"{label(seen.name.replace('_', ' '))}\n" if q == 0 else ""
            axes[q, 2 + 2 * r].set_title(f"{name}cosine {seen.cosine[q]:.2f}", fontsize=9)
    return figure
