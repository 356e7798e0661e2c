"""Charts of points on two axes: lines, bars, points, dots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from nearkin.present.chart import COLOURS, INK, ROW, Chart, escaped, label, texts
from nearkin.units import as_number

SERIES = 10  # colours of lines; then they begin again
SYMBOLS = (("circle", "o"), ("triangle-up", "^"), ("square", "s"), ("diamond", "D"))  # when the colours begin again
NAMED = 14  # so many points have their names beside them; more would cover each other


@dataclass(kw_only=True)
class Lines(Chart):
    """One line for every value of `by`, with a band where there are intervals.

    Parameters:
        visible: so many lines are drawn; a click on its name shows one of the others. None: all.
        loose: the groups whose points are not joined.
    """

    visible: int | None = None
    loose: Sequence[str] = ()

    def traces(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """A band and a line for every group."""
        traces: list[dict[str, Any]] = []
        for i, (group, rows) in enumerate(self.series()):
            colour, name = f"@series-{i % SERIES}", escaped(group) if group is not None else ""
            hidden = {"visible": "legendonly"} if self.visible is not None and i >= self.visible else {}
            inside = [(row[self.x], ends) for row in rows if (ends := self.ends(row)) is not None]
            if inside:
                edge = texts([x for x, _ in inside])
                band = {
                    "type": "scatter",
                    "mode": "lines",
                    "x": edge + edge[::-1],
                    "y": [high for _, (_, high) in inside] + [low for _, (low, _) in inside][::-1],
                    "fill": "toself",
                    "fillcolor": colour,
                    "opacity": 0.15,
                    "line": {"width": 0, "color": colour},
                    "hoverinfo": "skip",
                    "showlegend": False,
                    "legendgroup": str(i),
                }
                traces.append(band | hidden)
            line = {
                "type": "scatter",
                "mode": "markers" if group in self.loose else "lines+markers",
                "x": texts([row[self.x] for row in rows]),
                "y": [row[self.y] for row in rows],
                "name": name,
                "line": {"color": colour, "width": 2, "dash": ("solid", "dash", "dot")[i // SERIES % 3]},
                "marker": {"color": colour, "size": 6},
                "legendgroup": str(i),
                "hovertemplate": f"{name} %{{x}}: {self.hover(self.y, 'y')}<extra></extra>",
            }
            traces.append(line | hidden)
        return traces, {"hovermode": "closest"}

    def draw(self, axes: Any) -> None:
        """The same with matplotlib."""
        for i, (group, rows) in enumerate(self.series()):
            colour, style = COLOURS[i % len(COLOURS)], ("-", "--", ":")[i // len(COLOURS) % 3]
            style = "" if group in self.loose else style
            x, y = [row[self.x] for row in rows], [row[self.y] for row in rows]
            axes.plot(x, y, ls=style, color=colour, marker="o", ms=3, label=label("" if group is None else group))
            inside = [(row[self.x], *ends) for row in rows if (ends := self.ends(row)) is not None]
            if inside:
                axes.fill_between(*zip(*inside, strict=True), color=colour, alpha=0.15, lw=0)


@dataclass(kw_only=True)
class Bars(Chart):
    """A bar for every name of x, side by side for the values of `by`.

    Parameters:
        lying: do the bars lie, so that long names can be read?
    """

    lying: bool = False

    @property
    def sideways(self) -> bool:  # type: ignore[override]
        """Do names stand down the side?"""
        return self.lying

    def traces(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """One trace for every group."""
        traces, names = [], self.names()
        for i, (group, rows) in enumerate(self.series()):
            along, up = texts([row[self.x] for row in rows]), [row[self.y] for row in rows]
            value = self.hover(self.y, "value")
            trace = {
                "type": "bar",
                "marker": {"color": f"@series-{i % SERIES}"},
                "name": "" if group is None else escaped(group),
                "hovertemplate": f"%{{label}}: {value}<extra></extra>",
            }
            trace |= {"orientation": "h", "y": along, "x": up} if self.lying else {"x": along, "y": up}
            if self.low and self.high:
                trace["error_x" if self.lying else "error_y"] = self.error(rows)
            traces.append(trace)
        if not self.lying:
            return traces, {"xaxis": _named(names), "barmode": "group"}
        turned = {"xaxis": {"title": {"text": escaped(self.axis_title(self.y))}}, "yaxis": _named(names, down=True)}
        return traces, {**turned, "barmode": "group", "height": 90 + len(names) * max(ROW, 16 * len(traces))}

    def draw(self, axes: Any) -> None:
        """The same with matplotlib."""
        series, names = self.series(), self.names()
        place = {name: i for i, name in enumerate(names)}
        width = 0.8 / len(series)
        for i, (group, rows) in enumerate(series):
            at = [place[row[self.x]] - 0.4 + width * (i + 0.5) for row in rows]
            colour, name = COLOURS[i % len(COLOURS)], label("" if group is None else group)
            bar = axes.barh if self.lying else axes.bar
            bar(at, [row[self.y] for row in rows], width, color=colour, label=name)
            for where, row in zip(at, rows, strict=True):
                if (ends := self.ends(row)) is not None:
                    across = [where, where]
                    axes.plot(*((ends, across) if self.lying else (across, ends)), color=INK, lw=1.2)
        many = len(names) > 6
        if self.lying:
            axes.set_yticks(range(len(names)), [label(name) for name in names])
            axes.invert_yaxis()
        else:
            turn, side = (30, "right") if many else (0, "center")
            axes.set_xticks(range(len(names)), [label(name) for name in names], rotation=turn, ha=side)

    def inches(self) -> float:
        """Lying bars need one line for every name."""
        return 1.6 + 0.32 * len(self.names()) * max(1, len(self.groups()) / 2) if self.lying else 5.0


@dataclass(kw_only=True)
class Points(Chart):
    """A point for every row.

    Parameters:
        text: the column that names a point; a few have their names beside them.
    """

    text: str | None = None

    def _beyond(self, rows: Sequence[dict[str, Any]]) -> list[bool]:
        """Which points lie in the right half: their names stand on the left, so that none leaves the frame."""
        values = [row[self.x] for _, group in self.series() for row in group]
        if not all(map(as_number, values)):  # names have no middle
            return [False] * len(rows)
        ends = [math.log(v) if self.log and v > 0 else v for v in (min(values), max(values))]
        middle = sum(ends) / 2
        return [(math.log(row[self.x]) if self.log and row[self.x] > 0 else row[self.x]) > middle for row in rows]

    def traces(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """One trace for every group."""
        traces = []
        for i, (group, rows) in enumerate(self.series()):
            trace: dict[str, Any] = {
                "type": "scatter",
                "mode": "markers",
                "x": texts([row[self.x] for row in rows]),
                "y": [row[self.y] for row in rows],
                "name": "" if group is None else escaped(group),
                "marker": {"color": f"@series-{i % SERIES}", "size": 9, "symbol": SYMBOLS[i // SERIES % 4][0]},
            }
            if self.text:
                values = f"{self.hover(self.x, 'x')}, {self.hover(self.y, 'y')}"
                trace |= {"text": [escaped(row[self.text]) for row in rows]}
                trace |= {"hovertemplate": f"%{{text}}<br>{values}<extra></extra>"}
                if len(self.records()) <= NAMED:
                    sides = ["middle left" if beyond else "middle right" for beyond in self._beyond(rows)]
                    trace |= {"mode": "markers+text", "textposition": sides, "cliponaxis": False}
            if self.low and self.high:
                trace["error_y"] = self.error(rows)
            traces.append(trace)
        return traces, {"hovermode": "closest"}

    def draw(self, axes: Any) -> None:
        """The same with matplotlib."""
        for i, (group, rows) in enumerate(self.series()):
            colour = COLOURS[i % len(COLOURS)]
            x, y = [row[self.x] for row in rows], [row[self.y] for row in rows]
            mark = SYMBOLS[i // len(COLOURS) % 4][1]
            axes.plot(x, y, mark, color=colour, label=label("" if group is None else group))
            for row in rows:
                if (ends := self.ends(row)) is not None:
                    axes.plot([row[self.x]] * 2, ends, color=colour, lw=1.2)
            if self.text and len(self.records()) <= 30:
                for row, beyond in zip(rows, self._beyond(rows), strict=True):
                    side, shift = ("right", -5) if beyond else ("left", 5)
                    place = {"xytext": (shift, 3), "textcoords": "offset points", "ha": side, "fontsize": 8}
                    axes.annotate(label(row[self.text]), (row[self.x], row[self.y]), **place)


@dataclass(kw_only=True)
class Dots(Chart):
    """Names down the side, a point and its interval for each."""

    sideways: ClassVar[bool] = True

    def traces(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """One trace for every group."""
        traces, names = [], self.names()
        for i, (group, rows) in enumerate(self.series()):
            trace = {
                "type": "scatter",
                "mode": "markers",
                "y": texts([row[self.x] for row in rows]),
                "x": [row[self.y] for row in rows],
                "name": "" if group is None else escaped(group),
                "marker": {"color": f"@series-{i % SERIES}", "size": 9},
                "hovertemplate": f"%{{y}}: {self.hover(self.y, 'x')}<extra></extra>",
            }
            if self.low and self.high:
                trace["error_x"] = self.error(rows, f"@series-{i % SERIES}")
            traces.append(trace)
        return traces, {
            "xaxis": {"title": {"text": escaped(self.axis_title(self.y))}},
            "yaxis": _named(names, down=True),
            "height": 90 + ROW * len(names),
            "hovermode": "closest",
        }

    def draw(self, axes: Any) -> None:
        """The same with matplotlib."""
        names = self.names()
        for i, (group, rows) in enumerate(self.series()):
            colour, at = COLOURS[i % len(COLOURS)], [names.index(row[self.x]) for row in rows]
            axes.plot([row[self.y] for row in rows], at, "o", color=colour, label=label("" if group is None else group))
            for where, row in zip(at, rows, strict=True):
                if (ends := self.ends(row)) is not None:
                    axes.plot(ends, [where, where], color=colour, lw=1.5)
        axes.set_yticks(range(len(names)), [label(name) for name in names])
        axes.invert_yaxis()

    def inches(self) -> float:
        """One line for every name."""
        return 1.6 + 0.32 * len(self.names())


def _named(names: Sequence[Any], *, down: bool = False) -> dict[str, Any]:
    """An axis of names; `down`: from top to bottom."""
    axis = {"type": "category", "categoryorder": "array", "categoryarray": texts(names)}
    if not down:
        return axis
    end = {"range": [len(names) - 0.4, -0.6], "title": {"text": ""}}
    return axis | end | {"tickvals": list(range(len(names))), "ticktext": texts(names)}
