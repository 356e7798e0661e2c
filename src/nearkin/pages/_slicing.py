"""Which rows of a long benchmark a chart shows: the best ones, or those that the menus of the leaderboard choose."""

from dataclasses import dataclass, replace
from typing import Any

from nearkin.present import Chart
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
        methods, (_, place) = self.methods or {}, chart.naming
        names = [[escaped(name), str(methods.get(name, name))] for name in names_of(chart)]
        row = chart.row_height() if chart.sideways else 0
        return {"slice": self.grid, "most": self.most, "names": names, "at": place, "row": row}

    def first(self, chart: Chart) -> Chart:
        """The same chart with the names that are drawn at first."""
        names = names_of(chart)
        if len(names) <= self.most:
            return chart
        at, first = chart.table.header.index(chart.naming[0]), set(names[: self.most])
        rows = [row for row in chart.table.rows if str(row[at]) in first]
        return replace(chart, table=replace(chart.table, rows=rows))


def names_of(chart: Chart) -> list[str]:
    """What a chart calls its rows, in the order of its table."""
    return list(dict.fromkeys(str(row[chart.naming[0]]) for row in chart.table if row[chart.y] is not None))
