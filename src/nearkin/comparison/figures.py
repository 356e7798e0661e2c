"""Numbers -> figures, as PNG and SVG. Nothing is computed here."""

from pathlib import Path

from matplotlib.figure import Figure

from nearkin.comparison.compare import Comparison
from nearkin.comparison.tournament import Standing
from nearkin.comparison.verdicts import untrained_pairs
from nearkin.evaluation.metrics.base import metric_of
from nearkin.statistics.verdict import judge
from nearkin.storage import atomic

INK, SOFT = "#1b1b1b", "#8a8a8a"
KIND = {"ranking": "#1f6f8b", "classification": "#b3541e", "own": INK, "untrained": SOFT}


def label(text: object) -> str:
    """A text as matplotlib shows it, letter by letter: without this, what stands between two $ is mathematics, and most
    names of classes and files are none. Every text that somebody else may have written passes here."""
    return str(text).replace("$", r"\$")


def critical_difference(standing: Standing) -> Figure:
    """Demšar's diagram: every method at its average rank, best on the left; bars join what cannot be told apart."""
    names, average, groups = standing.methods, standing.result.average, standing.groups
    k, half = len(names), (len(names) + 1) // 2
    depth = 0.5 + 0.22 * len(groups)  # the names begin below the bars
    bottom = depth + 0.36 * half
    figure = Figure(figsize=(10, 0.62 * (bottom + 1.8)), dpi=100, layout="constrained")
    axes = figure.subplots()
    margin = min(0.42, 0.011 * (max(map(len, names)) + 6))  # room for the longest name, as a share of the width
    unit = (k - 1) / (1 - 2 * margin)  # the width of the figure, in ranks
    left, right = 1 - margin * unit, k + margin * unit
    axes.set_xlim(left, right)
    axes.set_ylim(-bottom, 1.6)
    axes.axis("off")
    axes.plot([1, k], [0, 0], color=INK, lw=1.2)
    step = -(-k // max(2, int(24 * (1 - 2 * margin))))  # as many numbers as there is room for
    for rank in range(1, k + 1):
        axes.plot([rank, rank], [0, 0.12], color=INK, lw=1)
        if (rank - 1) % step == 0:
            axes.text(rank, 0.2, str(rank), ha="center", va="bottom", fontsize=11)
    gap = 0.012 * unit
    for i, name in enumerate(names):
        first = i < half
        y, end = -(depth + 0.36 * (i if first else k - 1 - i)), (1 - gap if first else k + gap)
        axes.plot([average[i], average[i], end], [0, y, y], color=SOFT, lw=0.9)
        text = label(f"{name}  {average[i]:.2f}" if first else f"{average[i]:.2f}  {name}")
        side = "right" if first else "left"
        axes.text(end - gap / 2 if first else end + gap / 2, y, text, ha=side, va="center", fontsize=11)
    place = dict(zip(names, average, strict=True))
    for i, group in enumerate(groups):
        y, over = -(0.22 + 0.22 * i), 0.004 * unit
        ends = [place[group[0]] - over, place[group[-1]] + over]
        axes.plot(ends, [y, y], color=INK, lw=4, solid_capstyle="round")
    if standing.test is not None:
        cd = standing.test.critical_difference
        axes.plot([1, 1 + min(cd, k - 1)], [0.95, 0.95], color=INK, lw=1.2, marker="|", markersize=9)
        words = f"critical difference {cd:.2f}" if cd <= k - 1 else f"ranks of {standing.seeds} seeds tell no two apart"
        axes.text(1, 1.1, words, ha="left", va="bottom", fontsize=11)
    return figure


def differences(comparison: Comparison) -> Figure:
    """How far every row lies from the one that validation ranks first (without validation: the best trained one), with
    95 % intervals over common seeds and, where they are known, test classes."""
    reference = comparison.reference or comparison.trained[0]
    best = reference.name
    rows = [(method.row, reference.row) for method in comparison.trained if method is not reference]
    family = [*judge(rows, sign=comparison.sign, within=comparison.within), *untrained_pairs(comparison)]
    found = {pair.first.name: pair for pair in family}
    share = metric_of(comparison.metric).is_share
    scale = 100 if share else 1
    methods = comparison.methods
    figure = Figure(figsize=(10, 1.4 + 0.36 * len(methods)), dpi=100, layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.axvline(0, color=SOFT, lw=1)
    for i, method in enumerate(methods):
        colour = KIND.get(method.kind, INK)
        pair = found.get(method.name)
        if pair is None or pair.difference is None:
            axes.plot([0], [-i], "o" if pair is None else "x", color=colour)
            continue
        d = pair.difference
        if d.low is not None and d.high is not None:
            axes.plot([scale * d.low, scale * d.high], [-i, -i], color=colour, lw=2)
        decided = pair.decided and method.trained  # untrained rows stand beside the family
        axes.plot([scale * d.mean], [-i], "o", color=colour, mfc=colour if decided else "white")
    axes.set_yticks([-i for i in range(len(methods))], [label(m.name) for m in methods], fontsize=11)
    axes.tick_params(axis="y", length=0)
    unit = "points of " if share else ""
    over = "seeds and test classes" if any(p.difference and p.difference.classes for p in family) else "common seeds"
    words = f"difference to {label(best)}, {unit}{comparison.metric}\nbars: 95 % over {over}; filled: distinguishable"
    axes.set_xlabel(words, fontsize=12)
    for kind, colour in KIND.items():
        if any(m.kind == kind for m in methods):
            axes.plot([], [], "o", color=colour, label=kind)
    figure.legend(frameon=False, loc="outside upper right", ncols=3, fontsize=11)
    return figure


def save(figure: Figure, path: Path) -> list[Path]:
    """Write NAME.png and NAME.svg, whole or not at all."""
    files = []
    for ending in (".png", ".svg"):
        file = path.with_suffix(ending)
        with atomic(file) as scratch:
            figure.savefig(scratch / file.name)
        files.append(file)
    return files
