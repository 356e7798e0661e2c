"""One table renders itself everywhere, from plain values."""

import csv
import io

import pytest
from rich.console import Console

from nearkin.errors import NearkinError
from nearkin.present import Column, Shown, Table, pivot, read
from nearkin.progress import Screen
from nearkin.units import AGE, BYTES, COUNT, NUMBER, POINTS, SECONDS, SHARE, UNITS, WORDS, P, counted


@pytest.fixture
def table():
    columns = [
        "method",
        Column("recall@1", unit=SHARE, plus_minus="std", about="the nearest is right"),
        "std",
        Column("low", "95 % interval", unit=SHARE, to="high", star="cut"),
        "high",
        "cut",
        Column("p", "p (Holm)", unit=P),
        Column("value", unit="kind"),
        "kind",
    ]
    rows = [
        ["small [net] $5", 0.12345, 0.011, 0.1, 1.0, True, 0.0004, 1_500_000, "bytes"],
        ["=cmd()|x", None, None, None, None, None, 0.0312, 7500, "seconds"],
        ["007", 0.5, None, 0.25, 0.25, False, None, None, None],
    ]
    return Table("board", columns, rows, "a title", ["one note", "two"], warn=[1])


def test_records_are_rows():
    columns = ["method", Column("value", unit=NUMBER)]
    table = Table.of_records(
        "one", columns, [{"value": 0.5, "method": "a", "more": 1}, {"method": "b"}], title="A title"
    )
    assert table.rows == [["a", 0.5], ["b", None]]
    assert (table.title, table.columns[1].unit) == ("A title", NUMBER)


def printed(table):
    screen = Screen(file=io.StringIO(), width=160)
    screen.print(table.rich())
    return screen.file.getvalue()


TEXTS = [
    ["small [net] $5", "12.35 ± 1.10", "10.00 to 100.00*", "< 0.001", "1.5 MB"],
    ["=cmd()|x", "–", "–", "0.031", "2 h 5 min"],
    ["007", "50.00", "25.00", "–", "–"],
]


def test_texts_come_from_values(table):
    assert [column.title for column in table.shown] == ["method", "recall@1 %", "95 % interval %", "p (Holm)", "value"]
    assert table.texts() == TEXTS


def test_every_rendering_shows_the_same_texts(table):
    terminal, html, markdown, latex = printed(table), str(table.html()), table.markdown(), table.latex()
    for line in TEXTS:
        for cell in line[1:]:
            assert cell in terminal
            assert cell.replace("<", "&lt;") in html
            assert cell in markdown
            assert cell.replace("–", "--").replace("±", r"$\pm$").replace("<", r"\textless{}") in latex
    assert "small [net] $5" in terminal
    assert "one note" in terminal
    assert r"=cmd()\|x" in markdown
    assert markdown.endswith("\nOne note.\n\nTwo.\n")
    assert r"small [net] \$5" in latex
    assert latex.startswith(r"\begin{tabular}{lrrrr}")
    assert 'data-column="1"' in html
    assert 'data-row="2"' in html
    assert 'title="the nearest is right"' in html
    assert '<tr data-row="1" class="warning">' in html


def test_one_digit_setting_changes_every_rendering(table, monkeypatch):
    monkeypatch.setattr(SHARE, "digits", 1)
    for rendered in (
        printed(table),
        str(table.html()),
        table.latex(),
        table.markdown(),
        str(table),
        table._repr_html_(),
    ):
        assert "12.3 " in rendered
        assert "12.35" not in rendered


def test_csv_holds_plain_values_and_no_formulas(table, tmp_path):
    lines = list(csv.DictReader(table.write(tmp_path / "a.csv").read_text().splitlines()))
    assert [line["method"] for line in lines] == ["small [net] $5", "'=cmd()|x", "007"]
    assert [line["recall@1"] for line in lines] == ["0.12345", "", "0.5"]
    assert lines[0]["cut"] == "true"
    assert lines[0]["notes"] == "one note; two"


def test_parquet_describes_itself(table, tmp_path):
    again = read(table.write(tmp_path / "a.parquet"))
    assert again.rows == table.rows
    assert again.columns == table.columns
    assert again.texts() == table.texts()
    assert (again.title, again.notes, list(again.warn)) == (table.title, table.notes, [1])


