"""Claims against stored runs: which runs are a row, what is read, and what is never opened."""

from types import SimpleNamespace

import pytest
from rich.console import Console
from stores import add_run, add_study
from typer.testing import CliRunner

from nearkin.cli import screen
from nearkin.cli.app import app
from nearkin.comparison.claims import check_claims, claims_table, measured_claims, rows_of
from nearkin.comparison.compare import compare
from nearkin.comparison.gather import gather
from nearkin.comparison.verdicts import all_pairs
from nearkin.literature.decisions import ELSEWHERE, FAILS, HOLDS, OPEN
from nearkin.studies.joined import joined_metrics

CUB = {"dataset": "cub", "backbone": "resnet50", "dim": 128, "epochs": 6}
EASY = {0: 0.2, 1: 0.3, 2: 0.4, 3: 0.9}
NOISE = [0.001, -0.002, 0.0015]


@pytest.fixture(autouse=True)
def locked(monkeypatch):
    """Whoever opens test labels is told."""

    def opened(*arguments, **more):
        raise AssertionError("test labels were opened")

    monkeypatch.setattr("nearkin.runs.test.test", opened)
    monkeypatch.setattr("nearkin.runs.store.Store.opened", opened)
    monkeypatch.setattr("nearkin.studies.joined.concatenated", opened)


def verdict_of(gathered, name):
    return next(verdict for claim, verdict in check_claims(gathered) if claim.id == name)


def folded(root, lead, *, missing=(), words=None, metrics=("recall@1",), losses=("margin", "npair"), protocol="kfold"):
    """Losses in four folds, the first ahead by `lead`; `missing` are (loss, seed, fold)."""
    cells = []
    for i, loss in enumerate(losses):
        for seed in range(3):
            for fold, level in EASY.items():
                if (loss, seed, fold) in missing:
                    continue
                run = f"{loss}{seed}{fold}".replace("_", "").ljust(12, "0")
                value = level + lead * (i == 0) + NOISE[(seed + i) % 3]
                more = {"protocol": protocol, "protocol.fold": fold, "loss": loss}
                add_run(root, run, CUB | more | (words or {}), dict.fromkeys(metrics, value), seed=seed)
                cells.append({"labels": [loss], "seed": seed, "fold": fold, "run": run})
    add_study(root, "folded", ["loss"], cells, metrics=list(metrics), evaluations=["separated", "concatenated"])
    return gather(["folded"], root)


def test_folds_are_matched_between_the_rows_and_compare_says_the_same(tmp_path):
    """One of the rows lacks the easiest fold: by its own folds margin would be 15 points behind."""
    gathered = folded(tmp_path, 0.02, missing=[("margin", seed, 3) for seed in range(3)])
    verdict = verdict_of(gathered, "psomas_margin_npair_below_4")
    (comparison,) = compare(gathered, by=["loss"], metric="recall@1")
    (pair,) = all_pairs(comparison).pairs
    sign = 1 if pair.first.name == "margin" else -1
    assert verdict.state == HOLDS
    assert verdict.measured == pytest.approx(100 * sign * pair.difference.mean)
    assert verdict.measured == pytest.approx(2, abs=0.2)


def test_a_metric_that_is_not_stored_is_a_line_with_its_command(tmp_path):
    gathered = folded(tmp_path, 0.02, metrics=("map_at_r",))
    verdict = verdict_of(gathered, "psomas_margin_npair_below_4")
    assert verdict.state == OPEN
    assert verdict.reason == (
        "the study lacks the metric recall@1: `nearkin compare folded --metric recall@1` measures it"
    )


def test_joined_folds_are_read_where_they_are_stored(tmp_path, monkeypatch):
    """Separated hist is ahead, concatenated behind."""
    metrics = ("p@1", "r_precision", "map_at_r")
    gathered = folded(
        tmp_path, 0.02, metrics=metrics, losses=("hist", "triplet"), protocol="mlrc", words={"backbone": "bn_inception"}
    )
    name = "hist_best_reality_check"
    assert verdict_of(gathered, name).state == OPEN
    assert "--evaluation concatenated --metric p@1` measures it" in verdict_of(gathered, name).reason
    for loss, level in (("hist", 0.5), ("triplet", 0.6)):
        for seed in range(3):
            runs = [member.run for member in gathered.tested if member.labels["loss"] == loss and member.seed == seed]
            value = level + NOISE[(seed + len(loss)) % 3]
            joined = SimpleNamespace(
                evaluate=lambda metrics, value=value: SimpleNamespace(metrics=dict.fromkeys(metrics, value))
            )
            with monkeypatch.context() as unlocked:
                unlocked.setattr("nearkin.studies.joined.concatenated", lambda runs, joined=joined: joined)
                unlocked.setattr("nearkin.runs.store.Store.opened", lambda *arguments: None)
                joined_metrics(runs, list(metrics), gathered.joined)
    verdict = verdict_of(gathered, name)
    assert verdict.state == FAILS
    assert "concatenated" in verdict.reason


def test_single_runs_are_rows_by_their_settings(tmp_path):
    """The same loss with and without a miner: two rows, not six runs of one."""
    for seed in range(3):
        for miner, value in (("none", 0.5), ("semihard", 0.52), ("distance_weighted", 0.55), ("random", 0.5)):
            words = CUB | {"loss": "triplet", "miner": miner}
            add_run(tmp_path, f"{miner[0]}{seed}".ljust(12, "0"), words, {"recall@1": value + NOISE[seed]}, seed=seed)
    rows = rows_of(gather([str(tmp_path)], tmp_path))
    assert {row.name for row in rows} == {
        "triplet, miner none",
        "triplet, miner semihard",
        "triplet, miner distance_weighted",
        "triplet, miner random",
    }
    assert all(len(row.metrics["recall@1"].values) == 3 for row in rows)


def test_glyphs_test_nothing_and_the_page_says_so(tmp_path, monkeypatch):
    for loss, value in (("proxy_anchor", 0.5), ("npair", 0.6)):
        for seed in range(3):
            add_run(
                tmp_path,
                f"{loss[:2]}{seed}".ljust(12, "0"),
                {"loss": loss},
                {"recall@1": value + NOISE[seed]},
                seed=seed,
            )
    gathered = gather([str(tmp_path)], tmp_path)
    assert {verdict.state for _, verdict in check_claims(gathered)} == {ELSEWHERE}
    sheet = claims_table(gathered)
    assert len(sheet.rows) == 44
    shown = measured_claims(sheet)
    assert shown.rows == []
    assert shown.notes[-1].startswith("44 claims not tested here")
    monkeypatch.setattr(screen, "out", Console(width=160))
    words = CliRunner().invoke(app, ["compare", str(tmp_path), "--metric", "recall@1", "--claims"]).stdout
    assert "44 claims not tested here" in words
    assert "it says" not in words  # no table without a row


def test_decided_claims_come_first_and_the_family_is_said(tmp_path):
    gathered = folded(tmp_path, 0.02)
    sheet = claims_table(gathered)
    states = [row[2] for row in sheet.rows]
    assert states == sorted(states, key=[HOLDS, FAILS, OPEN, ELSEWHERE].index)
    assert any("Holm's correction is over the 2 claims" in note for note in sheet.notes)  # npair_last can fail
    assert len(measured_claims(sheet).rows) == sum(state != ELSEWHERE for state in states)
