"""What the toys print and draw: a table beside earlier figures, and a picture of each toy.

In the picture only the angle is the embedding. The classes sit on rings of their own, training inside the circle and
test outside, because points of one circle would hide each other. Each panel is turned so that the mean training point
is on top, and mirrored, where needed, so that the first training class is on the left. Below, inside the circle, is the
spectrum: the two singular values of the training set as shares of their sum.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor

TRAIN = ("#0b3954", "#1f77a4", "#2ca58d", "#9ac26b")
TEST = ("#7a1f2b", "#d1495b", "#ee8434", "#f2c14e")
INSIDE = (0.92, 0.84, 0.76, 0.68)
OUTSIDE = (1.08, 1.16, 1.24, 1.32)
INK, PALE = "#333333", "#c8c8c8"


# The same medians from an independent re-implementation with 30 seeds of its own, where it kept them: train spread,
# test spread, share of the first singular value, ρ, test 1-NN.
NaN = math.nan
EARLIER = {
    "diagonal": [
        (6.0, 3.1, 0.897, 0.50, 0.80),
        (38.9, 12.7, 0.566, 0.009, 0.75),
        (32.0, 9.6, 0.603, 0.022, 0.77),
        (6.0, 3.0, 0.896, 0.49, 0.80),
        (6.6, 2.9, 0.885, 0.45, 0.77),
    ],
    "vertical": [
        (NaN, 3.9, NaN, 0.45, 0.13),
        (NaN, 19.0, NaN, 0.025, 0.18),
        (NaN, NaN, NaN, NaN, NaN),
        (NaN, NaN, NaN, NaN, NaN),
        (NaN, 3.8, NaN, 0.44, 0.13),
    ],
}


def table(name: str, labels: list[str], results: np.ndarray) -> None:
    """`results`: (modes, seeds, 5). Medians over the seeds, in brackets the earlier ones."""
    print(f"\n{name} toy, medians of {results.shape[1]} seeds (in brackets: an earlier re-implementation)\n")
    print("| mode | train spread ° | test spread ° | σ₁ share | σ₂ share | ρ | test 1-NN |")
    print("|---|---|---|---|---|---|---|")
    for label, ours, earlier in zip(labels, np.median(results, axis=1), EARLIER[name], strict=True):
        both = zip([*ours[:3], 1 - ours[2], *ours[3:]], [*earlier[:3], 1 - earlier[2], *earlier[3:]], strict=True)
        forms = (".1f", ".1f", ".3f", ".3f", ".3f", ".2f")
        cells = [f"{a:{f}} ({'–' if math.isnan(b) else f'{b:{f}}'})" for (a, b), f in zip(both, forms, strict=True)]
        print(f"| {label} | {' | '.join(cells)} |")


def draw(name: str, panels: list[tuple[str, Any, Any]], folder: Path) -> Path:
    """`panels`: label, Run and Result of each mode (five, beside the data)."""
    figure = Figure(figsize=(10.5, 7.4), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    data, *circles = figure.subplots(2, 3).flat
    _plane(data, panels[0][1])
    for axes, (label, run, result) in zip(circles, panels, strict=True):
        _circle(axes, label, run, result)
    figure.suptitle(f"The {name} toy", fontsize=14, color=INK, y=0.98)
    figure.legend(
        handles=_legend(),
        loc="lower center",
        ncols=8,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        handletextpad=0.1,
        columnspacing=1.4,
    )
    figure.subplots_adjust(left=0.05, right=0.98, top=0.87, bottom=0.06, wspace=0.06, hspace=0.2)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"toy_{name}.png"
    figure.savefig(path)
    return path


def _plane(axes: Axes, run: Any) -> None:
    for c in range(4):
        of = run.labels == c
        axes.plot(*run.train_x[of].T, "o", color=TRAIN[c], markersize=4.2)
        axes.plot(*run.test_x[of].T, "^", color=TEST[c], markersize=4.5)
    axes.set_title("the data", fontsize=11, color=INK)
    axes.set(xlim=(0, 1.15), ylim=(0, 1.15), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1], aspect="equal")
    axes.tick_params(labelsize=8, color=PALE, labelcolor=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(PALE)


def _circle(axes: Axes, label: str, run: Any, result: Any) -> None:
    theta = np.linspace(0, 2 * np.pi, 361)
    axes.plot(np.cos(theta), np.sin(theta), color=PALE, linewidth=1.2, zorder=0)
    ahead = run.train_z.mean(0)
    first = _angles(run.train_z[run.labels == 0].mean(0, keepdim=True), ahead)
    for c in range(4):
        of = run.labels == c
        for z, radius, colour, marker in (
            (run.train_z[of], INSIDE[c], TRAIN[c], "o"),
            (run.test_z[of], OUTSIDE[c], TEST[c], "^"),
        ):
            angle = np.pi / 2 + _angles(z, ahead) * np.where(first < 0, -1, 1)
            x, y = radius * np.cos(angle), radius * np.sin(angle)
            axes.plot(x, y, marker, color=colour, markersize=4.8, markeredgecolor="white", markeredgewidth=0.3)
    words = (
        f"train spread {result.train_spread:.1f}°\ntest spread {result.test_spread:.1f}°\n"
        f"ρ = {result.rho:.3f}\ntest 1-NN {result.nearest:.2f}"
    )
    axes.text(0, 0.08, words, ha="center", va="center", fontsize=10, color=INK, linespacing=1.4)
    _spectrum(axes, result.share)
    axes.set_title(label.replace(": ", ":\n"), fontsize=11, color=INK)
    axes.set(xlim=(-1.38, 1.38), ylim=(-1.1, 1.4), aspect="equal")
    axes.axis("off")


def _spectrum(axes: Axes, share: float) -> None:
    """The two singular values of the training set as shares of their sum: level is a flat spectrum."""
    for x, value, name in ((-0.13, share, "σ₁"), (0.13, 1 - share, "σ₂")):
        axes.bar(x, 0.42 * value, width=0.2, bottom=-0.9, color=TRAIN[1])
        axes.text(x, -0.88 + 0.42 * value, name, ha="center", va="bottom", fontsize=9, color=INK)
    axes.plot([-0.27, 0.27], [-0.9, -0.9], color=PALE, linewidth=1)


def _angles(z: Tensor, ahead: Tensor) -> np.ndarray:
    """From `ahead`, in (-π, π]."""
    across = ahead[0] * z[:, 1] - ahead[1] * z[:, 0]
    return np.arctan2(across.numpy(), (z @ ahead).numpy())


def _legend() -> list[Line2D]:
    kinds = (("train", TRAIN, "o"), ("test", TEST, "^"))
    return [
        Line2D([], [], color=colour, marker=marker, linestyle="", markersize=6, label=f"{kind} {c + 1}")
        for kind, colours, marker in kinds
        for c, colour in enumerate(colours)
    ]
