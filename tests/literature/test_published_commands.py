"""`nearkin published`."""

import csv
import json

import pytest
from rich.console import Console
from typer.testing import CliRunner

from nearkin.cli import screen
from nearkin.cli.app import app
from nearkin.errors import NearkinError


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """A screen of 160 characters, wherever the tests run."""
    monkeypatch.setattr(screen, "out", Console(width=160))


def said(*words):
    found = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert found.exit_code == 0
    return found.stdout


def test_all_tables_are_listed():
    found = json.loads(said("published", "--json"))
    assert len(found) == 69
    assert {row["table"]: row["flags"] for row in found}["drml_t3"] == 7
    assert "69 published tables" in said("published")


def test_a_table_shows_marks_flags_protocol_and_spread():
    text = said("published", "thesis_t11")
    assert "8.85*" in text
    assert "* misprint: Triplet" in text
    assert "protocol: first half of the classes trains" in text
    assert "±: standard deviation of the 12 ranks" in text


def test_a_wide_table_keeps_its_names_on_the_screen():
    text = said("published", "kobs_t1")
    assert text.count("SNR Con.  ") >= 2  # a row in each half
    assert "…" not in text


def test_a_table_as_json():
    found = json.loads(said("published", "hist_t5", "--json"))
    assert found["rows"][0]["values"]["Cars196 R@1"] == {"mean": 87.8, "spread": 0.3}


def test_a_table_as_files(tmp_path):
    said(
        "published",
        "thesis_t10d",
        "--csv",
        str(tmp_path / "t.csv"),
        "--markdown",
        str(tmp_path / "t.md"),
        "--latex",
        str(tmp_path / "t.tex"),
    )
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [(row["R@1000"], row["R@1000 flagged"]) for row in rows if row["method"] == "ArcFace"] == [("34.27", "true")]
    assert "surely 94.27" in rows[0]["notes"]
    assert "| ArcFace |" in (tmp_path / "t.md").read_text()
    assert r"ArcFace & " in (tmp_path / "t.tex").read_text()


def test_unknown_names():
    with pytest.raises(NearkinError, match="did you mean thesis_t11"):
        said("published", "thesis_t_11")
    with pytest.raises(NearkinError, match="did you mean roth2020"):
        said("published", "--claims", "--source", "roth2002")


def test_claims():
    text = said("published", "--claims", "--source", "psomas2020")
    assert "18 claims in their own tables: 10 hold, 7 do not, 1 cannot be checked" in text
    assert "no failure rate may be read from them" in text
    found = {each["id"]: each for each in json.loads(said("published", "--claims", "--json"))}
    assert len(found) == 44
    assert found["psomas_margin_npair_below_4"]["holds"] is False
    assert found["psomas_margin_npair_below_4"]["measured"] == 4.09
