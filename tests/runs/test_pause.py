"""A run that pauses after an epoch and goes on is the run that never paused."""

import torch

import nearkin


def test_paused_and_resumed_is_never_paused(tiny, tmp_path):
    words = tiny | {"epochs": 3, "protocol": "fixed_val", "loss": "proxy_anchor"}
    whole = nearkin.train(words, runs=tmp_path / "whole")
    for until in (1, 2, 2):  # the third has nothing to do
        run = nearkin.train(words, runs=tmp_path / "paused", until=until)
        assert run.begun
        assert not run.final
        assert not run.tested
        assert max(line.get("epoch_end", 0) for line in run.log_lines()) == until
    run = nearkin.train(words, runs=tmp_path / "paused")
    a, b = (torch.load(r.path / "model.pt", weights_only=True) for r in (whole, run))
    assert all(torch.equal(a["model"][key], b["model"][key]) for key in a["model"])
    assert all(torch.equal(a["objective"][key], b["objective"][key]) for key in a["objective"])
    assert run.result["test"] == whole.result["test"]
    assert [line.get("loss") for line in run.log_lines()] == [line.get("loss") for line in whole.log_lines()]


def test_the_last_epoch_is_no_pause(tiny, tmp_path):
    run = nearkin.train(tiny | {"epochs": 2}, runs=tmp_path, until=2)
    assert run.tested
