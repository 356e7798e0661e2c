"""XOR: no linear metric of the plane makes both classes near, a kernel does.

    python examples/toy_xor.py --out docs/images       # seconds

Opposite corners of a square share a class (figure 2 of Psomas 2020). The general model with relative triplets learns a
metric in the plane and in the coordinates of a polynomial kernel. Each is judged by the share of points whose nearest
point at another corner is of their class, and beside it stands the best that any of 4,000 linear metrics reaches. What
is seen: docs/toys.md.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from rich.console import Console

from nearkin.classical import GeneralMetric, KernelMap

matplotlib.use("agg")
import matplotlib.pyplot as plt

CORNERS = np.array([[-1.0, -1], [1, 1], [-1, 1], [1, -1]])
EACH = 25  # points of a corner
NOISE = 0.12
COLOURS = np.array(["#0072b2", "#d55e00"])  # for the colour-blind too
MARKERS = "os"


def points(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (N, 2), their classes and their corners (N,)."""
    corner = np.repeat(np.arange(4), EACH)
    x = CORNERS[corner] + NOISE * np.random.default_rng(seed).normal(size=(4 * EACH, 2))
    return x, corner // 2, corner


def share(z: np.ndarray, y: np.ndarray, corner: np.ndarray) -> float:
    """Of the points (N, d): how many have a point of their class as the nearest one at another corner?"""
    d = np.square(z[:, None] - z).sum(2)
    d[corner[:, None] == corner] = np.inf
    return float((y[d.argmin(1)] == y).mean())


def within_and_between(z: np.ndarray, y: np.ndarray) -> float:
    """The mean squared distance within classes, as a share of that between them."""
    d = np.square(z[:, None] - z).sum(2)
    same = y[:, None] == y
    return float(d[same].mean() / d[~same].mean())


def best_linear(x: np.ndarray, y: np.ndarray, corner: np.ndarray) -> tuple[float, float]:
    """The largest share and the smallest ratio of 4,000 metrics: two weights along axes of every angle."""
    shares, ratios = [], []
    for angle in np.linspace(0, np.pi, 100, endpoint=False):
        axes = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        for weight in np.linspace(0, 1, 40):
            z = x @ axes.T * [1, weight]
            shares.append(share(z, y, corner))
            ratios.append(within_and_between(z, y))
    return max(shares), min(ratios)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--out", type=Path, default=Path("."))
    folder = parser.parse_args().out
    x, y, corner = points()
    learner = GeneralMetric(relations="triplets")
    linear = learner.fit(x, y).transform(x)
    kernel = KernelMap(kernel="polynomial", degree=2, constant=1.0).fit(x)
    curved = learner.fit(kernel.transform(x), y).transform(kernel.transform(x))
    if linear.shape[1] == 1:
        linear = np.concatenate([linear, np.zeros_like(linear)], 1)
    most, least = best_linear(x, y, corner)
    panels = {"the plane": x, "a learned linear metric": linear, "learned with a polynomial kernel": curved[:, :2]}
    say = Console(highlight=False).print
    full = {"the plane": x, "a learned linear metric": linear, "learned with a polynomial kernel": curved}
    for name, z in full.items():
        say(
            f"{name}: nearest of another corner in class {share(z, y, corner):.2f}, "
            f"within / between {within_and_between(z, y):.2f}"
        )
    say(f"best of 4,000 linear metrics: {most:.2f} and {least:.2f}")
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.5), layout="constrained")
    for axis, (name, z) in zip(axes, panels.items(), strict=True):
        for label in (0, 1):
            side = y == label
            axis.scatter(
                *z[side].T,
                s=22,
                c=COLOURS[label],
                marker=MARKERS[label],
                label=f"class {label + 1}",
                edgecolors="white",
                linewidths=0.4,
            )
        axis.set_title(name, fontsize=11)
        axis.set_aspect("equal", adjustable="datalim")
        axis.tick_params(labelsize=8)
    axes[0].legend(loc="center", fontsize=8, frameon=False)
    figure.savefig(folder / "toy_xor.png", dpi=110)


if __name__ == "__main__":
    main()
