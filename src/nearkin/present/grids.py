"""Heatmaps, and diagrams of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from nearkin.present.chart import ROW, Chart
from nearkin.present.drawing import INK, SOFT, escaped, label, texts

WRITTEN = 14  # a heatmap of so many columns has its numbers in it


@dataclass(kw_only=True)
class Heatmap(Chart):
    """Colours for the numbers of a matrix; x and y are columns of names.

    Parameters:
        value: the column of numbers.
        band: the values at both ends of the colours; by default from 0, or the least, to the largest. A band from below
            0 has a middle colour at its middle.
    """

    value: str = ""
    band: Sequence[float] | None = None

    def matrix(self) -> tuple[list[Any], list[Any], list[list[float | None]]]:
        """The names along x, those down y, and the scaled numbers."""
        scale, records = self.unit(self.value).scale, self.records()
        xs, ys = (list(dict.fromkeys(row[name] for row in records)) for name in (self.x, self.y))
        cells = {(row[self.x], row[self.y]): row[self.value] for row in records}
        z = [[None if (cell := cells.get((x, y))) is None else scale * cell for x in xs] for y in ys]
        return xs, ys, z

    def digits(self, name: str) -> int:
        """The decimals of a column's values; two where the column has no unit."""
        return super().digits(name) if self.unit(name).numeric else 2

    def ends_of_colours(self, z: list[list[float | None]]) -> tuple[float, float]:
        """The values that have the palest and the darkest colour."""
        scale = self.unit(self.value).scale
        if self.band is not None:
            return scale * self.band[0], scale * self.band[1]
        values = [value for row in z for value in row if value is not None] or [0.0]
        return min(0.0, *values), max(values)

    def traces(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """One trace; numbers stand in the cells of a small one."""
        xs, ys, z = self.matrix()
        low, high = self.ends_of_colours(z)
        ends = ("@heat-low", "@heat-middle", "@heat-high") if low < 0 else ("@heat-middle", "@heat-high")
        digits = self.digits(self.value)
        trace = {
            "type": "heatmap",
            "x": texts(xs),
            "y": texts(ys),
            "z": z,
            "zmin": low,
            "zmax": high,
            "colorscale": [[i / (len(ends) - 1), colour] for i, colour in enumerate(ends)],
            **({"texttemplate": f"%{{z:.{digits}f}}"} if len(xs) <= WRITTEN else {}),
            "hovertemplate": f"%{{x}}, %{{y}}: %{{z:.{digits}f}}<extra></extra>",
            "showlegend": False,
            "colorbar": {"outlinewidth": 0, "thickness": 12},
        }
        axes = {}
        for name, title in (("xaxis", self.x_title), ("yaxis", self.y_title)):
            axes[name] = {"type": "category", "title": {"text": escaped(title)}}
        axes["yaxis"]["autorange"] = "reversed"
        return [trace], {**axes, "height": 140 + min(30 * len(ys), 900)}

    def draw(self, axes: Any) -> None:
        """The same with matplotlib."""
        xs, ys, z = self.matrix()
        low, high = self.ends_of_colours(z)
        cells = [[float("nan") if value is None else value for value in row] for row in z]
        image = axes.imshow(cells, cmap="BrBG" if low < 0 else "Blues", vmin=low, vmax=high, aspect="auto")
        digits, middle, reach = self.digits(self.value), (low + high) / 2 if low < 0 else low, (high - low) or 1.0
        for j, row in enumerate(z if len(xs) <= WRITTEN else []):
            for i, value in enumerate(row):
                if value is not None:
                    colour = "white" if abs(value - middle) > (0.35 if low < 0 else 0.6) * reach else INK
                    axes.text(i, j, f"{value:.{digits}f}", ha="center", va="center", fontsize=9, color=colour)
        if len(xs) > WRITTEN:
            axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.02)
        for ticks, names, looks in ((axes.set_xticks, xs, {"rotation": 30, "ha": "right"}), (axes.set_yticks, ys, {})):
            step = -(-len(names) // 40)  # as many names as there is room for
            ticks(range(0, len(names), step), [label(name) for name in names[::step]], **looks)

    def axis_title(self, name: str) -> str:
        """Names need no title, unless one is given."""
        return {self.x: self.x_title, self.y: self.y_title}.get(name, "")

    def groups(self) -> list[Any]:
        """It has no legend."""
        return [None]

    def inches(self) -> float:
        """One line for every row of the matrix."""
        return min(10.0, 1.6 + 0.32 * len({row[self.y] for row in self.records()}))


@dataclass(kw_only=True)
class Ranks(Chart):
    """A diagram of critical differences (Demšar 2006): y names, x average ranks, best first; bars join what cannot be
    told apart.

    Parameters:
        joined: the groups of names that cannot be told apart, each in order.
        difference: the critical difference; None where the ranks were not tested.
    """

    sideways: ClassVar[bool] = True

    joined: Sequence[Sequence[str]] = ()
    difference: float | None = None

    def _bars(self) -> list[float]:
        k = len(self.table.rows)
        return [k + 0.06 * k * (i + 1) for i in range(len(self.joined))]

    def _difference(self) -> str:
        wide = self.difference is not None and self.difference > len(self.table.rows) - 1
        return f"critical difference {self.difference:.2f}" + (" (wider than the scale)" if wide else "")

    def traces(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Names in order, a point at each average rank; upright bars at the right."""
        names, average = self.table.column(self.y), self.table.column(self.x)
        k, place = len(names), {name: i for i, name in enumerate(names)}
        dots = {
            "type": "scatter",
            "mode": "markers",
            "x": average,
            "y": list(range(k)),
            "text": texts(names),
            "showlegend": False,
            "marker": {"color": "@series-0", "size": 10},
            "hovertemplate": "%{text}: %{x:.2f}<extra></extra>",
        }
        shapes, notes = [], []
        for bar, group in zip(self._bars(), self.joined, strict=True):
            ends = {"x0": bar, "x1": bar, "y0": place[group[0]] - 0.3, "y1": place[group[-1]] + 0.3}
            shapes.append({"type": "line", **ends, "line": {"color": "@ink", "width": 4}})
        if self.difference is not None:
            ends = {"x0": 1, "x1": 1 + min(self.difference, k - 1), "y0": -1, "y1": -1}
            shapes.append({"type": "line", **ends, "line": {"color": "@ink", "width": 2}})
            look = {"showarrow": False, "xanchor": "left", "yanchor": "bottom"}
            notes.append({"x": 1, "y": -1, "text": self._difference(), **look})
        side = {"tickvals": list(range(k)), "ticktext": texts(names), "title": {"text": ""}}
        return [dots], {
            "shapes": shapes,
            "annotations": notes,
            "height": 110 + ROW * (k + 1),
            "xaxis": {"range": [0.7, max([k, *self._bars()]) + 0.3], "title": {"text": escaped(self.x_title)}},
            "yaxis": {"range": [k - 0.4, -1.9], **side},
        }

    def draw(self, axes: Any) -> None:
        """Demšar's diagram: every method at its average rank, best on the left, names below in two columns."""
        names, average = [str(name) for name in self.table.column(self.y)], self.table.column(self.x)
        k, half = len(names), (len(names) + 1) // 2
        depth = 0.5 + 0.22 * len(self.joined)  # the names begin below the bars
        margin = min(0.42, 0.011 * (max(map(len, names)) + 6))  # room for the longest name, as a share of the width
        unit = (k - 1) / (1 - 2 * margin)  # the width of the figure, in ranks
        axes.set_xlim(1 - margin * unit, k + margin * unit)
        axes.set_ylim(-(depth + 0.36 * half), 1.6)
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
        for i, group in enumerate(self.joined):
            y, over = -(0.22 + 0.22 * i), 0.004 * unit
            ends = [place[group[0]] - over, place[group[-1]] + over]
            axes.plot(ends, [y, y], color=INK, lw=4, solid_capstyle="round")
        if self.difference is not None:
            axes.plot([1, 1 + min(self.difference, k - 1)], [0.95] * 2, color=INK, lw=1.2, marker="|", markersize=9)
            axes.text(1, 1.1, self._difference(), ha="left", va="bottom", fontsize=11)

    def axis_title(self, name: str) -> str:
        """The diagram has a scale of its own."""
        return ""

    def inches(self) -> float:
        """Two columns of names below the bars."""
        return 0.62 * (2.3 + 0.22 * len(self.joined) + 0.36 * ((len(self.table.rows) + 1) // 2))
