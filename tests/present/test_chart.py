"""One description, drawn by plotly and by matplotlib."""

import json

import numpy as np
import pytest

from nearkin.present import Bars, Column, Dots, Heatmap, Lines, Panels, Pictures, Points, Ranks, Table, described
from nearkin.present.chart import FORMS
from nearkin.units import SHARE

TABLE = Table(
    "numbers",
    ["name", "kind", "time", Column("map", "MAP@R", unit=SHARE), Column("low", unit=SHARE), Column("high", unit=SHARE)],
    [
        ["a <b> $x$", "k1", 1.0, 0.5, 0.4, 0.6],
        ["b", "k2", 10.0, 0.25, None, None],
        ["c", "k2", 100.0, None, None, None],
        ["d", "k2", 1000.0, 0.75, 0.7, 0.8],
    ],
)
SQUARE = Table("square", ["x", "y", Column("v", unit=SHARE)], [["a", "p", 0.1], ["b", "p", 0.9], ["a", "q", None]])
STANDING = Table("standing", ["method", "average"], [["a", 1.2], ["b", 2.0], ["c", 2.8]])
INTERVAL = {"low": "low", "high": "high"}
CHARTS = {
    "Lines": Lines(name="c", table=TABLE, x="time", y="map", by="kind", **INTERVAL, log=True, visible=1, line=50),
    "Bars": Bars(name="c", table=TABLE, x="name", y="map", **INTERVAL, lying=True),
    "Points": Points(name="c", table=TABLE, x="time", y="map", by="kind", text="name", **INTERVAL),
    "Dots": Dots(name="c", table=TABLE, x="name", y="map", **INTERVAL),
    "Heatmap": Heatmap(name="c", table=SQUARE, x="x", y="y", value="v"),
    "Ranks": Ranks(name="c", table=STANDING, x="average", y="method", joined=[["a", "b"]], difference=1.0),
}


def test_every_form_is_tried():
    assert set(FORMS) == {*CHARTS, "Pictures", "Panels"}


@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_both_draw_it(chart, tmp_path):
    drawn = chart.plotly()
    assert json.loads(json.dumps(drawn, allow_nan=False)) == drawn
    assert "<b>" not in json.dumps(drawn)
    assert {file.name for file in chart.save(tmp_path / "c")} == {"c.png", "c.svg"}
    assert (tmp_path / "c.png").stat().st_size > 2000


@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_a_stored_description_draws_the_same(chart):
    stored = json.loads(json.dumps(chart.describe()))
    assert described(stored, {chart.table.name: chart.table}).plotly() == chart.plotly()


def test_shares_are_drawn_in_per_cent():
    (trace,), layout = CHARTS["Dots"].traces()
    assert trace["x"] == [50, 25, 75]
    assert layout["xaxis"]["title"]["text"] == "MAP@R %"
    assert trace["error_x"]["array"] == pytest.approx([10, 0, 5])
    assert trace["error_x"]["arrayminus"] == pytest.approx([10, 0, 5])


def test_hidden_lines_wait_for_a_click():
    traces, _ = CHARTS["Lines"].traces()
    assert [trace.get("visible") for trace in traces] == [None, None, "legendonly", "legendonly"]


def test_a_level_is_a_dashed_line_across():
    """What is there without the setting stands on no place of its axis."""
    rows = [["a", 0.0, 0.3], ["a", 0.1, 0.4], ["a", 0.4, 0.5], ["b", 0.1, 0.2]]
    table = Table("t", ["name", "p", Column("map", unit=SHARE)], rows)
    chart = Lines(name="c", table=table, x="p", y="map", by="name", level=0.0)
    across, line, other = chart.traces()[0]
    assert (across["x"], across["y"], across["line"]["dash"]) == ([0.1, 0.4], [30.0, 30.0], "dash")
    assert across["line"]["color"] == line["marker"]["color"] != other["marker"]["color"]
    assert (line["x"], other["x"]) == ([0.1, 0.4], [0.1])
    drawn = chart.figure().axes[0].lines
    assert [(one.get_linestyle(), list(one.get_xdata())) for one in drawn[:2]] == [
        ("--", [0.1, 0.4]),
        ("-", [0.1, 0.4]),
    ]


def test_intervals_along_both_axes():
    spans = {"left": "left", "right": "right", "low": "low", "high": "high"}
    columns = [
        "name",
        "rho",
        "left",
        "right",
        Column("map", unit=SHARE),
        *(Column(n, unit=SHARE) for n in ("low", "high")),
    ]
    rows = [["a", 0.5, 0.25, 1.0, 0.5, 0.25, 0.75], ["b", 0.5, None, None, 0.5, None, None]]
    chart = Points(name="c", table=Table("t", columns, rows), x="rho", y="map", **spans)
    ((trace,), _) = chart.traces()
    assert (trace["error_x"]["array"], trace["error_x"]["arrayminus"]) == ([0.5, 0.0], [0.25, 0.0])
    assert (trace["error_y"]["array"], trace["error_y"]["arrayminus"]) == ([25.0, 0.0], [25.0, 0.0])
    ends = [list(line.get_xdata()) for line in chart.figure().axes[0].lines]
    assert [0.25, 1.0] in ends


