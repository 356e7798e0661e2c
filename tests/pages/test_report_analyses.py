"""Stored analyses in the page: charts that live, tables as they were stored, nothing that belongs to other runs."""

import base64
import io
import json
import re
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image
from stores import losses_study

from nearkin.analysis.base import Analysis
from nearkin.comparison.gather import gather
from nearkin.pages._analyses import LARGEST, picture, sections
from nearkin.present import Bars, Column, Panels, Pictures, Table
from nearkin.registry import ANALYSES
from nearkin.units import NUMBER, SHARE


@dataclass
class Marked(Analysis):
    """What a test finds.

    Not told in the page.
    """

    mark: str

    @property
    def numbers(self):
        return {"mark": self.mark, "inside": {"x": 0.5, "many": [1, 2, 3]}}

    @property
    def tables(self):
        value = Column("value", unit=NUMBER)
        rows = [["a & b", 0.5, None], ["c", 0.123, 3.0]]
        small = Table(
            "one", ["method", value, Column("other", "value", NUMBER)], rows, "A table", [f"mark {self.mark}"]
        )
        drawn = Table("drawn", ["method", Column("score", unit=SHARE)], [["a", 0.25], ["b", 0.5]], detail=True)
        return [small, drawn, Table("rest", ["x"], [[1]], "Further rows", detail=True)]

    @property
    def charts(self):
        bars = Bars(name="bars", title="Bars", table=self.tables[1], x="method", y="score", alt="Two bars.")
        sheet = Pictures(name="sheet", title="Pictures", images=[[np.zeros((8, 8, 3), np.uint8)]], alt="A black image.")
        return [bars, sheet, Panels(name="panels", charts=[bars, bars], across=2)]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(ANALYSES, "_registered", dict(ANALYSES._classes))
    ANALYSES.register("marked")(Marked)
    return losses_study(tmp_path / "runs", {"contrastive": {0: 0.5, 1: 0.6}, "triplet": {0: 0.4, 1: 0.3}})


def by_id(made):
    return {section.id: section for section in made}


def test_a_study_shows_what_was_stored_with_it(store):
    folder = store / "studies" / "toy" / "analysis"
    Marked("of the study").save(folder)
    Marked("of a run").save(store / "contrastive0" / "analysis")
    section = by_id(sections(gather(["toy"], store)))["analysis-marked"]
    assert section.lead == "What a test finds."
    bars, sheet, panels, grid, rest = section.parts
    assert (bars.kind, bars.title) == ("chart", "Bars")
    assert bars.data()["figure"]["data"][0]["y"] == [25, 50]  # the chart lives: it is drawn from the stored table
    assert "Two bars." in bars.html()
    assert ">25.00<" in bars.html()
    assert bars.table.rows == [["a", 0.25], ["b", 0.5]]
    assert {"xaxis", "xaxis2"} <= set(panels.data()["figure"]["layout"])
    inside = re.search(r'src="data:image/png;base64,([^"]+)"', str(sheet.html()))[1]
    assert base64.b64decode(inside) == (folder / "marked-sheet.png").read_bytes()
    assert grid.table.header == ["method", "value", "other"]
    assert grid.table.rows == [["a & b", 0.5, None], ["c", 0.123, 3]]
    assert [cell in grid.html() for cell in (">0.500<", ">0.123<", ">3.000<", ">–<", "a &amp; b")] == [True] * 5
    assert "Mark of the study." in grid.html()
    assert rest.title == "Further rows"
    ids = [part.id for part in section.parts]
    assert len(set(ids)) == len(ids)


