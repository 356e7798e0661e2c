"""A stored run is trained again and compared."""

import json

import pytest
import torch
from typer.testing import CliRunner

import nearkin
from nearkin.cli.app import app
from nearkin.errors import NearkinError


def test_the_same_machine_gives_the_same_bits(tiny, tmp_path):
    run = nearkin.train(tiny, runs=tmp_path)
    found = nearkin.reproduce(run.hash[:6], runs=tmp_path)
    assert found.ok
    assert found.same_bits
    assert found.differs == {}
    assert found.metrics["recall@1"] == (run.result["test"]["recall@1"],) * 2
    assert found.again.path == tmp_path / "reproductions" / run.hash
    first = (found.again.path / "model.pt").stat().st_mtime_ns
    nearkin.reproduce(run, runs=tmp_path)
    assert (found.again.path / "model.pt").stat().st_mtime_ns != first  # trained again, each time


def test_a_run_that_was_changed_is_found_out(tiny, tmp_path):
    run = nearkin.train(tiny, runs=tmp_path)
    state = run.load("model.pt")
    key = next(key for key, value in state["model"].items() if value.is_floating_point())
    state["model"][key] += 1e-3
    run.save("model.pt", state)
    found = nearkin.reproduce(run, runs=tmp_path)
    assert not found.same_bits
    assert not found.ok  # same machine: bits are expected
    told = CliRunner().invoke(app, ["runs", "reproduce", run.hash, "--runs", str(tmp_path)])
    assert told.exit_code == 1
    assert "not reproduced: same machine and versions, other bits" in told.output


def test_elsewhere_metrics_decide(tiny, tmp_path):
    run = nearkin.train(tiny, runs=tmp_path)
    run.write_json("environment.json", run.read_json("environment.json") | {"cpu": "another"})
    state = run.load("model.pt")
    state["model"] = {k: v + 1e-7 if v.is_floating_point() else v for k, v in state["model"].items()}
    run.save("model.pt", state)
    found = nearkin.reproduce(run, runs=tmp_path)
    assert not found.same_bits
    assert found.ok
    assert found.differs["cpu"][0] == "another"
    result = run.result
    result["test"]["recall@1"] += 0.02
    (run.path / "files.json").unlink()  # else its checksum would say it
    (run.path / "result.json").write_text(json.dumps(result))
    assert not nearkin.reproduce(run, runs=tmp_path).ok


def test_what_cannot_be_compared_is_said(tiny, tmp_path, monkeypatch):
    run = nearkin.train(tiny, runs=tmp_path)
    monkeypatch.setattr("nearkin.engine.loop.VERSION", 99)
    with pytest.raises(NearkinError, match=rf"run {run.hash} would be run \w+ today"):
        nearkin.reproduce(run, runs=tmp_path)
    monkeypatch.undo()
    (run.path / "result.json").unlink()
    with pytest.raises(NearkinError, match="is not finished"):
        nearkin.reproduce(run, runs=tmp_path)
    assert torch.get_num_threads() >= 1
