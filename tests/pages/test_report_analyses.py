"""Stored analyses in the page: tables as they were stored, pictures inside, nothing that belongs to other runs."""

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
from nearkin.comparison.pages import Sheet
from nearkin.pages.analyses import LARGEST, Picture, sections
from nearkin.registry import ANALYSES


@dataclass
class Told(Analysis):
    """What a test finds.

    Not told in the page.
    """

    mark: str

    @property
    def summary(self):
        return {"mark": self.mark}

    def sheets(self):
        rows = [["a & b", "0.50", "–"], ["c", "0.123", "3"]]
        return {"one": Sheet("A table", ["method", "value", "value"], rows, 2, [f"mark {self.mark}"])}

    def files(self):
        return {"told_picture.png": lambda path: Image.new("RGB", (8, 8)).save(path)}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(ANALYSES, "_registered", dict(ANALYSES._classes))
    ANALYSES.register("told")(Told)
    return losses_study(tmp_path / "runs", {"contrastive": {0: 0.5, 1: 0.6}, "triplet": {0: 0.4, 1: 0.3}})


def by_id(found):
    return {section.id: section for section in found}


def test_a_study_shows_what_was_stored_with_it(store):
    Told("of the study").save(store / "studies" / "toy" / "analysis")
    Told("of a run").save(store / "contrastive0" / "analysis")
    section = by_id(sections(gather(["toy"], store)))["analysis-told"]
    assert section.lead == "What a test finds."
    picture, grid = section.parts
    inside = re.search(r'src="data:image/png;base64,([^"]+)"', str(picture.html()))[1]
    assert base64.b64decode(inside) == (store / "studies" / "toy" / "analysis" / "told_picture.png").read_bytes()
    assert grid.table.header == ["method", "value", "value (2)"]
    assert grid.table.rows == [["a & b", 0.5, None], ["c", 0.123, 3]]
    html = str(grid.html())
    assert "0.500" in html  # as many decimals as the column has
    assert "a &amp; b" in html
    assert grid.table.notes == ["Mark of the study."]


def test_a_run_shows_its_own_and_nothing_of_others(store):
    Told("of a run").save(store / "contrastive0" / "analysis")
    Told("of several runs").save(store / "analysis")
    alone = by_id(sections(gather(["contrastive0"], store)))["analysis-told"]
    assert alone.parts[-1].table.notes == ["Mark of a run."]
    assert sections(gather(["triplet00000"], store)) == []
    rows = by_id(sections(gather(["toy"], store)))["analyses"].parts[0].table.rows  # of the study there is nothing
    assert [(row[0], row[3], row[4], row[5]) for row in rows] == [("told", "contrastive0", "mark", "of a run")]


def test_damaged_tables_are_left_out(store):
    folder = store / "studies" / "toy" / "analysis"
    Told("x").save(folder)
    (folder / "told-sheets.json").write_text('[{"title": 3')
    assert sections(gather(["toy"], store)) == []


def test_a_large_picture_is_made_smaller(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (600, 600, 3), dtype=np.uint8)
    file = tmp_path / "large.png"
    Image.fromarray(noise).save(file)
    assert file.stat().st_size > LARGEST
    html = str(Picture(file, "noise").html())
    content = base64.b64decode(re.search(r'src="data:image/webp;base64,([^"]+)"', html)[1])
    assert len(content) < file.stat().st_size
    assert Image.open(io.BytesIO(content)).size == (600, 600)


def test_the_stored_tables_are_those_of_the_analysis(store, tmp_path):
    Told("x").save(tmp_path)
    (sheet,) = json.loads((tmp_path / "told-sheets.json").read_text())
    assert Sheet(**sheet) == Told("x").sheets()["one"]


@dataclass
class Named(Analysis):
    """Classes whose names look like numbers."""

    @property
    def summary(self):
        return {}

    def sheets(self):
        classes = Sheet(
            "",
            ["class", "images", "share", "nearest"],
            [["007", "1234567", "+0.5", "1_2"], ["1_2", "8", "-1.25", "007"]],
            3,
        )
        return {"one": classes}


def test_text_stays_text_and_numbers_stay_numbers(store):
    """Only what a table declares as numbers is read as numbers, and only where the whole column is."""
    ANALYSES.register("named")(Named)
    Named().save(store / "studies" / "toy" / "analysis")
    (grid,) = by_id(sections(gather(["toy"], store)))["analysis-named"].parts
    assert grid.table.rows == [["007", 1234567, 0.5, "1_2"], ["1_2", 8, -1.25, "007"]]
    html = str(grid.html())
    assert [cell in html for cell in (">007<", ">1_2<", ">1,234,567<", ">+0.50<", ">-1.25<")] == [True] * 5
