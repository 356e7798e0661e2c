"""Charts of points on two axes: lines, bars, points, dots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from nearkin.present.chart import ROW, Chart, error_bars
from nearkin.present.drawing import INK, SERIES, escaped, label, named_axis, texts
from nearkin.units import as_number

SYMBOLS = (("circle", "o"), ("triangle-up", "^"), ("square", "s"), ("diamond", "D"))  # when the colours begin again
DASHES = (("solid", "-"), ("dash", "--"), ("dot", ":"))
NAMED = 14  # so many points have their names beside them; more would cover each other

Rows = Sequence[dict[str, Any]]


@dataclass(kw_only=True)
class Lines(Chart):
    """One line for every value of `by`, with a band where there are intervals.

    Parameters:
        visible: so many lines are drawn; a click on its name shows one of the others. None: all.
        loose: the groups whose points are not joined.
        level: the points at this x are no part of their line: each is a dashed line across, in the colour of its group,
            against which that is seen.
    """

    visible: int | None = None
    loose: Sequence[str] = ()
    level: float | None = None

    @property
    def naming(self) -> tuple[str, str]:
        """Lines are named by their group."""
        return self.by or self.x, "name"

    def _across(self) -> list[float]:
        """Where lines across begin and end."""
        values = [row[self.x] for _, rows in self.series() for row in rows if row[self.x] != self.level]
        return [min(values), max(values)] if values else []

    def _levels(self, rows: Rows) -> tuple[Rows, list[float]]:
        """The points of a line, and the heights of its lines across."""
        if self.level is None:
            return rows, []
        heights = [row[self.y] for row in rows if row[self.x] == self.level]
        return [row for row in rows if row[self.x] != self.level], heights

    def _traces_of(self, i: int, group: Any, rows: Rows) -> list[dict[str, Any]]:
        rows, levels = self._levels(rows)
        line = self._trace(i, group, rows)
        colour = line["marker"]["color"]
        shared: dict[str, Any] = {"legendgroup": str(i)}
        if self.visible is not None and i >= self.visible:
            shared["visible"] = "legendonly"
        line |= {
            "mode": "markers" if group in self.loose else "lines+markers",
            "line": {"color": colour, "width": 2, "dash": DASHES[i // SERIES % 3][0]},
            "marker": {"color": colour, "size": 6},
            "hovertemplate": f"{line['name']} %{{x}}: {self.hover(self.y, 'y')}<extra></extra>",
        }
        across = [
            {
                "type": "scatter",
                "mode": "lines",
                "x": self._across(),
                "y": [level, level],
                "name": line["name"],
                "line": {"color": colour, "width": 1.5, "dash": "dash"},
                "hovertemplate": f"{line['name']} {self.level:g}: {self.hover(self.y, 'y')}<extra></extra>",
                "showlegend": False,
            }
            | shared
            for level in levels
        ]
        inside = [(row[self.x], ends) for row in rows if (ends := self.ends(row)) is not None]
        if not inside:
            return [*across, line | shared]
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
        }
        return [*across, band | shared, line | shared]

    def _draw_group(self, axes: Any, rows: Rows, i: int, looks: dict[str, Any]) -> None:
        rows, levels = self._levels(rows)
        for level in levels:
            axes.plot(self._across(), [level, level], ls="--", lw=1.2, color=looks["color"])
        style = "" if self.groups()[i] in self.loose else DASHES[i // SERIES % 3][1]
        axes.plot([row[self.x] for row in rows], [row[self.y] for row in rows], ls=style, marker="o", ms=3, **looks)
        inside = [(row[self.x], *ends) for row in rows if (ends := self.ends(row)) is not None]
        if inside:
            axes.fill_between(*zip(*inside, strict=True), color=looks["color"], alpha=0.15, lw=0)


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

    def row_height(self) -> int:
        """Room for the bars of all groups."""
        return max(ROW, 16 * len(self.groups()))

    def layout(self) -> dict[str, Any]:
        """Bars of several groups stand side by side."""
        names = {} if self.lying else {"xaxis": named_axis(self.names())}
        return super().layout() | names | {"barmode": "group"}

    def _traces_of(self, i: int, group: Any, rows: Rows) -> list[dict[str, Any]]:
        trace = self._trace(i, group, rows) | self._errors(rows)
        del trace["mode"], trace["marker"]["size"]
        turned = {"orientation": "h"} if self.lying else {}
        hover = f"%{{label}}: {self.hover(self.y, 'value')}<extra></extra>"
        return [trace | turned | {"type": "bar", "hovertemplate": hover}]

    def draw(self, axes: Any) -> None:
        """Names stand below upright bars."""
        super().draw(axes)
        names = [label(name) for name in self.names()]
        if not self.lying:
            turn, side = (30, "right") if len(names) > 6 else (0, "center")
            axes.set_xticks(range(len(names)), names, rotation=turn, ha=side)

    def _draw_group(self, axes: Any, rows: Rows, i: int, looks: dict[str, Any]) -> None:
        place, width = {name: k for k, name in enumerate(self.names())}, 0.8 / len(self.groups())
        at = [place[row[self.x]] - 0.4 + width * (i + 0.5) for row in rows]
        (axes.barh if self.lying else axes.bar)(at, [row[self.y] for row in rows], width, **looks)
        self._draw_intervals(axes, at, rows, color=INK, lw=1.2)

    def inches(self) -> float:
        """Lying bars need one line for every name."""
        return 1.6 + 0.32 * len(self.names()) * max(1, len(self.groups()) / 2) if self.lying else 5.0


@dataclass(kw_only=True)
class Points(Chart):
    """A point for every row.

    Parameters:
        text: the column that names a point; a few have their names beside them.
        named: may names stand beside points? Else a pointer shows them, in a page.
        left, right: the columns of intervals around x.
    """

    text: str | None = None
    named: bool = True
    left: str | None = None
    right: str | None = None

    def _spans(self, rows: Rows) -> list[tuple[float, float] | None]:
        """The interval around each x, None without."""
        if not self.left or not self.right:
            return []
        scale = self.unit(self.x).scale
        both = [(row[self.left], row[self.right]) for row in rows]
        return [None if low is None or high is None else (scale * low, scale * high) for low, high in both]

    @property
    def naming(self) -> tuple[str, str]:
        """Points are named by their text."""
        return self.text or self.x, "text"

    def _beyond(self, rows: Rows) -> list[bool]:
        """Which points lie in the right half: their names stand on the left, so that none leaves the frame."""
        values = [row[self.x] for _, group in self.series() for row in group]
        if not all(map(as_number, values)):  # names have no middle
            return [False] * len(rows)

        def along(value: float) -> float:
            return math.log(value) if self.log and value > 0 else value

        middle = (along(min(values)) + along(max(values))) / 2
        return [along(row[self.x]) > middle for row in rows]

    def _traces_of(self, i: int, group: Any, rows: Rows) -> list[dict[str, Any]]:
        trace = self._trace(i, group, rows)
        colour = trace["marker"]["color"]
        trace |= self._errors(rows, colour)
        trace["marker"]["symbol"] = SYMBOLS[i // SERIES % 4][0]
        if spans := self._spans(rows):
            pairs = [(span or (row[self.x],) * 2, row[self.x]) for span, row in zip(spans, rows, strict=True)]
            trace["error_x"] = error_bars(pairs, colour)
        if self.text:
            values = f"{self.hover(self.x, 'x')}, {self.hover(self.y, 'y')}"
            trace |= {"text": [escaped(row[self.text]) for row in rows]}
            trace |= {"hovertemplate": f"%{{text}}<br>{values}<extra></extra>"}
            if self.named and len(self.records()) <= NAMED:
                sides = ["middle left" if beyond else "middle right" for beyond in self._beyond(rows)]
                trace |= {"mode": "markers+text", "textposition": sides, "cliponaxis": False}
        return [trace]

    def _draw_group(self, axes: Any, rows: Rows, i: int, looks: dict[str, Any]) -> None:
        x, y = [row[self.x] for row in rows], [row[self.y] for row in rows]
        axes.plot(x, y, SYMBOLS[i // SERIES % 4][1], **looks)
        self._draw_intervals(axes, x, rows, color=looks["color"], lw=1.2)
        for height, span in zip(y, self._spans(rows), strict=False):
            if span is not None:
                axes.plot(span, [height] * 2, color=looks["color"], lw=1.2)
        if self.text and self.named and len(self.records()) <= 30:
            for row, beyond in zip(rows, self._beyond(rows), strict=True):
                side, shift = ("right", -5) if beyond else ("left", 5)
                place = {"xytext": (shift, 3), "textcoords": "offset points", "ha": side, "fontsize": 8}
                axes.annotate(label(row[self.text]), (row[self.x], row[self.y]), **place)


@dataclass(kw_only=True)
class Dots(Chart):
    """Names down the side, a point and its interval for each."""

    sideways: ClassVar[bool] = True

    def _traces_of(self, i: int, group: Any, rows: Rows) -> list[dict[str, Any]]:
        trace = self._trace(i, group, rows)
        hover = f"%{{y}}: {self.hover(self.y, 'x')}<extra></extra>"
        return [trace | self._errors(rows, trace["marker"]["color"]) | {"hovertemplate": hover}]

    def _draw_group(self, axes: Any, rows: Rows, i: int, looks: dict[str, Any]) -> None:
        names = self.names()
        at = [names.index(row[self.x]) for row in rows]
        axes.plot([row[self.y] for row in rows], at, "o", **looks)
        self._draw_intervals(axes, at, rows, color=looks["color"], lw=1.5)
