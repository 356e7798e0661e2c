"""Who goes on in a search and in a choice: the better, also where low is better, by all folds and seeds."""

import json
from types import SimpleNamespace

import pytest
from stores import add_run

from nearkin.evaluation.metrics.base import metric_of
from nearkin.runs.run import Run
from nearkin.studies.scheduler import Ended, Look
from nearkin.studies.searching import Open, Searching, score_at
from nearkin.tuning.choose import Candidate, Choice


def run_with(path, scores, select="map_at_r", *, final=False):
    """A run with these validation results after epochs 1, 2, ...; a final one tells the last of them."""
    if final:
        add_run(path.parent, path.name, {"epochs": len(scores)}, {}, validation={select: scores[-1]})
    else:
        path.mkdir(parents=True)
    lines = [{"epoch_end": i + 1, "validation": {select: score}} for i, score in enumerate(scores)]
    (path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Run(path)


def test_the_score_of_a_run_is_its_best_so_far(tmp_path):
    run = run_with(tmp_path / "a", [0.2, 0.5, 0.3, 0.9])
    assert [score_at(run, "map_at_r", epoch) for epoch in (1, 2, 3)] == [0.2, 0.5, 0.5]
    low = run_with(tmp_path / "low", [0.5, 0.2, 0.3], "hubness@10")
    assert [score_at(low, "hubness@10", epoch) for epoch in (1, 2, 3)] == [0.5, 0.2, 0.2]
    ended = run_with(tmp_path / "b", [0.2, 0.5, 0.3], final=True)  # final.json tells the epoch that was chosen
    assert [score_at(ended, "map_at_r", epoch) for epoch in (2, 3, 4)] == [0.5, 0.3, 0.3]
    assert score_at(run_with(tmp_path / "c", []), "map_at_r", 3) is None


@pytest.mark.parametrize("select", ["map_at_r", "hubness@10"])
def test_a_trial_has_the_mean_over_its_folds(tmp_path, select):
    reported = []

    def report(claim, score, runs):
        reported.append(score)

    ledger = SimpleNamespace(search=SimpleNamespace(select=select, rungs=(2,)), report=report)
    folds = enumerate(([0.2, 0.4], [0.5, 0.3], [0.9, 0.8]))
    runs = [run_with(tmp_path / str(i), scores, select) for i, scores in folds]
    tasks = [SimpleNamespace(path=run.path) for run in runs]
    searching = Searching([], None)
    searching.open.append(Open(SimpleNamespace(rung=0), ledger, runs, tasks))
    for task in tasks:
        assert reported == []
        searching.note(Look([Ended(task, None)]))
    means = {"map_at_r": (0.4 + 0.5 + 0.9) / 3, "hubness@10": (0.2 + 0.3 + 0.8) / 3}
    assert reported == pytest.approx([means[select]])


def choice_of(root, select, finals, screened, untrained):
    """A choice with made-up runs: name -> seed -> result, and name -> results when screened."""
    choice = Choice.__new__(Choice)
    choice.select, choice.sign = select, -1 if metric_of(select).sign < 0 else 1
    choice.untrained = run_with(root / "untrained", [untrained], select, final=True)
    choice.candidates = {}
    for name, values in finals.items():
        runs = {seed: run_with(root / f"{name}{seed}", [value], select, final=True) for seed, value in values.items()}
        choice.candidates[name] = Candidate(name, {}, screened[name], runs)
    return choice


@pytest.mark.parametrize(("select", "ranked"), [("map_at_r", ["b", "a"]), ("hubness@10", ["a", "b"])])
def test_the_winner_has_the_best_mean_over_common_seeds(tmp_path, select, ranked):
    """Seed 0 alone, or the seed that b lacks, would say otherwise."""
    finals = {"a": {0: 0.5, 1: 0.1, 2: 0.99}, "b": {0: 0.4, 1: 0.3}}
    choice = choice_of(tmp_path, select, finals, {"a": [0.1], "b": [0.1]}, 0.32 if select == "map_at_r" else 0.31)
    assert choice.seeds == [0, 1]
    assert [candidate.name for candidate in choice.finalists] == ranked
    assert choice.mean(choice.candidates["a"]) == pytest.approx(0.3)
    assert choice.winner.name == ranked[0]
    assert choice.winning_run is choice.winner.runs[0]


@pytest.mark.parametrize(("select", "ranked"), [("map_at_r", ["b", "c", "a"]), ("hubness@10", ["c", "b", "a"])])
def test_finalists_are_those_that_were_screened_longest_and_then_best(tmp_path, select, ranked):
    """The last result counts, not the first; a was dropped after one unit, whatever it had."""
    screened = {"a": [0.9], "b": [0.3, 0.6], "c": [0.4, 0.5]}
    choice = choice_of(tmp_path, select, {name: {} for name in screened}, screened, 0.1)
    assert [candidate.name for candidate in choice._best(list(choice.candidates.values()))] == ranked
