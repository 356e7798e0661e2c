"""Which rows of a long benchmark a chart shows: the best ones, or those that the menus of the leaderboard choose."""

from dataclasses import dataclass, replace
from typing import Any

from nearkin.present import Bars, Chart, Dots, Lines, Points
from nearkin.present.chart import ROW
from nearkin.present.drawing import escaped

MOST = 30  # names along an axis, or lines, that can still be told apart


@dataclass(frozen=True)
class Slicing:
    """A chart's share of the rows.

    Parameters:
        grid: id of the grid whose menus choose methods; empty for none.
        methods: what the chart calls a row -> the method in that grid; rows that are not in it are called as there.
        most: so many names are drawn at once.
    """

    grid: str = ""
    methods: dict[str, str] | None = None
    most: int = MOST

    def note(self, chart: Chart) -> str:
        """What is left out at first."""
        total = len(names_of(chart))
        return f"Drawn are the first {self.most} of {total:,}; the numbers have all." if total > self.most else ""

    def data(self, chart: Chart) -> dict[str, Any]:
        """What the page's script needs: where a trace has the names, and which method each name is."""
        called = self.methods or {}
        names = [[escaped(name), str(called.get(name, name))] for name in names_of(chart)]
        traces = max(1, len(chart.groups()))
        row = max(ROW, 16 * traces) if isinstance(chart, Bars) else ROW if isinstance(chart, Dots) else 0
        return {"slice": self.grid, "most": self.most, "names": names, "at": _place(chart), "row": row}


def names_of(chart: Chart) -> list[str]:
    """What a chart calls its rows, in the order of its table."""
    column = _column(chart)
    return list(dict.fromkeys(str(row[column]) for row in chart.table if row[chart.y] is not None))


def first_rows(chart: Chart, most: int = MOST) -> Chart:
    """The same chart with the first names alone."""
    names = names_of(chart)
    if len(names) <= most:
        return chart
    at, kept = chart.table.header.index(_column(chart)), set(names[:most])
    return replace(chart, table=replace(chart.table, rows=[row for row in chart.table.rows if str(row[at]) in kept]))


def _column(chart: Chart) -> str:
    """The column that names rows: methods, not epochs or seconds."""
    name = chart.by if isinstance(chart, Lines) else chart.text if isinstance(chart, Points) else chart.x
    return name or chart.x


def _place(chart: Chart) -> str:
    """Where plotly's traces have the names."""
    if isinstance(chart, Lines):
        return "name"
    return "text" if isinstance(chart, Points) else "y" if chart.sideways else "x"
