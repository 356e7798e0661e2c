"""Names that somebody else gave, a class `$_$x` or a column `$\\frac`, in every chart: shown letter by letter."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from nearkin.present import Bars, Column, Dots, Heatmap, Lines, Panels, Pictures, Points, Ranks, Table
from nearkin.present.drawing import label
from nearkin.units import NUMBER

NAME = r"$_$x $\frac$"  # mathtext that cannot be parsed
TABLE = Table(
    "one",
    ["method", "other", Column("x", unit=NUMBER), Column("y", unit=NUMBER)],
    [[NAME, NAME, 0.0, 1.0], ["plain", NAME, 1.0, 0.5], [NAME, "plain", 1.0, 2.0]],
)
BARS = Bars(name="bars", title=NAME, table=TABLE, x="method", y="y")
CHARTS = {
    "bars": BARS,
    "lines": Lines(name="lines", table=TABLE, x="x", y="y", by="method"),
    "points": Points(name="points", table=TABLE, x="x", y="y", by="method"),
    "dots": Dots(name="dots", table=TABLE, x="method", y="y"),
    "heatmap": Heatmap(name="heatmap", table=TABLE, x="method", y="other", value="y"),
    "ranks": Ranks(
        name="ranks", table=replace(TABLE, rows=TABLE.rows[:2]), x="y", y="method", joined=[[NAME, "plain"]]
    ),
    "pictures": Pictures(name="pictures", images=[[np.zeros((8, 8, 3), np.uint8)]], captions=[[NAME]]),
    "panels": Panels(name="panels", title="two", charts=[BARS, BARS], across=2),
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_name_is_no_mathematics(name, tmp_path):
    figure = CHARTS[name].figure()
    figure.savefig(tmp_path / "figure.png")
    texts = " ".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text")))
    assert r"\$" in texts


def test_a_label_is_shown_as_it_is():
    for text in (NAME, "$", "$a$", r"\$5", "plain", "1_2"):
        drawn = Figure().text(0, 0, label(text))
        shown, is_mathematics = drawn._preprocess_math(drawn.get_text())
        assert (shown, is_mathematics) == (text, False)
