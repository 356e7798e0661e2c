"""Charts of several things side by side: sheets of images, panels of small charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

from nearkin.present.chart import Chart
from nearkin.present.drawing import canvas, escaped, label
from nearkin.present.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LEAST_SIDE = 0.8  # inches of an image in a file; a sheet with many in a row is wider than 10


@dataclass(kw_only=True)
class Pictures(Chart):
    """A sheet of images, stored as a picture: the page shows its file.

    Parameters:
        images: rows of images, uint8 of shape H x W x 3; None is an empty place.
        captions: a text above each image, in the same shape.
        rows: a name before each row.
        file: the stored picture; then the images are in it.
    """

    table: Table = field(default_factory=lambda: Table("", [], []))
    images: Sequence[Sequence[Any]] = ()
    captions: Sequence[Sequence[str]] = ()
    rows: Sequence[str] = ()
    file: str = ""

    def figure(self) -> Figure:
        """One place for every image."""
        from matplotlib.figure import Figure

        wide = max(len(row) for row in self.images)
        side = max(10 / wide, LEAST_SIDE)
        captions = sum(0.05 + 0.14 * max(text.count("\n") + 1 for text in row) for row in self.captions if row)
        tall = (side + 0.1) * len(self.images) + captions
        figure = Figure(figsize=(side * wide, tall), dpi=100, layout="constrained")
        grid = figure.subplots(len(self.images), wide, squeeze=False)
        for i, row in enumerate(self.images):
            for j in range(wide):
                axes, image = grid[i][j], row[j] if j < len(row) else None
                axes.set_xticks([])
                axes.set_yticks([])
                axes.spines[:].set_visible(False)
                if image is not None:
                    axes.imshow(image)
                if i < len(self.captions) and j < len(self.captions[i]):
                    axes.set_title(label(self.captions[i][j]), fontsize=8 if wide > 12 else 9)
                if j == 0 and i < len(self.rows):
                    axes.set_ylabel(label(_lines(self.rows[i])), fontsize=9)
        return figure

    def describe(self) -> dict[str, Any]:
        """Its words, and the name of the file that holds the images."""
        words = {"title": self.title, "alt": self.alt, "notes": list(self.notes)}
        return {"form": "Pictures", "name": self.name, **words, "file": self.file or f"{self.name}.png"}


def _lines(name: str, width: int = 18) -> str:
    """A long name in up to three lines; it breaks at its underscores, too."""
    if len(name) <= width:
        return name
    return fill(name.replace("_", " "), width, max_lines=3, placeholder=" …")


@dataclass(kw_only=True)
class Panels(Chart):
    """Small charts side by side that share a title.

    Parameters:
        charts: what stands in the panels; the title of each stands above it.
        across: so many stand in a row.
    """

    table: Table = field(default_factory=lambda: Table("", [], []))
    charts: Sequence[Chart] = ()
    across: int = 3

    def _shape(self) -> tuple[int, int, float]:
        """Panels across and down, and how tall one is, as a share of a chart that stands alone."""
        wide = min(self.across, len(self.charts))
        return wide, -(-len(self.charts) // wide), (1.0, 0.8, 0.65, 0.5)[min(wide, 4) - 1]

    def plotly(self) -> dict[str, Any]:
        """All panels as one figure: an axis x2, y2, ... for every one; every name stands in the legend once. `narrow`:
        the layout for a phone, where they stand below each other."""
        drawn = self._arranged()
        below = replace(self, across=1)._arranged()
        return {**drawn, "narrow": {"layout": below["layout"], "height": below["height"]}}

    def _arranged(self) -> dict[str, Any]:
        wide, down, share = self._shape()
        drawn = [chart.plotly() for chart in self.charts]
        tall = share * max(panel["height"] for panel in drawn)
        height, data, named = tall * down, [], set()
        layout = {key: value for key, value in drawn[0]["layout"].items() if not key.startswith(("xaxis", "yaxis"))}
        several = any(panel["layout"]["showlegend"] for panel in drawn)
        layout |= {"annotations": [], "shapes": [], "showlegend": several}
        for i, (chart, panel) in enumerate(zip(self.charts, drawn, strict=True)):
            number, (row, column) = "" if i == 0 else str(i + 1), divmod(i, wide)
            left, right = (column + (0.16 if column else 0.0)) / wide, (column + 1) / wide
            top, bottom = 1 - (row * tall + 24) / height, 1 - ((row + 1) * tall - 56) / height
            for axis, other, ends in (("x", "y", [left, right]), ("y", "x", [bottom, top])):
                place = {"domain": ends, "anchor": f"{other}{number}"}
                layout[f"{axis}axis{number}"] = panel["layout"][f"{axis}axis"] | place
            for trace in panel["data"]:
                new = trace.get("showlegend", True) and trace.get("name") not in named
                named.add(trace.get("name"))
                data.append(trace | {"xaxis": f"x{number}", "yaxis": f"y{number}", "showlegend": new})
            for shape in panel["layout"].get("shapes", []):
                refs = {f"{a}ref": f"{a}{number}{' domain' if shape.get(f'{a}ref') else ''}" for a in "xy"}
                layout["shapes"].append(shape | refs)
            at = {"x": 0.5, "y": 1, "xref": f"x{number} domain", "yref": f"y{number} domain", "yanchor": "bottom"}
            layout["annotations"].append({"text": escaped(chart.title), "showarrow": False, **at})
        return {"data": data, "layout": layout, "height": round(height + 40 * several)}

    def figure(self) -> Figure:
        """Every chart in its place; one legend for all."""
        wide, down, share = self._shape()
        figure, first = canvas(share * max(chart.inches() for chart in self.charts) * down)
        first.remove()
        grid = list(figure.subplots(down, wide, squeeze=False).flat)
        for axes, chart in zip(grid, self.charts, strict=False):
            axes.spines[["top", "right"]].set_visible(False)
            chart.finish(axes)
            small = wide > 3
            axes.set_title(label(chart.title), fontsize=9 if small else 11)
            axes.tick_params(labelsize=8 if small else 10)
            for axis in (axes.xaxis, axes.yaxis):
                axis.label.set_size(8 if small else 10)
        for axes in grid[len(self.charts) :]:
            axes.axis("off")
        handles = {
            name: handle
            for axes, chart in zip(grid, self.charts, strict=False)
            if chart.by
            for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        if len(handles) > 1:
            figure.legend(
                handles.values(), handles.keys(), frameon=False, loc="outside lower center", ncols=3, fontsize=9
            )
        return figure

    def describe(self) -> dict[str, Any]:
        """The descriptions of its charts."""
        words = {"title": self.title, "alt": self.alt, "notes": list(self.notes), "across": self.across}
        return {"form": "Panels", "name": self.name, **words, "charts": [chart.describe() for chart in self.charts]}
