"""`nearkin tune` as a user calls it: trials are never tested, rows are tuned alike, and a killed search goes on."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import yaml
from typer.testing import CliRunner

from nearkin.cli.app import app
from nearkin.errors import NearkinError
from nearkin.runs.store import Store
from nearkin.studies.grid import read_study
from nearkin.tuning.plan import searches_of
from nearkin.tuning.search import searching

LOSSES = {"contrastive": {"loss": "contrastive"}, "ms": {"loss": "multi_similarity", "miner": "multi_similarity"}}


@pytest.fixture
def study(tiny, tmp_path):
    def write(tune, **more):
        base = tiny | {"protocol": "fixed_val"}
        content = {"name": "t", "base": base, "axes": {"loss": LOSSES}, "seeds": [0, 1], "baselines": "none"}
        content |= {"tune": tune} | more
        file = tmp_path / "t.yaml"
        file.write_text(yaml.safe_dump(content, sort_keys=False))
        return file

    return write


def call(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def refused(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert isinstance(done.exception, NearkinError), (done.output, done.exception)
    return str(done.exception)


def ledgers_of(file, runs):
    return searching(searches_of(read_study(file)), Store(runs)).ledgers


def test_a_study_with_tune_has_tuned_rows_beside_default_ones(study, tmp_path):
    file, runs = study({"trials": 3}), tmp_path / "runs"
    told = call("study", file, "--runs", runs, "--workers", 2)
    assert "what tuning was worth on the test" in told
    note = " ".join(told.split()).partition("unequal trials")[2]
    assert re.search(r"0 \(\w+ default, \w+ default\)", note)
    assert re.search(r"3 \(\w+ tuned, \w+ tuned\)", note)
    store = Store(runs)
    trials = [run for run in store.runs() if run.purpose == "trial"]
    finals = [run for run in store.runs() if run.purpose == "final"]
    assert len(trials) == 6
    for run in trials:
        assert run.final
        files = {file.name for file in run.path.iterdir()}
        assert not {"result.json", "embeddings.npz", "test.parquet", "per_query.parquet"} & files
        assert run.stored["train"]["seed"] == 1000
        assert "trial" in refused("test", run.hash, "--runs", runs)         # no command makes a test result of it
    assert all(run.tested for run in finals)
    assert {run.stored["train"]["seed"] for run in finals} == {0, 1}

    cells = json.loads((runs / "studies" / "t" / "study.json").read_text())["cells"]
    for ledger in ledgers_of(file, runs):
        best = max(ledger.trials(), key=lambda t: t.score)
        assert ledger.best() == best
        own = [c for c in cells if c["labels"] == [ledger.search.name, "tuned"]]
        assert [c["trials"] for c in own] == [3, 3]
        for cell in own:                                            # the best trial's values, fresh seeds
            spec = store.run(cell["run"]).stored
            for key, value in best.values.items():
                room, name = key.split(".")
                assert spec[room][name] == value
    again = call("study", file, "--runs", runs)
    assert again.splitlines()[-6:] == told.splitlines()[-6:]
    compared = call("compare", "t", "--runs", runs)
    assert "unequal trials" in " ".join(compared.split())


def test_tune_alone_and_show(study, tmp_path):
    file, runs = study(None), tmp_path / "runs"
    told = call("tune", file, "--trials", 2, "--runs", runs, "--workers", 2)
    assert "tuned" in told
    assert "default" not in told.split("study t:")[1].split("table:")[0]    # the default rows are not trained
    shown = call("tune", "show", file, "--trials", 2, "--runs", runs)
    assert "2 of 2" in shown
    assert (runs / "studies" / "t" / "tune.png").stat().st_size > 5000


def test_successive_halving_pauses_and_goes_on(study, tmp_path):
    file, runs = study({"trials": 4, "halving": 2, "sampler": "random"}), tmp_path / "runs"
    axes = {"loss": {"contrastive": LOSSES["contrastive"]}}
    content = yaml.safe_load(file.read_text()) | {"axes": axes, "seeds": [0]}
    content["base"]["epochs"] = 4
    file.write_text(yaml.safe_dump(content))
    told = call("tune", file, "--runs", runs)
    (ledger,) = ledgers_of(file, runs)
    assert ledger.search.rungs == (1, 2, 4)
    assert [len(t.scores) for t in ledger.trials()].count(3) == 1
    assert "successive halving trained" in told
    for run in Store(runs).runs():
        if run.purpose == "trial":                                  # every step once: nothing was begun again
            steps = [line["step"] for line in run.log_lines() if "step" in line]
            assert steps == list(range(1, len(steps) + 1))


def test_bad_input_is_one_sentence(study, tmp_path):
    runs = tmp_path / "runs"
    assert "tune.trials=0" in refused("study", study({"trials": 0}), "--runs", runs)
    assert "tune.smpler" in refused("study", study({"smpler": "tpe"}), "--runs", runs)
    assert "choices: coordinate" in refused("tune", study({"sampler": "tp"}), "--runs", runs)
    assert "tune.seed=1 is a seed of study t" in refused("study", study({"seed": 1}), "--runs", runs)
    axes = {"loss": {"pa": {"loss": "proxy_anchor"}}}
    space = {"loss.alpha": {"low": -10, "high": 100}}
    assert "search space of loss.alpha, -10 to 100: alpha=-10.0: must be above 0" in refused(
        "study", study({"search": space}, axes=axes), "--runs", runs)  # fmt: skip
    wrong = {"search": {"loss.alfa": [1, 2]}}
    assert "no row has a setting loss.alfa" in refused("study", study(wrong), "--runs", runs)
    assert "cannot be reached" in refused("tune", study({}), "--storage", "sqlite:////nowhere/x.db", "--runs", runs)
    assert "was not searched" in refused("tune", "show", study({}), "--runs", runs)
    assert "nothing" in refused("study", study({}, base={"dataset": "nothing"}), "--runs", runs)
    assert Store(runs).runs() == []


def test_two_searches_of_one_name_with_different_spaces(study, tmp_path):
    runs, axes = tmp_path / "runs", {"loss": {"contrastive": LOSSES["contrastive"]}}
    one = {"trials": 1, "search": {"train.lr": {"low": 1e-4, "high": 1e-2, "log": True}}}
    call("tune", study(one, axes=axes, seeds=[0]), "--runs", runs)
    one["search"]["train.lr"]["high"] = 0.1
    assert "train.lr: 0.0001 to 0.01, logarithmic, now 0.0001 to 0.1" in refused(
        "tune", study(one, axes=axes, seeds=[0]), "--runs", runs)  # fmt: skip


def test_two_processes_one_killed(study, tmp_path):
    """Kill -9 of one of two that share the storage: all trials are there, none twice."""
    file, runs = study({"trials": 5}), tmp_path / "runs"
    command = [sys.executable, "-m", "nearkin", "tune", str(file), "--runs", str(runs)]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    first, second = (subprocess.Popen(command, **quiet) for _ in range(2))
    database = runs / "studies" / "t" / "tune.db"
    until = time.monotonic() + 120
    while time.monotonic() < until and second.poll() is None:
        if database.exists() and len(list((runs / "studies" / "t" / "trials").glob("*-[0-9].lock"))) >= 3:
            break
        time.sleep(0.05)
    os.kill(second.pid, signal.SIGKILL)
    second.communicate()
    said, _ = first.communicate(timeout=300)
    assert first.returncode == 0, said
    for ledger in ledgers_of(file, runs):
        trials = ledger.trials()
        assert [t.state for t in trials] == ["complete"] * 5
        assert len({tuple(t.values.items()) for t in trials}) == 5
    for run in Store(runs).runs():
        steps = [line["step"] for line in run.log_lines() if "step" in line]
        assert steps == list(range(1, len(steps) + 1))
