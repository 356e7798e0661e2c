"""`nearkin compare` as a user meets it."""

import json

import pytest
from rich.console import Console
from stores import add_run, losses_study
from typer.testing import CliRunner

from nearkin.cli import screen
from nearkin.cli.app import app
from nearkin.cli.flags import in_flags
from nearkin.comparison.result import compare

VALUES = {
    "contrastive": {0: 0.50, 1: 0.51, 2: 0.52, 3: 0.50},
    "triplet": {0: 0.30, 1: 0.312, 2: 0.32, 3: 0.30},
    "proxy_anchor": {0: 0.505, 1: 0.50, 2: 0.53, 3: 0.51},
    "untrained": {0: 0.1, 1: 0.1, 2: 0.1, 3: 0.1},
}


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """A screen of 160 characters, wherever the tests run."""
    monkeypatch.setattr(screen, "out", Console(width=160))


def nearkin(*words):
    return CliRunner().invoke(app, [str(w) for w in words])


@pytest.fixture
def store(tmp_path):
    return losses_study(tmp_path / "runs", VALUES)


def test_compare_prints_a_verdict_for_each_row(store):
    done = nearkin("compare", "toy", "--by", "loss", "--metric", "map_at_r", "--runs", store)
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    for words in ("undecided: 4 seeds", "distinguishable: contrastive", "untrained: beside the", "-19.95"):
        assert words in said
    assert "one family of 2 comparisons" in said
    assert "tied for first: proxy_anchor; contrastive" in said.lower()
    every = " ".join(nearkin("compare", "toy", "--all-pairs", "--runs", store).stdout.split())
    assert "one family of 3 comparisons" in every
    assert "distinguishable: proxy_anchor" in every


def test_a_difference_that_is_too_small_to_matter_can_be_declared(store):
    (compared,) = json.loads(nearkin("compare", "toy", "--runs", store, "--json", "--within", "3").stdout)[
        "comparisons"
    ]
    assert compared["within"] == 0.03
    assert "equivalent within ±3.00 points" in {pair["verdict"] for pair in compared["tables"]["differences"]}


def test_every_table_is_written_in_every_form(store, tmp_path):
    forms = [word for f in ("csv", "markdown", "latex") for word in (f"--{f}", tmp_path / "out" / "table")]
    done = nearkin("compare", "toy", "--runs", store, *forms, "--figures", tmp_path / "figures", "--claims")
    assert done.exit_code == 0, done.output
    files = {file.name for file in (tmp_path / "out").iterdir()}
    names = ("table", "table-differences", "table-pairs", "table-tournament", "table-values", "table-claims")
    assert files == {f"{name}{ending}" for name in names for ending in (".csv", ".md", ".tex")}
    assert len((tmp_path / "out" / "table-pairs.csv").read_text().splitlines()) == 1 + 3
    assert len((tmp_path / "out" / "table-differences.csv").read_text().splitlines()) == 1 + 3
    drawn = {file.name for file in (tmp_path / "figures").iterdir()}
    names = ("differences", "critical_difference")
    assert drawn == {f"{name}{ending}" for name in names for ending in (".png", ".svg")}
    assert all(file.stat().st_size > 5000 for file in (tmp_path / "figures").iterdir())


def test_json_is_plain(store):
    tables = json.loads(nearkin("compare", "toy", "--runs", store, "--json").stdout)["tables"]
    board = tables["leaderboard"]
    assert [row["method"] for row in board] == ["proxy_anchor", "contrastive", "triplet", "untrained"]
    assert [(row["rank"], row["rank_high"]) for row in board] == [(1, 2), (1, 2), (3, 3), (None, None)]
    assert len(tables["pairs"]) == 3
    assert len(tables["values"]) == 16


def test_claims_name_what_a_study_lacks(store):
    done = nearkin("compare", "toy", "--runs", store, "--claims")
    said = " ".join(done.stdout.split())
    assert "not tested here" in said
    nearkin("compare", "toy", "--runs", store, "--claims", "--csv", store / "t.csv")
    assert "not tested here" in (store / "t-claims.csv").read_text()


