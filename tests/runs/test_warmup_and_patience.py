"""Warm-up before the counted epochs, and the rule that stops early, against loops written by hand."""

import pytest
import torch

import nearkin


@pytest.fixture
def given(tiny, tmp_path):
    """A tiny run whose backbone has given weights, which a warm-up leaves alone."""
    start = nearkin.train(tiny | {"epochs": 0}, runs=tmp_path / "start")
    state = start.load("model.pt")["model"]
    path = tmp_path / "weights.pt"
    torch.save({k.removeprefix("backbone."): v for k, v in state.items() if k.startswith("backbone.")}, path)
    return tiny | {"weights": str(path), "protocol": "standard", "train.warmup": 1}


def rates(run):
    return [line["lr"] for line in run.log_lines() if "epoch_end" in line]


def test_a_warm_up_before_the_epochs_is_one_more_of_them(given, tmp_path):
    """At a constant rate, 1 + 2 epochs are 3 of which the first is the warm-up, to the bit."""
    before = nearkin.train(given | {"epochs": 2, "train.warmup_counts": False}, runs=tmp_path)
    among = nearkin.train(given | {"epochs": 3}, runs=tmp_path)
    assert before.hash != among.hash
    assert (before.result["epoch"], among.result["epoch"]) == (2, 3)
    assert before.result["epochs_trained"] == 2
    ours, theirs = (run.load("model.pt")["model"] for run in (before, among))
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_the_schedule_waits_for_it(given, tmp_path):
    step = {"train.schedule": "step", "train.step": 1, "train.gamma": 0.5, "lr": 0.01}
    before = nearkin.train(given | step | {"epochs": 3, "train.warmup_counts": False}, runs=tmp_path)
    among = nearkin.train(given | step | {"epochs": 3}, runs=tmp_path)
    assert rates(before) == [0.01, 0.01, 0.005, 0.0025]
    assert rates(among) == [0.01, 0.005, 0.0025]


def test_it_is_neither_validated_nor_chosen_and_has_no_point_on_the_curve(given, tmp_path):
    words = given | {"protocol": "fixed_val", "epochs": 2, "train.warmup": 2, "train.warmup_counts": False}
    run = nearkin.train(words | {"train.curve": True}, runs=tmp_path)
    ends = [line for line in run.log_lines() if "epoch_end" in line]
    assert [line["epoch_end"] for line in ends] == [-1, 0, 1, 2]
    assert ["validation" in line for line in ends] == [False, False, True, True]
    assert [point["epoch"] for point in run.read_json("curve.json")["epochs"]] == [1, 2]


def stops_at(scores, every, patience):
    """The reality check's rule: after a validation, stop when epoch - best epoch > patience."""
    best, best_epoch = -1.0, 0
    for epoch in range(1, len(scores) + 1):
        if epoch % every == 0 or epoch == len(scores):
            if scores[epoch - 1] > best:
                best, best_epoch = scores[epoch - 1], epoch
            if epoch - best_epoch > patience:
                return epoch, best_epoch
    return len(scores), best_epoch


@pytest.mark.parametrize(("every", "patience"), [(2, 9), (5, 14), (20, 39)])  # CUB, Cars196, SOP
@pytest.mark.parametrize("peak", [4, 10, 23])
def test_the_reality_checks_patience_is_one_more_here(tiny, tmp_path, monkeypatch, every, patience, peak):
    scores = [1 - abs(epoch - peak) / 100 for epoch in range(1, 71)]
    seen = iter([epoch for epoch in range(1, 71) if epoch % every == 0 or epoch == 70])

    class Told:
        def __init__(self):
            self.metrics = {"recall@1": 0.5, "map_at_r": scores[next(seen) - 1]}

    monkeypatch.setattr("nearkin.runs.fit.evaluate", lambda *given, **settings: Told())
    monkeypatch.setattr("nearkin.runs.fit.space", lambda *given: {})
    words = tiny | {"epochs": 70, "train.batches_per_epoch": 1, "train.eval_every": every}
    run = nearkin.train(words | {"train.patience": patience + 1}, runs=tmp_path, test=False)
    told = run.read_json("final.json")
    assert (told["epochs_trained"], told["epoch"]) == stops_at(scores, every, patience)
