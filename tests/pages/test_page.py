"""What a page is made of: escaping, ids, charts in both renderers, files."""

import csv
import json

import pytest
from pages.stored import plain_study, write_run
from typer.testing import CliRunner

from nearkin.cli.app import app
from nearkin.comparison.gather import gather
from nearkin.errors import NearkinError
from nearkin.pages._base import Figure, Grid, Section, Words, slug
from nearkin.pages._build import build
from nearkin.pages._export import export
from nearkin.pages._page import Page, embedded, render
from nearkin.pages._scrub import Scrubber
from nearkin.pages.report import report
from nearkin.present import Bars, Column, Dots, Heatmap, Lines, Points, Ranks, Table
from nearkin.units import SHARE

HOSTILE = '</script><script>alert("x")</script>&\u2028\u2029'


def page_of(*parts):
    return Page(
        "title " + HOSTILE,
        ["lead " + HOSTILE],
        [("what", HOSTILE, HOSTILE)],
        [Section("one", HOSTILE, HOSTILE, list(parts))],
    )


def test_json_cannot_end_its_element():
    text = embedded({"a": [HOSTILE, float("nan"), float("inf"), 1.5, None]})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"a": [HOSTILE, None, None, 1.5, None]}


def test_no_data_become_markup():
    columns = [Column("name " + HOSTILE, HOSTILE, about=HOSTILE), Column("value")]
    rows = [[HOSTILE, 1.0], ["<img src=x onerror=alert(1)>", 2.0]]
    table = Table("grid", columns, rows, HOSTILE, [HOSTILE])
    words = {"title": HOSTILE, "alt": HOSTILE, "notes": [HOSTILE]}
    grid, chart = Grid(table), Figure(Dots(name="chart", table=table, x=table.header[0], y="value", **words))
    html = render(page_of(Words(HOSTILE, "warning"), grid, chart))
    assert '<script>alert("x")' not in html
    assert "<img src=x" not in html
    assert html.count("<script>") == html.count("<script>\n") + 1  # ours alone: plotly, the scripts, and the start


@pytest.mark.parametrize(("ids", "named"), [(("a", "a"), "a"), (("a b",), "a b"), (("Ab",), "Ab"), (("",), "none")])
def test_ids_are_refused_where_they_clash(ids, named):
    parts = [Grid(Table(id, ["x"], [[1]])) for id in ids]
    with pytest.raises(NearkinError, match=named):
        render(page_of(*parts))


def test_plotly_is_inside_only_for_charts():
    table = Table("t", ["x", "y"], [[1, 2.0], [2, 3.0]])
    assert len(render(page_of(Grid(table)))) < 100_000
    drawn = [form(name=form.__name__.lower(), table=table, x="x", y="y") for form in (Lines, Points)]
    with_chart = render(page_of(*map(Figure, drawn)))
    assert 4e6 < len(with_chart) < 6e6


def test_slugs():
    assert slug("CUB 200/2011: <birds>") == "cub-200-2011-lt-birds-gt"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("see /home/a/b/c.txt now", "see …/c.txt now"),
        ("C:\\Users\\a\\x.png", "…/x.png"),
        ("~/data/cub", "…/cub"),
        ("epoch 3/8, a/b and http://x.org/a/b", "epoch 3/8, a/b and http://x.org/a/b"),
        ("root: /data/me/cub}", "root: …/cub}"),
    ],
)
def test_folders_are_taken_out_of_texts(text, left):
    assert Scrubber()(text) == left


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("page") / "runs"
    plain_study(root, seeds=(0, 1))
    return root


def chart(form, **options):
    rows = [["<b>margin</b>", "a", 0.5, 0.4, 0.6], ["=cmd|x", "b", 0.25, None, None], ["$x$", "a", 0.75, 0.7, 0.8]]
    columns = ["method", "kind", *(Column(name, unit=SHARE) for name in ("mean", "low", "high"))]
    name = form.__name__.lower()
    table = Table(f"{name}-table", columns, rows)
    return form(name=f"{name}-chart", title=name, table=table, x="method", y="mean", **options)


