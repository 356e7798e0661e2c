"""A chart as plotly draws it: traces and layout, as plain values. Nothing is computed here.

Colours are names of the page's style, as "@series-0": the script looks them up, and again when day turns into night.
"""

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import escape

from nearkin.pages.base import Chart

SERIES = 10  # colours of lines; then they begin again
NAMED = 14  # so many points have their names beside them; more would cover each other
ROW = 24  # pixels of a name on an axis


def figure(chart: Chart) -> dict[str, Any]:
    """Traces, layout and height of a chart."""
    traces, layout = DRAWN[chart.form](chart)
    axis = {"gridcolor": "@line", "linecolor": "@soft", "zerolinecolor": "@line", "automargin": True}
    for name, title in (("xaxis", chart.x_title or chart.x), ("yaxis", chart.y_title or chart.y)):
        layout[name] = {"title": {"text": words(title)}, **axis, **layout.get(name, {})}
    if chart.log:
        layout["xaxis"]["type"] = "log"
    if chart.more.get("line") is not None:
        layout.setdefault("shapes", []).append(
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": chart.more["line"],
                "y1": chart.more["line"],
                "line": {"color": "@soft", "width": 1, "dash": "dot"},
            }
        )
    for i, trace in enumerate(traces):
        if chart.more.get("shown") and int(trace.get("legendgroup", i)) >= chart.more["shown"]:
            trace["visible"] = "legendonly"  # a click on its name shows it
    several = sum(bool(trace.get("showlegend", True)) for trace in traces) > 1
    layout |= {
        "showlegend": several,
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "font": {"size": 12}},
        "font": {"color": "@ink", "size": 13},
        "paper_bgcolor": "@paper",
        "plot_bgcolor": "@paper",
        "margin": {"l": 12, "r": 16, "t": 12, "b": 12},
        "hoverlabel": {"bgcolor": "@paper", "bordercolor": "@soft", "font": {"color": "@ink"}},
    }
    height = layout.pop("height", 400) + (22 * math.ceil(len(groups(chart)) / 3) if several else 0)
    found = {"data": traces, "layout": layout, "height": height}
    if "ticktext" in layout["yaxis"]:  # for a phone
        found["short"] = [words(_short(name)) for name in _down(chart)]
    return found


def words(text: Any) -> str:
    """Text for plotly, which reads a little HTML: escaped."""
    return str(escape(str(text)))


def _down(chart: Chart) -> list[Any]:
    assert chart.table is not None
    return chart.table.column(chart.y) if chart.form == "ranks" else names_of(chart)


def _short(name: Any, most: int = 17) -> str:
    text = str(name)
    return text if len(text) <= most else text[: most - 1] + "…"


def groups(chart: Chart) -> list[Any]:
    """The values of `by`, in the order of the table; [None] without."""
    assert chart.table is not None
    return list(dict.fromkeys(chart.table.column(chart.by))) if chart.by else [None]


def names_of(chart: Chart) -> list[Any]:
    """The values along the axis of names, in the order of the table; those without a y are left out."""
    assert chart.table is not None
    return list(dict.fromkeys(row[chart.x] for row in chart.table.records() if row[chart.y] is not None))


