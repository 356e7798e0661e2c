"""What `nearkin choose` says of a lead: one difference, and the interval and the verdict of the same numbers."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from stores import add_run

from nearkin.runs.run import Run
from nearkin.statistics.unit import Row
from nearkin.statistics.verdict import Outcome
from nearkin.tuning import verdict
from nearkin.tuning._schedule import Plan
from nearkin.tuning.choose import Candidate, Choice

CLASSES = 6
QUERIES = 40  # of each class


def made(root, rows, untrained, *, select="map_at_r", monkeypatch, classes=None):
    """A choice with made-up runs: name -> validation results by seed. `classes` adds to them, by name and class; the
    validation embeddings hold the value of each query."""

    def run_of(name, seed, value):
        by_class = value + np.array((classes or {}).get(name, np.zeros(CLASSES)), dtype=float)
        path = add_run(root, f"{name}{seed}", {}, {}, validation={select: float(by_class.mean())})
        labels = np.repeat(np.arange(CLASSES), QUERIES)
        np.savez(path / "validation.npz", embeddings=by_class[labels][:, None], labels=labels)
        return Run(path)

    def evaluate(z, labels, metrics):
        return SimpleNamespace(per_query={metrics[0]: z[:, 0]})

    monkeypatch.setattr(verdict, "evaluate", evaluate)
    choice = Choice.__new__(Choice)
    choice.select, choice.sign = select, -1 if select.startswith("hubness") else 1
    choice.candidates = {
        name: Candidate(name, {}, [values[0] / 2], {seed: run_of(name, seed, value) for seed, value in values.items()})
        for name, values in rows.items()
    }
    choice.untrained = run_of("untrained", 0, untrained)
    choice.name, choice.unfinished, choice.tested = "made", [], {"recall@1": 0.5, "map_at_r": 0.4}
    choice.plan, choice.seconds, choice.before, choice.began = Plan(2, 3, 3, len(choice.seeds), True), 600, 0.0, 0.0
    return choice


def leads_in(choice):
    """Name of the other row -> what is said of the lead over it."""
    said = {}
    for sentence in verdict.sentences(choice):
        if found := re.match(r"its lead over (.*?) is ", sentence):
            said[found[1]] = sentence
    return said


def test_seed_0_does_not_speak_for_the_mean(tmp_path, monkeypatch):
    """In seed 0 margin is 4 points ahead in every class; over both seeds triplet leads by 1 point: that was believed,
    with an interval from -5.0 to -3.2."""
    rows = {"triplet": {0: 0.50, 1: 0.56}, "margin": {0: 0.54, 1: 0.50}}
    classes = {"margin": np.linspace(-0.01, 0.01, CLASSES)}
    choice = made(tmp_path, rows, 0.2, classes=classes, monkeypatch=monkeypatch)
    few = "no verdict: 2 common seeds, at least three seeds are needed"
    assert leads_in(choice) == {
        "margin": f"its lead over margin is +1.00 points on validation; {few}",
        "the untrained network": f"its lead over the untrained network is +33.00 points on validation; {few}",
    }


def test_a_clear_lead_is_believed(tmp_path, monkeypatch):
    rows = {
        "triplet": {0: 0.60, 1: 0.61, 2: 0.602},
        "margin": {0: 0.50, 1: 0.51, 2: 0.5},
        "arcface": {0: 0.4, 1: 0.41, 2: 0.4},
    }
    said = leads_in(made(tmp_path, rows, 0.2, monkeypatch=monkeypatch))
    assert list(said) == ["margin", "the untrained network"]
    lead = "its lead over margin is +10.07 points on validation (95 % interval +9.64 to +10.49; seeds ±0.42, "
    assert said["margin"].startswith(f"{lead}classes ±0.00)")
    for sentence in said.values():
        assert sentence.endswith(": it can be believed")


def test_a_lead_that_other_classes_would_not_confirm_is_not_believed(tmp_path, monkeypatch):
    """All seeds agree to a tenth of a point, but one class of six makes the lead."""
    rows = {"triplet": {0: 0.50, 1: 0.511, 2: 0.502}, "margin": {0: 0.50, 1: 0.51, 2: 0.5}}
    classes = {"triplet": [0.6, 0, 0, 0, 0, 0]}
    choice = made(tmp_path, rows, 0.2, classes=classes, monkeypatch=monkeypatch)
    sentence = leads_in(choice)["margin"]
    assert "believed" not in sentence
    assert "undecided" in sentence
    assert re.search(r"seeds ±0\.\d\d, classes ±2\d\.\d\d", sentence)


def test_a_lead_that_is_too_small_to_matter_is_called_so(tmp_path, monkeypatch):
    rows = {"triplet": {0: 0.501, 1: 0.512, 2: 0.502}, "margin": {0: 0.50, 1: 0.51, 2: 0.501}}
    said = leads_in(made(tmp_path, rows, 0.2, monkeypatch=monkeypatch))
    assert said["margin"].endswith("): equivalent within ±1.00 points")


def test_where_low_is_better_the_lower_leads(tmp_path, monkeypatch):
    """hubness has no values by class: seeds alone."""
    rows = {"triplet": {0: 1.0, 1: 1.1, 2: 1.05}, "margin": {0: 2.0, 1: 2.1, 2: 2.06}}
    choice = made(tmp_path, rows, 3.0, select="hubness@10", monkeypatch=monkeypatch)
    assert choice.winner.name == "triplet"
    assert [row[0] for row in verdict.table(choice).rows] == ["triplet", "margin", "the untrained network"]
    said = leads_in(choice)
    assert said["margin"].startswith("its lead over margin is +1.003 on validation (95 % interval +0.989 to +1.018; ")
    assert said["margin"].endswith("seeds alone): it can be believed")
    assert said["the untrained network"].startswith("its lead over the untrained network is +1.950 on validation (95 %")


def test_the_untrained_network_may_win(tmp_path, monkeypatch):
    rows = {"triplet": {0: 0.50, 1: 0.51, 2: 0.502}, "margin": {0: 0.4, 1: 0.4, 2: 0.41}}
    choice = made(tmp_path, rows, 0.6, monkeypatch=monkeypatch)
    assert choice.winner is None
    said = leads_in(choice)
    assert list(said) == ["triplet"]
    assert said["triplet"].startswith("its lead over triplet is +9.60 points on validation (95 %")
    assert any("was run once" in sentence for sentence in verdict.sentences(choice))


def test_seeds_that_one_finalist_lacks_count_for_none(tmp_path, monkeypatch):
    """By all of its own seeds margin would be the best; table, winner and lead are those of seeds 0 to 2."""
    rows = {
        "triplet": dict(enumerate([0.60, 0.61, 0.602, 0.1])),
        "margin": dict(enumerate([0.50, 0.51, 0.5, 0.9])),
        "arcface": dict(enumerate([0.4, 0.41, 0.4])),
    }
    choice = made(tmp_path, rows, 0.2, monkeypatch=monkeypatch)
    assert choice.winner.name == "triplet"
    assert leads_in(choice)["margin"].startswith("its lead over margin is +10.07 points")
    table = {row[0]: row[3] for row in verdict.table(choice).rows}
    assert table["triplet"] - table["margin"] == pytest.approx(0.1007, abs=1e-4)


def test_three_finalists_have_no_rank_correlation(tmp_path, monkeypatch):
    rows = {name: dict.fromkeys(range(3), value) for name, value in (("a", 0.5), ("b", 0.4), ("c", 0.3))}
    sheet = verdict.table(made(tmp_path, rows, 0.2, monkeypatch=monkeypatch))
    assert not any("correlation" in note for note in sheet.notes)


def row_of(name, values):
    return Row.of_seeds(name, dict(enumerate(values)))


class TestLeads:
    def test_the_first_row_is_the_best_by_the_sign(self):
        rows = [row_of("a", [0.1, 0.2, 0.3]), row_of("b", [0.6, 0.71, 0.8]), row_of("c", [0.35, 0.41, 0.5])]
        untrained = row_of("u", [0.5] * 3)
        for sign, names in ((1, [("b", "u")]), (-1, [("a", "c"), ("a", "u")])):
            pairs = verdict.leads(rows, untrained, sign=sign)
            assert [(pair.first.name, pair.second.name) for pair in pairs] == names
            assert all(sign * pair.difference.mean > 0 for pair in pairs)
            assert {pair.family for pair in pairs} == {6}

    def test_equal_values_leave_the_untrained_network_in_front(self):
        (pair,) = verdict.leads([row_of("a", [0.4] * 3)], row_of("u", [0.4] * 3), sign=1)
        assert (pair.first.name, pair.second.name) == ("u", "a")
        assert not pair.decided

    @pytest.mark.parametrize("seeds", [1, 2])
    def test_no_verdict_below_three_seeds(self, seeds):
        rows = [row_of("a", [0.9] * seeds), row_of("b", [0.1] * seeds)]
        for pair in verdict.leads(rows, row_of("u", [0.0] * seeds), sign=1):
            assert pair.outcome is Outcome.NONE