def test_names_of_points_stay_in_the_frame():
    traces, _ = CHARTS["Points"].traces()
    sides = dict(
        zip([t for trace in traces for t in trace["x"]], [s for t in traces for s in t["textposition"]], strict=True)
    )
    assert sides == {1.0: "middle right", 10.0: "middle right", 1000.0: "middle left"}


def test_pictures_and_panels(tmp_path):
    image = np.zeros((8, 8, 3), np.uint8)
    sheet = Pictures(name="s", images=[[image, None], [image, image]], captions=[["a", ""]], rows=["first", "second"])
    panels = Panels(name="p", charts=[CHARTS["Lines"], CHARTS["Dots"]], across=2)
    for chart in (sheet, panels):
        chart.save(tmp_path / chart.name, (".png",))
        assert (tmp_path / f"{chart.name}.png").stat().st_size > 1000
    again = described(json.loads(json.dumps(panels.describe())), {"numbers": TABLE})
    assert again.plotly() == panels.plotly()
    assert described(sheet.describe(), {}).file == "s.png"


def test_panels_are_one_figure_with_one_legend():
    """Every panel has axes of its own; a name that stands in several of them is in the legend once."""
    both = [Lines(name="c", title=t, table=TABLE, x="time", y="map", by="kind", line=50) for t in ("one", "two")]
    drawn = Panels(name="p", charts=[*both, CHARTS["Dots"]], across=2).plotly()
    assert json.loads(json.dumps(drawn, allow_nan=False)) == drawn
    assert {"xaxis", "yaxis", "xaxis2", "yaxis2", "xaxis3", "yaxis3"} <= set(drawn["layout"])
    assert [(trace["name"], trace["xaxis"]) for trace in drawn["data"] if trace["showlegend"] and trace["name"]] == [
        ("k1", "x"),
        ("k2", "x"),
    ]
    assert [shape["yref"] for shape in drawn["layout"]["shapes"]] == ["y", "y2"]
    assert [shape["xref"] for shape in drawn["layout"]["shapes"]] == ["x domain", "x2 domain"]
    domains = [drawn["layout"][axis]["domain"] for axis in ("yaxis", "yaxis3")]
    assert domains[0][0] > domains[1][1]  # the third begins a new row


def test_a_chart_of_some_rows():
    chart = Bars(name="c", table=TABLE, x="name", y="map", only={"kind": "k2"})
    assert chart.names() == ["b", "d"]
    several = Bars(name="c", table=TABLE, x="name", y="map", only={"kind": "k2", "name": ["a <b> $x$", "d"]})
    assert several.names() == ["d"]
    (trace,) = chart.traces()[0]
    assert trace["y"] == [25, 75]
    assert described(json.loads(json.dumps(chart.describe())), {"numbers": TABLE}).plotly() == chart.plotly()


def test_a_reference_line_crosses_the_axis_of_values():
    upright, lying = (Bars(name="c", table=TABLE, x="name", y="map", line=40, lying=lying) for lying in (False, True))
    (shape,) = upright.plotly()["layout"]["shapes"]
    assert (shape["xref"], shape["y0"], shape["y1"]) == ("paper", 40, 40)
    (shape,) = lying.plotly()["layout"]["shapes"]
    assert (shape["yref"], shape["x0"], shape["x1"]) == ("paper", 40, 40)
    (line,) = (drawn for drawn in lying.figure().axes[0].lines)
    assert line.get_xdata() == [40, 40]


def test_logarithmic_axes():
    chart = Lines(name="c", table=TABLE, x="time", y="map", log_y=True)
    assert chart.plotly()["layout"]["yaxis"]["type"] == "log"
    assert (chart.figure().axes[0].get_xscale(), chart.figure().axes[0].get_yscale()) == ("linear", "log")


@pytest.mark.parametrize(("sizes", "expected"), [([128, 512], ["128", "512"]), (list(range(1, 20)), None)])
def test_few_values_have_their_ticks_on_a_logarithmic_axis(sizes, expected):
    table = Table("t", ["size", "map"], [[size, 0.5] for size in sizes])
    chart = Lines(name="c", table=table, x="size", y="map", log=True)
    axis = chart.plotly()["layout"]["xaxis"]
    assert axis.get("tickvals") == (sizes if expected else None)
    drawn = [text.get_text() for text in chart.figure().axes[0].get_xticklabels()]
    assert (drawn == expected) == bool(expected)


def test_a_notebook_shows_a_chart():
    assert CHARTS["Dots"]._repr_png_().startswith(b"\x89PNG")