def test_arrow_and_pandas(table):
    arrow = table.to_arrow()
    assert arrow.column("method").to_pylist()[2] == "007"
    assert arrow.column("recall@1").to_pylist() == [0.12345, None, 0.5]
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: to_pandas says so")
    assert isinstance(table.to_pandas(), pandas.DataFrame)


def test_without_pandas_there_is_a_sentence(table, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(NearkinError, match="pip install pandas"):
        table.to_pandas()


def test_an_ending_that_is_no_format(table, tmp_path):
    with pytest.raises(NearkinError, match=r"a\.xls: a table is written as \.csv, \.md, \.tex, \.parquet"):
        table.write(tmp_path / "a.xls")


def test_a_row_that_does_not_fit():
    with pytest.raises(ValueError, match="a row of 1 values"):
        Table("t", ["a", "b"], [[1]])


def test_only_and_without_gaps(table):
    assert table.only(["recall@1"]).header == ["recall@1", "std"]
    assert table.only(table.header[::-1]).shown == table.shown[::-1]
    empty = Table("t", ["a", Column("b", unit=SHARE)], [[1, None], [2, None]])
    assert empty.without_gaps().header == ["a"]


def test_a_column_of_numbers_is_set_right():
    table = Table("t", ["words", "whole"], [["a", 1], ["b", None]])
    assert [table.is_numeric(column) for column in table.columns] == [False, True]


def test_without_rows_the_words_remain():
    text = str(Table("t", ["a"], [], "title", ["nothing yet"]))
    assert text == "title\nnothing yet"


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        (SHARE, 0.1234, "12.34"),
        (SHARE, float("nan"), "–"),
        (POINTS, -0.0034, "-0.34"),
        (NUMBER, 1.23456, "1.235"),
        (COUNT, 12345, "12,345"),
        (SECONDS, 40, "40 s"),
        (SECONDS, 200, "3 min"),
        (SECONDS, 7500, "2 h 5 min"),
        (AGE, 7200, "2 h"),
        (AGE, -100, "in the future"),
        (BYTES, 1, "1 byte"),
        (BYTES, 999_960, "1.0 MB"),
        (P, 0.0005, "< 0.001"),
        (P, 0.04, "0.040"),
        (WORDS, True, "yes"),
        (WORDS, 0.123456, "0.1235"),
        (WORDS, 12345.6, "12,346"),
        (WORDS, 1234, "1,234"),
        (WORDS, "007", "007"),
    ],
)
def test_units(unit, value, text):
    assert unit.text(value) == text


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_every_unit_has_a_gap(unit):
    assert unit.text(None) == "–"


def test_counted():
    assert [counted(1, "seed"), counted(2, "seed"), counted(1000, "class", "classes")] == [
        "1 seed",
        "2 seeds",
        "1,000 classes",
    ]


def test_a_result_shows_its_tables(table):
    class Result(Shown):
        words = ("a sentence [bold]",)
        tables = (table, Table("more", ["hidden"], [[1]], detail=True))

    result = Result()
    assert "a sentence [bold]" in str(result)
    assert "12.35" in str(result)
    assert "hidden" not in str(result)
    assert "<table>" in result._repr_html_()
    assert result.to_arrow().num_rows == 3
    console = Console(file=io.StringIO())
    console.print(*result.rich())


def test_a_long_table_as_a_matrix():
    """The numbers, and what they show beside them; a cell without a row is a gap."""
    value = Column("r", unit=SHARE, digits=1, plus_minus="spread", star="mark")
    rows = [["a", "k1", "a", 0.5, 0.1, "*†"], ["a", "k1", "b", 0.25, None, ""], ["b", "k2", "a", 1.0, 0.0, ""]]
    long = Table("long", ["first", "kind", "second", value, Column("spread", unit=SHARE), "mark"], rows)
    made = pivot(long, "matrix", down="first", across="second", value="r", along=["kind"])
    assert [column.title for column in made.shown] == ["first", "kind", "a %", "b %"]
    assert made.texts() == [["a", "k1", "50.0 ± 10.0*†", "25.0"], ["b", "k2", "100.0 ± 0.0", "–"]]
    assert made.column("r b") == [0.25, None]