def series(chart: Chart) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Each value of `by` with its rows, shares as per cent; rows without a y are left out."""
    assert chart.table is not None
    rows = [
        {k: 100 * v if k in chart.percent and v is not None else v for k, v in r.items()} for r in chart.table.records()
    ]
    found = []
    for group in groups(chart):
        own = [row for row in rows if chart.by is None or row[chart.by] == group]
        found.append((group, [row for row in own if row[chart.y] is not None]))
    return found


def _lines(chart: Chart) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    traces: list[dict[str, Any]] = []
    for i, (group, rows) in enumerate(series(chart)):
        colour, name = f"@series-{i % SERIES}", words(group) if group is not None else ""
        x = _plain([row[chart.x] for row in rows])
        if chart.low and chart.high:
            inside = [row for row in rows if row[chart.low] is not None and row[chart.high] is not None]
            edge = _plain([row[chart.x] for row in inside])
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": edge + edge[::-1],
                    "fill": "toself",
                    "fillcolor": colour,
                    "y": [row[chart.high] for row in inside] + [row[chart.low] for row in inside][::-1],
                    "opacity": 0.15,
                    "line": {"width": 0, "color": colour},
                    "hoverinfo": "skip",
                    "showlegend": False,
                    "legendgroup": str(i),
                }
            )
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": x,
                "y": [row[chart.y] for row in rows],
                "name": name,
                "line": {"color": colour, "width": 2, "dash": ("solid", "dash", "dot")[i // SERIES % 3]},
                "marker": {"color": colour, "size": 6},
                "legendgroup": str(i),
                "hovertemplate": f"{name} %{{x}}: %{{y:.5~g}}<extra></extra>",
            }
        )
    return traces, {"hovermode": "closest"}


def _bars(chart: Chart) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    traces, names = [], names_of(chart)
    for i, (group, rows) in enumerate(series(chart)):
        along, up = _plain([row[chart.x] for row in rows]), [row[chart.y] for row in rows]
        trace = {
            "type": "bar",
            "marker": {"color": f"@series-{i % SERIES}"},
            "name": "" if group is None else words(group),
            "hovertemplate": "%{label}: %{value:.5~g}<extra></extra>",
        }
        trace |= {"orientation": "h", "y": along, "x": up} if chart.sideways else {"x": along, "y": up}
        if chart.low and chart.high:
            trace["error_x" if chart.sideways else "error_y"] = _error(chart, rows)
        traces.append(trace)
    if not chart.sideways:
        return traces, {"xaxis": _named(names), "barmode": "group"}
    turned = {"xaxis": {"title": {"text": words(chart.y_title or chart.y)}}, "yaxis": _named(names, down=True)}
    return traces, {**turned, "barmode": "group", "height": 90 + len(names) * max(ROW, 16 * len(traces))}


def _points(chart: Chart) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    traces = []
    for i, (group, rows) in enumerate(series(chart)):
        labels = [words(row[chart.text]) for row in rows] if chart.text else None
        trace: dict[str, Any] = {
            "type": "scatter",
            "mode": "markers",
            "x": _plain([row[chart.x] for row in rows]),
            "y": [row[chart.y] for row in rows],
            "name": "" if group is None else words(group),
            "marker": {"color": f"@series-{i % SERIES}", "size": 9},
        }
        if labels:
            trace |= {"text": labels, "hovertemplate": "%{text}<br>%{x:.5~g}, %{y:.5~g}<extra></extra>"}
            if len(chart.table.rows if chart.table else []) <= NAMED:
                trace |= {"mode": "markers+text", "textposition": "middle right", "cliponaxis": False}
        if chart.low and chart.high:
            trace["error_y"] = _error(chart, rows)
        traces.append(trace)
    return traces, {"hovermode": "closest"}


def _dots(chart: Chart) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Names down the side, a point and its interval for each."""
    traces, names = [], names_of(chart)
    for i, (group, rows) in enumerate(series(chart)):
        trace = {
            "type": "scatter",
            "mode": "markers",
            "y": _plain([row[chart.x] for row in rows]),
            "x": [row[chart.y] for row in rows],
            "name": "" if group is None else words(group),
            "marker": {"color": f"@series-{i % SERIES}", "size": 9},
            "hovertemplate": "%{y}: %{x:.5~g}<extra></extra>",
        }
        if chart.low and chart.high:
            trace["error_x"] = _error(chart, rows) | {"color": f"@series-{i % SERIES}"}
        traces.append(trace)
    return traces, {
        "xaxis": {"title": {"text": words(chart.y_title or chart.y)}},
        "height": 90 + ROW * len(names),
        "hovermode": "closest",
        "yaxis": _named(names, down=True),
    }


def _named(names: Sequence[Any], *, down: bool = False) -> dict[str, Any]:
    """An axis of names; `down`: from top to bottom."""
    axis = {"type": "category", "categoryorder": "array", "categoryarray": _plain(names)}
    if not down:
        return axis
    end = {"range": [len(names) - 0.4, -0.6], "title": {"text": ""}}
    return axis | end | {"tickvals": list(range(len(names))), "ticktext": _plain(names)}