def test_a_run_shows_its_own_and_nothing_of_others(store):
    Marked("of a run").save(store / "contrastive0" / "analysis")
    Marked("of several runs").save(store / "analysis")
    alone = by_id(sections(gather(["contrastive0"], store)))["analysis-marked"]
    assert alone.parts[3].table.notes == ["mark of a run"]
    assert sections(gather(["triplet00000"], store)) == []
    rows = by_id(sections(gather(["toy"], store)))["analyses"].parts[0].table.rows  # of the study there is nothing
    assert [(row[0], row[3], row[4], row[5]) for row in rows] == [
        ("marked", "contrastive0", "mark", "of a run"),
        ("marked", "contrastive0", "inside.x", 0.5),
    ]


@pytest.mark.parametrize("damage", ["old form", "another version", "damaged", "table gone", "table damaged"])
def test_what_cannot_be_shown_says_how_to_make_it_again(store, damage):
    """An analysis in the form of an earlier version, with its sheets of words, is no traceback."""
    folder = store / "studies" / "toy" / "analysis"
    Marked("x").save(folder)
    file = folder / "marked.json"
    if damage == "old form":
        file.write_text(json.dumps({"version": 1, "options": {}, "mark": "x"}))
        sheet = {"title": "", "header": ["a"], "rows": [["1"]], "numbers": 1, "notes": []}
        (folder / "marked-sheets.json").write_text(json.dumps([sheet]))
    elif damage == "another version":
        file.write_text(json.dumps({**json.loads(file.read_text()), "version": 0}))
    elif damage == "damaged":
        file.write_text('{"version": 1, "opt')
    elif damage == "table gone":
        (folder / "marked-drawn.parquet").unlink()
    else:
        (folder / "marked-drawn.parquet").write_text("PAR1")
    (words,) = by_id(sections(gather(["toy"], store)))["analysis-marked"].parts
    assert "`nearkin analyse marked toy` renews it" in words.text


def test_a_slice_shows_what_was_stored_with_it(store):
    """Nothing of the whole study; what an earlier version stored is renewed for the slice."""
    folder = store / "studies" / "toy" / "analysis"
    Marked("of the study").save(folder)
    part = gather(["toy"], store, ["loss=triplet"])
    assert "analysis-marked" not in by_id(sections(part))
    Marked("of the slice").save(folder / "loss=triplet")
    assert by_id(sections(part))["analysis-marked"].parts[3].table.notes == ["mark of the slice"]
    (folder / "loss=triplet" / "marked.json").write_text("{}")
    (words,) = by_id(sections(part))["analysis-marked"].parts
    assert "`nearkin analyse marked toy --where loss=triplet` renews it" in words.text


def test_a_large_picture_is_made_smaller(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (600, 600, 3), dtype=np.uint8)
    file = tmp_path / "large.png"
    Image.fromarray(noise).save(file)
    assert file.stat().st_size > LARGEST
    html = str(picture(Pictures(name="large", alt="noise", file=str(file))).html())
    content = base64.b64decode(re.search(r'src="data:image/webp;base64,([^"]+)"', html)[1])
    assert len(content) < file.stat().st_size
    assert Image.open(io.BytesIO(content)).size == (600, 600)


@dataclass
class Named(Analysis):
    """Classes whose names look like numbers."""

    @property
    def numbers(self):
        return {}

    @property
    def tables(self):
        columns = ["class", Column("images"), Column("share", unit=NUMBER, digits=2, signed=True), "nearest"]
        return [Table("one", columns, [["007", 1234567, 0.5, "1_2"], ["1_2", 8, -1.25, "007"]])]


def test_text_stays_text_and_numbers_stay_numbers(store):
    """Through the files: nothing is read from how it was printed."""
    ANALYSES.register("named")(Named)
    Named().save(store / "studies" / "toy" / "analysis")
    (grid,) = by_id(sections(gather(["toy"], store)))["analysis-named"].parts
    assert grid.table.rows == [["007", 1234567, 0.5, "1_2"], ["1_2", 8, -1.25, "007"]]
    html = str(grid.html())
    assert [cell in html for cell in (">007<", ">1_2<", ">1,234,567<", ">+0.50<", ">-1.25<")] == [True] * 5