def test_export_writes_every_chart_and_table(tmp_path):
    between = {"low": "low", "high": "high", "by": "kind"}
    cells = Table("h", ["a", "b", "v"], [["x", "y", -0.5], ["x", "z", 0.5]])
    average = Table("r", ["name", "rank"], [["a", 1.2], ["b", 1.8]])
    charts = [
        chart(Lines, **between),
        chart(Bars, lying=True, **between),
        chart(Points, text="method"),
        chart(Dots, **between),
        Heatmap(name="heat", table=cells, x="a", y="b", value="v"),
        Ranks(name="ranks", table=average, x="rank", y="name", joined=[["a", "b"]], difference=0.9),
    ]
    page = page_of(Words("no table"), *map(Figure, charts))
    files = {file.name for file in export(page, tmp_path / "out")}
    assert files == {f"{c.name}{ending}" for c in charts for ending in (".csv", ".md", ".tex", ".png", ".svg")}
    with open(tmp_path / "out" / "lines-chart.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == charts[0].table.header
    assert rows == [
        ["<b>margin</b>", "a", "0.5", "0.4", "0.6"],
        ["'=cmd|x", "b", "0.25", "", ""],
        ["$x$", "a", "0.75", "0.7", "0.8"],
    ]
    assert (tmp_path / "out" / "dots-chart.png").read_bytes()[:4] == b"\x89PNG"
    assert "&lt;b&gt;margin" in (tmp_path / "out" / "dots-chart.svg").read_text()


def refused(*words):
    result = CliRunner().invoke(app, ["report", *map(str, words)])
    assert isinstance(result.exception, NearkinError), (result.output, result.exception)
    message = str(result.exception)
    assert "\n" not in message
    return message


def test_bad_input_is_one_sentence(store, tmp_path):
    out = tmp_path / "r.html"
    assert "nothing to report" in refused("--runs", store)
    assert "did you mean plain" in refused("plian", "--runs", store, "-o", out)
    assert "as in" in refused("plain", "--runs", store, "-o", tmp_path / "r.pdf")
    assert "it is a file" in refused("plain", "--runs", store, "-o", store / "openings.jsonl" / "r.html")
    assert "nearkin compare plain --metric nmi" in refused("plain", "--runs", store, "-o", out, "--metric", "nmi")
    assert "unknown published table 'x'" in refused("plain", "--runs", store, "-o", out, "--published", "x")
    untested = write_run(tmp_path / "runs", {"loss": "triplet"}, 0.5)
    (tmp_path / "runs" / untested / "result.json").unlink()
    assert "is not tested" in refused(untested, "--runs", tmp_path / "runs", "-o", out)
    assert "no study and no run" in refused("x", "--runs", tmp_path / "nowhere", "-o", out)
    assert not out.exists()


def test_the_command_makes_folders_and_writes_the_same_page_twice(store, tmp_path):
    out = tmp_path / "new" / "deep" / "report.html"
    result = CliRunner().invoke(app, ["report", "plain", "--runs", str(store), "-o", str(out), "--no-map"])
    assert result.exception is None, result.exception
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert str(tmp_path) not in text
    again = build(gather(["plain"], store), map=False, command="nearkin report plain -o report.html --no-map")
    assert text == render(again)  # nothing in it depends on the day


def test_the_call_returns_what_the_command_writes(store, tmp_path):
    written = report("plain", runs=store, output=tmp_path / "a" / "report.html", where=["loss=triplet"], map=False)
    words = ["report", "plain", "--runs", str(store), "-o", str(tmp_path / "b" / "report.html"), "--no-map"]
    result = CliRunner().invoke(app, [*words, "--where", "loss=triplet"])
    assert result.exception is None, result.exception
    assert (tmp_path / "b" / "report.html").read_text() == written.path.read_text()
    assert str(written.path) in str(written)
    board = written.tables[0]
    trained = [row["method"] for row in board if row["kind"] != "untrained"]
    assert len(trained) == 1
    assert "<table" in written._repr_html_()
    assert written.to_arrow().num_rows == len(board)
    with pytest.raises(NearkinError, match="where=loss=x: no run has it"):
        report("plain", runs=store, output=tmp_path / "c.html", where=["loss=x"])