def _heatmap(chart: Chart) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    assert chart.table is not None
    records = chart.table.records()
    xs, ys = (list(dict.fromkeys(r[c] for r in records)) for c in (chart.x, chart.y))
    found = {(r[chart.x], r[chart.y]): r[chart.value] for r in records}  # type: ignore[index]
    z = [[found.get((x, y)) for x in xs] for y in ys]
    low, high = chart.more.get("band", (None, None))
    if low is None and all(value is None or value >= 0 for row in z for value in row):
        low = 0  # so that small shares are not as pale as none
    ends = (
        ("@heat-low", "@heat-middle", "@heat-high") if low is not None and low < 0 else ("@heat-middle", "@heat-high")
    )
    scale = [[i / (len(ends) - 1), colour] for i, colour in enumerate(ends)]
    trace = {
        "type": "heatmap",
        "x": _plain(xs),
        "y": _plain(ys),
        "z": z,
        "zmin": low,
        "zmax": high,
        "colorscale": scale,
        **({"texttemplate": "%{z:.2f}"} if len(xs) <= 14 else {}),
        "hovertemplate": "%{x}, %{y}: %{z:.3f}<extra></extra>",
        "showlegend": False,
        "colorbar": {"outlinewidth": 0, "thickness": 12},
    }
    axis = {"type": "category", "title": {"text": ""}}
    return [trace], {"xaxis": axis, "yaxis": {**axis, "autorange": "reversed"}, "height": 140 + 30 * len(ys)}


def _ranks(chart: Chart) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Names in order, a point at each average rank; upright bars at the right join what cannot be told apart."""
    assert chart.table is not None
    names, average = chart.table.column(chart.y), chart.table.column(chart.x)
    k = len(names)
    place = {name: i for i, name in enumerate(names)}
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": average,
        "y": list(range(k)),
        "text": _plain(names),
        "showlegend": False,
        "marker": {"color": "@series-0", "size": 10},
        "hovertemplate": "%{text}: %{x:.2f}<extra></extra>",
    }
    shapes = [
        {
            "type": "line",
            "x0": bar,
            "x1": bar,
            "y0": place[group[0]] - 0.3,
            "y1": place[group[-1]] + 0.3,
            "line": {"color": "@ink", "width": 4},
        }
        for bar, group in zip(bars_at(chart), chart.more.get("groups", []), strict=True)
    ]
    notes = []
    difference = chart.more.get("difference")
    if difference is not None:
        end = 1 + min(difference, k - 1)
        shapes.append({"type": "line", "x0": 1, "x1": end, "y0": -1, "y1": -1, "line": {"color": "@ink", "width": 2}})
        told = f"critical difference {difference:.2f}" + (" (wider than the scale)" if difference > k - 1 else "")
        notes.append({"x": 1, "y": -1, "text": told, "showarrow": False, "xanchor": "left", "yanchor": "bottom"})
    right = max([k, *bars_at(chart)])
    return [dots], {
        "shapes": shapes,
        "annotations": notes,
        "height": 110 + ROW * (k + 1),
        "xaxis": {"range": [0.7, right + 0.3], "title": {"text": words(chart.x_title)}},
        "yaxis": {
            "range": [k - 0.4, -1.9],
            "tickvals": list(range(k)),
            "ticktext": _plain(names),
            "title": {"text": ""},
        },
    }


def bars_at(chart: Chart) -> list[float]:
    """Where the bars of a rank diagram stand, right of the worst rank."""
    assert chart.table is not None
    k = len(chart.table.rows)
    return [k + (0.06 * k) * (i + 1) for i in range(len(chart.more.get("groups", [])))]


def _error(chart: Chart, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    def distance(row: dict[str, Any], edge: str, sign: int) -> float:
        return 0.0 if row[edge] is None else sign * (row[edge] - row[chart.y])

    assert chart.low and chart.high
    return {
        "type": "data",
        "symmetric": False,
        "array": [distance(r, chart.high, 1) for r in rows],
        "thickness": 1.5,
        "width": 4,
        "arrayminus": [distance(r, chart.low, -1) for r in rows],
        "color": "@ink",
    }


def _plain(values: Sequence[Any]) -> list[Any]:
    return [words(value) if isinstance(value, str) else value for value in values]


DRAWN = {"lines": _lines, "bars": _bars, "points": _points, "dots": _dots, "heatmap": _heatmap, "ranks": _ranks}
