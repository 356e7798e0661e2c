"""A chart as matplotlib draws it, for files. Nothing is computed here."""

from typing import Any

from matplotlib.figure import Figure

from nearkin.comparison.figures import label
from nearkin.pages.base import Chart
from nearkin.pages.interactive import bars_at, groups, names_of, series

INK, SOFT = "#1b1b1b", "#8a8a8a"
COLOURS = ("#1f6f8b", "#b3541e", "#4a7c3a", "#8b3a62", "#7a6a1f", "#4b4e9e", "#a33b3b", "#2f7f6f", "#6b6b6b", "#9a5fb0")


def draw(chart: Chart) -> Figure:
    """The figure of a chart."""
    assert chart.table is not None
    rows = len(dict.fromkeys(chart.table.column(chart.y if chart.form in ("heatmap", "ranks") else chart.x)))
    tall = chart.sideways or chart.form in ("heatmap", "ranks")
    figure = Figure(figsize=(10, 1.6 + 0.32 * rows if tall else 5), dpi=100, layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    DRAWN[chart.form](axes, chart)
    if chart.log:
        axes.set_xscale("log")
    x, y = chart.x_title or chart.x, chart.y_title or chart.y
    if chart.form == "heatmap":
        x = y = ""
    axes.set_xlabel(label(y if chart.sideways else x))
    axes.set_ylabel("" if chart.sideways or chart.form == "ranks" else label(y))
    if chart.more.get("line") is not None:
        axes.axhline(chart.more["line"], color=SOFT, lw=1, ls=":")
    if chart.by and 1 < len(groups(chart)) <= 40 and chart.form != "heatmap":
        figure.legend(frameon=False, loc="outside lower center", ncols=3, fontsize=9)
    return figure


def _lines(axes: Any, chart: Chart) -> None:
    for i, (group, rows) in enumerate(series(chart)):
        colour = COLOURS[i % len(COLOURS)]
        x = [row[chart.x] for row in rows]
        style = ("-", "--", ":")[i // len(COLOURS) % 3]
        axes.plot(x, [r[chart.y] for r in rows], style, color=colour, marker="o", ms=3, label=label(group or ""))
        if chart.low and chart.high:
            inside = [r for r in rows if r[chart.low] is not None and r[chart.high] is not None]
            axes.fill_between(
                [r[chart.x] for r in inside],
                [r[chart.low] for r in inside],
                [r[chart.high] for r in inside],
                color=colour,
                alpha=0.15,
                lw=0,
            )


def _bars(axes: Any, chart: Chart) -> None:
    found = series(chart)
    names = names_of(chart)
    place = {name: i for i, name in enumerate(names)}
    width = 0.8 / len(found)
    for i, (group, rows) in enumerate(found):
        at = [place[row[chart.x]] - 0.4 + width * (i + 0.5) for row in rows]
        values = [row[chart.y] for row in rows]
        colour, name = COLOURS[i % len(COLOURS)], label(group or "")
        (axes.barh if chart.sideways else axes.bar)(at, values, width, color=colour, label=name)
        if chart.low and chart.high:
            for a, row in zip(at, rows, strict=True):
                if row[chart.low] is not None and row[chart.high] is not None:
                    ends = [row[chart.low], row[chart.high]]
                    axes.plot(*((ends, [a, a]) if chart.sideways else ([a, a], ends)), color=INK, lw=1.2)
    labels = [label(name) for name in names]
    if chart.sideways:
        axes.set_yticks(range(len(names)), labels)
        axes.invert_yaxis()
    else:
        axes.set_xticks(
            range(len(names)), labels, rotation=30 if len(names) > 6 else 0, ha="right" if len(names) > 6 else "center"
        )


def _points(axes: Any, chart: Chart) -> None:
    for i, (group, rows) in enumerate(series(chart)):
        colour = COLOURS[i % len(COLOURS)]
        x, y = [row[chart.x] for row in rows], [row[chart.y] for row in rows]
        axes.plot(x, y, "o", color=colour, label=label(group or ""))
        if chart.low and chart.high:
            for row in rows:
                if row[chart.low] is not None and row[chart.high] is not None:
                    axes.plot([row[chart.x]] * 2, [row[chart.low], row[chart.high]], color=colour, lw=1.2)
        if chart.text and len(rows) <= 30:
            for row in rows:
                axes.annotate(
                    label(row[chart.text]),
                    (row[chart.x], row[chart.y]),
                    xytext=(5, 3),
                    textcoords="offset points",
                    fontsize=8,
                )


def _dots(axes: Any, chart: Chart) -> None:
    found = series(chart)
    names = names_of(chart)
    for i, (group, rows) in enumerate(found):
        colour, at = COLOURS[i % len(COLOURS)], [names.index(row[chart.x]) for row in rows]
        axes.plot([row[chart.y] for row in rows], at, "o", color=colour, label=label(group or ""))
        for y, row in zip(at, rows, strict=True):
            if chart.low and chart.high and row[chart.low] is not None and row[chart.high] is not None:
                axes.plot([row[chart.low], row[chart.high]], [y, y], color=colour, lw=1.5)
    axes.set_yticks(range(len(names)), [label(name) for name in names])
    axes.invert_yaxis()


def _heatmap(axes: Any, chart: Chart) -> None:
    assert chart.table is not None
    records = chart.table.records()
    xs, ys = (list(dict.fromkeys(r[c] for r in records)) for c in (chart.x, chart.y))
    found = {(r[chart.x], r[chart.y]): r[chart.value] for r in records}  # type: ignore[index]
    z = [[float("nan") if found.get((x, y)) is None else found[x, y] for x in xs] for y in ys]
    low, high = chart.more.get("band", (None, None))
    axes.imshow(z, cmap="BrBG" if low is not None and low < 0 else "Blues", vmin=low, vmax=high, aspect="auto")
    for j, row in enumerate(z if len(xs) <= 14 else []):
        for i, value in enumerate(row):
            if value == value:
                axes.text(
                    i,
                    j,
                    f"{value:.2f}",
                    ha="center",
                    va="center",
                    fontsize=9,
                    color="white" if abs(value) > 0.7 else INK,
                )
    axes.set_xticks(range(len(xs)), [label(x) for x in xs], rotation=30, ha="right")
    axes.set_yticks(range(len(ys)), [label(y) for y in ys])


def _ranks(axes: Any, chart: Chart) -> None:
    assert chart.table is not None
    names, average = chart.table.column(chart.y), chart.table.column(chart.x)
    k = len(names)
    axes.plot(average, range(k), "o", color=COLOURS[0])
    for bar, group in zip(bars_at(chart), chart.more.get("groups", []), strict=True):
        axes.plot([bar, bar], [names.index(group[0]) - 0.3, names.index(group[-1]) + 0.3], color=INK, lw=3)
    difference = chart.more.get("difference")
    if difference is not None:
        axes.plot([1, 1 + min(difference, k - 1)], [-1, -1], color=INK, lw=1.5, marker="|")
        axes.text(1, -1.15, f"critical difference {difference:.2f}", va="bottom")
    axes.set_ylim(k - 0.4, -1.9)
    axes.set_yticks(range(k), [label(name) for name in names])
    axes.grid(axis="x", color="#e5e5e5")


DRAWN = {"lines": _lines, "bars": _bars, "points": _points, "dots": _dots, "heatmap": _heatmap, "ranks": _ranks}
