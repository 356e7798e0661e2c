"""A chart: one description of what to draw, drawn by plotly in a page and by matplotlib in files.

Every chart draws columns of a table. A column's unit scales its values (shares are drawn in per cent) and names the
axis, so a chart has no numbers or formats of its own. Colours for plotly are names of the page's style, as "@series-0":
the page's script looks them up, and again when day turns into night.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from nearkin.present.drawing import (
    COLOURS,
    SERIES,
    SOFT,
    canvas,
    escaped,
    label,
    named,
    named_axis,
    save,
    shortened,
    texts,
)
from nearkin.present.table import Column, Table
from nearkin.units import UNITS, WORDS, Unit, as_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW = 24  # pixels of a name on an axis
FEW_TICKS = 8  # so many values can each have their tick
FORMS: dict[str, type[Chart]] = {}  # name of a class -> class, for stored charts


@dataclass(kw_only=True)
class Chart:
    """What all charts have; each form is a class of its own.

    Parameters:
        name: file name of what is drawn, without ending; of a-z, 0-9 and hyphens.
        title: its heading; empty for none.
        table: its numbers.
        x, y: the columns along the axes.
        by: the column that tells one line, or one colour, from another.
        low, high: the columns of intervals around y.
        x_title, y_title: what stands at the axes; by default the headings of the columns.
        log, log_y: is the x axis, or the y axis, logarithmic?
        only: the rows that are drawn, as column -> value, or list of values; by default all.
        line: a reference at this y, in the unit of the y axis.
        alt: the chart in one sentence, for those who cannot see it.
        notes: sentences below it.
    """

    sideways: ClassVar[bool] = False  # do names stand down the side?

    name: str
    title: str = ""
    table: Table
    x: str = ""
    y: str = ""
    by: str | None = None
    low: str | None = None
    high: str | None = None
    x_title: str = ""
    y_title: str = ""
    log: bool = False
    log_y: bool = False
    only: Mapping[str, Any] | None = None
    line: float | None = None
    alt: str = ""
    notes: Sequence[str] = ()

    def __init_subclass__(cls) -> None:
        FORMS[cls.__name__] = cls

    # ------------------------------------------------------------ what is drawn
    def column(self, name: str) -> Column:
        """The column of that name."""
        return next((column for column in self.table._columns if column.name == name), Column(name or " "))

    def unit(self, name: str) -> Unit:
        """How the values of a column are written; a column of many units has that of its first row."""
        unit = self.column(name).unit
        if isinstance(unit, Unit):
            return unit
        return UNITS[next((value for value in self.table.column(unit) if value), WORDS.name)]

    def digits(self, name: str) -> int:
        """The decimals of a column's values."""
        given = self.column(name).digits
        return self.unit(name).digits if given is None else given

    def records(self) -> list[dict[str, Any]]:
        """The rows that are drawn, as column -> value."""
        chosen = {name: value if isinstance(value, list) else [value] for name, value in (self.only or {}).items()}
        return [row for row in self.table.records() if all(row[name] in values for name, values in chosen.items())]

    def axis_title(self, name: str) -> str:
        """What stands at the axis of a column."""
        given = {self.x: self.x_title, self.y: self.y_title}.get(name, "")
        return given or self.column(name).title

    def groups(self) -> list[Any]:
        """The values of `by`, in the order of the table; [None] without."""
        return list(dict.fromkeys(row[self.by] for row in self.records())) if self.by else [None]

    def names(self) -> list[Any]:
        """The values of x, in the order of the table; those without a y are left out."""
        return list(dict.fromkeys(row[self.x] for row in self.records() if row[self.y] is not None))

    def ticks(self) -> list[float]:
        """The values along a logarithmic axis of x, where they are few: sizes such as 128 and 512; else none."""
        values = sorted({row[self.x] for _, rows in self.series() for row in rows})
        return values if len(values) <= FEW_TICKS else []

    @property
    def naming(self) -> tuple[str, str]:
        """The column that names what is drawn, as methods, and where plotly's traces have these names."""
        return self.x, "y" if self.sideways else "x"

    def series(self) -> list[tuple[Any, list[dict[str, Any]]]]:
        """Every value of `by` with its rows, scaled; rows without a y are left out."""
        scale = {name: self.unit(name).scale for name in (self.x, self.y) if name}
        scale |= {edge: scale[self.y] for edge in (self.low, self.high) if edge}
        rows = []
        for row in self.records():
            for name, factor in scale.items():
                if factor != 1 and as_number(row[name]):
                    row[name] *= factor
            rows.append(row)
        return [
            (group, [row for row in rows if row[self.y] is not None and (not self.by or row[self.by] == group)])
            for group in self.groups()
        ]

    def ends(self, row: Mapping[str, Any]) -> tuple[float, float] | None:
        """The interval of a row; None without."""
        if not self.low or not self.high or row[self.low] is None or row[self.high] is None:
            return None
        return row[self.low], row[self.high]

    # ------------------------------------------------------------ plotly
    def traces(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Plotly's traces, and what its layout needs for them."""
        groups = enumerate(self.series())
        return [trace for i, (group, rows) in groups for trace in self._traces_of(i, group, rows)], self.layout()

    def _traces_of(self, i: int, group: Any, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Plotly's traces of one group."""
        raise NotImplementedError

    def layout(self) -> dict[str, Any]:
        """What plotly's layout needs for the traces: where names stand down the side, their axis."""
        if not self.sideways:
            return {}
        names = self.names()
        return {
            "xaxis": {"title": {"text": escaped(self.axis_title(self.y))}},
            "yaxis": named_axis(names)
            | {"range": [len(names) - 0.4, -0.6], "title": {"text": ""}}
            | {"tickvals": list(range(len(names))), "ticktext": texts(names)},
            "height": 90 + self.row_height() * len(names),
        }

    def row_height(self) -> int:
        """Pixels of a name down the side."""
        return ROW

    def _trace(self, i: int, group: Any, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """What a trace of a group has in all forms: its values, its name, its colour."""
        along, across = ("y", "x") if self.sideways else ("x", "y")
        return {
            "type": "scatter",
            "mode": "markers",
            along: texts([row[self.x] for row in rows]),
            across: [row[self.y] for row in rows],
            "name": escaped(named(group)),
            "marker": {"color": f"@series-{i % SERIES}", "size": 9},
        }

    def _errors(self, rows: Sequence[dict[str, Any]], colour: str = "@ink") -> dict[str, Any]:
        """What a trace has for the intervals of its rows; nothing where the chart has none."""
        if not self.low or not self.high:
            return {}
        pairs = [(self.ends(row) or (row[self.y], row[self.y]), row[self.y]) for row in rows]
        return {"error_x" if self.sideways else "error_y": error_bars(pairs, colour)}

    def plotly(self) -> dict[str, Any]:
        """Traces, layout and height, as plain values."""
        traces, layout = self.traces()
        grid = {"gridcolor": "@line", "linecolor": "@soft", "zerolinecolor": "@line", "automargin": True}
        for axis, column in (("xaxis", self.x), ("yaxis", self.y)):
            layout[axis] = {"title": {"text": escaped(self.axis_title(column))}, **grid, **layout.get(axis, {})}
        if self.log:
            ticks = self.ticks()  # else 1, 2, 5, 10: all nine digits are too many
            layout["xaxis"] |= {"type": "log", **({"tickvals": ticks} if ticks else {"dtick": "D2"})}
        if self.log_y:
            layout["yaxis"] |= {"type": "log", "dtick": "D2", "exponentformat": "power"}
        if self.line is not None:
            across, along = ("y", "x") if self.sideways else ("x", "y")
            ends = {f"{across}ref": "paper", f"{across}0": 0, f"{across}1": 1}
            ends |= {f"{along}0": self.line, f"{along}1": self.line}
            shape = {"type": "line", **ends, "line": {"color": "@soft", "width": 1, "dash": "dot"}}
            layout.setdefault("shapes", []).append(shape)
        several = sum(bool(trace.get("showlegend", True)) for trace in traces) > 1
        legend = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "font": {"size": 12}}
        layout |= {
            "showlegend": several,
            "legend": legend,
            "hovermode": "closest",
            "font": {"color": "@ink", "size": 13},
            "paper_bgcolor": "@paper",
            "plot_bgcolor": "@paper",
            "margin": {"l": 12, "r": 16, "t": 12, "b": 12},
            "hoverlabel": {"bgcolor": "@paper", "bordercolor": "@soft", "font": {"color": "@ink"}},
        }
        height = layout.pop("height", 400) + (22 * math.ceil(len(self.groups()) / 3) if several else 0)
        drawn = {"data": traces, "layout": layout, "height": height}
        if "ticktext" in layout["yaxis"]:  # for a phone
            drawn["short"] = [shortened(name) for name in layout["yaxis"]["ticktext"]]
        return drawn

    def hover(self, column: str, axis: str) -> str:
        """Plotly's template for a value of a column."""
        digits = self.digits(column)
        return f"%{{{axis}:.{digits}f}}" if self.unit(column).numeric and digits else f"%{{{axis}:.5~g}}"

    # ------------------------------------------------------------ matplotlib
    def draw(self, axes: Any) -> None:
        """Draw it with matplotlib."""
        for i, (group, rows) in enumerate(self.series()):
            self._draw_group(axes, rows, i, {"color": COLOURS[i % SERIES], "label": label(named(group))})
        if self.sideways:
            axes.set_yticks(range(len(self.names())), [label(name) for name in self.names()])
            axes.invert_yaxis()

    def _draw_group(self, axes: Any, rows: Sequence[dict[str, Any]], i: int, looks: dict[str, Any]) -> None:
        """Draw the rows of one group, in its colour and with its name for the legend."""
        raise NotImplementedError

    def _draw_intervals(self, axes: Any, at: Sequence[Any], rows: Sequence[dict[str, Any]], **looks: Any) -> None:
        """Draw the intervals of rows, each at its place along the axis of names or of x."""
        for place, row in zip(at, rows, strict=True):
            if (ends := self.ends(row)) is not None:
                axes.plot(*((ends, [place] * 2) if self.sideways else ([place] * 2, ends)), **looks)

    def inches(self) -> float:
        """Its height in a file; the width is 10."""
        return 1.6 + 0.32 * len(self.names()) if self.sideways else 5.0

    def figure(self) -> Figure:
        """The figure for files: 1,000 pixels wide."""
        figure, axes = canvas(self.inches())
        self.finish(axes)
        if self.by and 1 < len(self.groups()) <= 40:
            figure.legend(frameon=False, loc="outside lower center", ncols=3, fontsize=9)
        return figure

    def finish(self, axes: Any) -> None:
        """Draw it, and what all charts have: titles of the axes, the reference line."""
        self.draw(axes)
        if self.log:
            axes.set_xscale("log")
        if self.log and (ticks := self.ticks()):
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set_xticks([], minor=True)
        if self.log_y:
            axes.set_yscale("log")
        x, y = (label(self.axis_title(name)) for name in (self.x, self.y))
        axes.set_xlabel(y if self.sideways else x)
        axes.set_ylabel("" if self.sideways else y)
        if self.line is not None:
            (axes.axvline if self.sideways else axes.axhline)(self.line, color=SOFT, lw=1, ls=":")

    def save(self, path: Path | str, endings: Sequence[str] = (".png", ".svg")) -> list[Path]:
        """Write NAME.png and NAME.svg, whole or not at all."""
        return save(self.figure(), path, endings)

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.figure().savefig(file, format="png")
        return file.getvalue()

    # ------------------------------------------------------------ stored
    def describe(self) -> dict[str, Any]:
        """The chart as plain values; its table by name."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return {**given, "form": type(self).__name__, "table": self.table.name}


def error_bars(pairs: Sequence[tuple[tuple[float, float], float]], colour: str) -> dict[str, Any]:
    """Plotly's bars of intervals: both ends, and the value between them."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - value for (_, high), value in pairs],
        "arrayminus": [value - low for (low, _), value in pairs],
        "thickness": 1.5,
        "width": 4,
        "color": colour,
    }


def described(description: Mapping[str, Any], tables: Mapping[str, Table]) -> Chart:
    """The chart of a stored description, over the tables by name."""
    from nearkin.present import forms, grids, sheets  # noqa: F401  they fill FORMS

    given = dict(description)
    if "charts" in given:
        given["charts"] = [described(chart, tables) for chart in given["charts"]]
    if "table" in given:
        given["table"] = tables[given["table"]]
    return FORMS[given.pop("form")](**given)