def test_a_tournament_of_ones_own(store):
    ranked = json.loads(nearkin("compare", "toy", "--ranks", "--runs", store, "--json").stdout)["tables"]["tournament"]
    assert [row["method"] for row in ranked] == ["proxy_anchor", "contrastive", "triplet"]
    assert [row["total"] for row in ranked] == [5, 7, 12]
    assert "one setting only" in nearkin("compare", "toy", "--ranks", "--runs", store).stdout


def test_the_published_tournament(tmp_path):
    done = nearkin("published", "--ranks", "--json", "--csv", tmp_path / "t.csv")
    cub = next(result for result in json.loads(done.stdout) if result["data"] == "CUB200-2011")
    totals = {m["method"]: m["total"] for m in cub["methods"]}
    assert list(totals.items()) == [
        ("ProxyAnchor", 12),
        ("SoftTriple", 38),
        ("MultiSimilarity", 51),
        ("Contrastive", 52),
        ("LiftedStructure", 54),
        ("Margin", 70),
        ("ArcFace", 79),
        ("ProxyNCA", 81),
        ("Triplet", 103),
        ("NPair", 120),
    ]
    assert next(m["average"] for m in cub["methods"] if m["method"] == "Triplet") == pytest.approx(8.58, abs=0.005)
    assert (tmp_path / "t.csv").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare"], "nothing to compare"),
        (["compare", "toi"], "no study and no run 'toi'"),
        (["compare", "toy", "--by", "lsos"], "--by lsos"),
        (["compare", "toy", "--metric", "map"], "metric"),
        (["compare", "toy", "--evaluation", "concatenated"], "--evaluation concatenated"),
        (["compare", "toy", "--against", "tripelt"], "--against tripelt: no such row on glyphs; did you mean triplet"),
        (["compare", "toy", "--where", "loss"], "--where 'loss': KEY=VALUE is needed"),
        (["compare", "toy", "--where", "loss=tripelt"], "--where loss=tripelt: no run has it; did you mean triplet"),
    ],
)
def test_bad_words(store, words, said):
    done = nearkin(*words, "--runs", store)
    assert done.exit_code != 0
    assert said in in_flags(str(done.exception))


def test_runs_of_two_data_sets_need_the_word_data(store):
    add_run(store, "other" + "0" * 7, {"loss": "triplet"}, {"map_at_r": 0.9, "recall@1": 0.9}, data_hash="elsewhere")
    done = nearkin("compare", store)
    assert "2 data sets" in str(done.exception)
    assert nearkin("compare", store, "--by", "data,loss").exit_code == 0


def test_every_row_against_one_that_is_named(store):
    compared = compare("toy", runs=store, against="triplet")
    pairs = compared.by_name["differences"]
    assert pairs.title == "glyphs: differences to triplet, map_at_r"
    assert [row["method"] for row in pairs] == ["proxy_anchor", "contrastive", "untrained"]
    assert {row["against"] for row in pairs} == {"triplet"}
    assert pairs.notes[0].startswith("one family of 2 comparisons, every trained row against triplet, as asked")


def test_an_untrained_row_can_be_the_one(store):
    pairs = compare("toy", runs=store, against="untrained").by_name["differences"]
    assert [row["method"] for row in pairs] == ["proxy_anchor", "contrastive", "triplet"]
    assert all(row["p_holm"] is not None for row in pairs)


def test_a_slice_is_a_comparison_of_its_own(store):
    sliced = compare("toy", runs=store, where=["loss=triplet", "loss=contrastive"])
    assert [row["method"] for row in sliced.tables[0]] == ["contrastive", "triplet", "untrained"]
    assert sliced.by_name["differences"].notes[0].startswith("one family of 1 comparison,")


def test_the_command_prints_what_the_call_returns(store):
    done = nearkin("compare", "toy", "--runs", store)
    assert [line.rstrip() for line in done.stdout.splitlines()] == str(compare("toy", runs=store)).splitlines()
