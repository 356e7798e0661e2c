"""`nearkin study` with trials: trials are never tested, rows are tuned alike, and a killed search goes on."""

import itertools
import json
import os
import re
import shutil
import signal
import threading
import time

import pytest
import yaml
from PIL import Image
from stores import Done, Here, beside
from typer.testing import CliRunner

from nearkin.cli.app import app
from nearkin.errors import NearkinError
from nearkin.runs.store import Store
from nearkin.studies.grid import read_study
from nearkin.studies.scheduler import Failure
from nearkin.studies.search import searches_of
from nearkin.studies.searching import searching

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
    assert re.search(r"3 of 6 epochs in all \(\w+ tuned, \w+ tuned\)", note)
    store = Store(runs)
    trials = [run for run in store.runs() if run.purpose == "trial"]
    finals = [run for run in store.runs() if run.purpose == "final"]
    assert len(trials) == 6
    for run in trials:
        assert run.final
        files = {file.name for file in run.path.iterdir()}
        assert not {"result.json", "embeddings.npz", "test.parquet", "per_query.parquet"} & files
        assert run.stored["train"]["seed"] == 1000
        assert "trial" in refused("test", run.hash, "--runs", runs)  # no command makes a test result of it
    assert all(run.tested for run in finals)
    assert {run.stored["train"]["seed"] for run in finals} == {0, 1}

    cells = json.loads((runs / "studies" / "t" / "study.json").read_text())["cells"]
    for ledger in ledgers_of(file, runs):
        best = max(ledger.trials(), key=lambda t: t.score)
        assert ledger.best() == best
        own = [c for c in cells if c["labels"] == [ledger.search.name, "tuned"]]
        assert [c["trials"] for c in own] == [3, 3]
        for cell in own:  # the best trial's values, fresh seeds
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
    told = call("study", file, "--tune-only", "--trials", 2, "--runs", runs, "--workers", 2)
    assert "tuned" in told
    cells = json.loads((runs / "studies" / "t" / "study.json").read_text())["cells"]
    tuned = {cell["run"] for cell in cells if cell["labels"][1] == "tuned"}
    trained = {run.hash for run in Store(runs).runs() if run.purpose == "final"}
    assert trained == tuned  # default rows are not, unless they are the best
    shown = call("study", file, "--show-trials", "--trials", 2, "--runs", runs)
    assert "2 of 2" in shown
    assert (runs / "studies" / "t" / "tune.png").stat().st_size > 5000


def test_successive_halving_pauses_and_goes_on(study, tmp_path):
    file, runs = study({"trials": 4, "halving": 2, "sampler": "random"}), tmp_path / "runs"
    axes = {"loss": {"contrastive": LOSSES["contrastive"]}}
    content = yaml.safe_load(file.read_text()) | {"axes": axes, "seeds": [0]}
    content["base"]["epochs"] = 4
    file.write_text(yaml.safe_dump(content))
    told = call("study", file, "--tune-only", "--runs", runs)
    (ledger,) = ledgers_of(file, runs)
    assert ledger.search.rungs == (1, 2, 4)
    assert [len(t.scores) for t in ledger.trials()].count(3) == 1
    assert "successive halving trained" in told
    for run in Store(runs).runs():
        if run.purpose == "trial":  # every step once: nothing was begun again
            steps = [line["step"] for line in run.log_lines() if "step" in line]
            assert steps == list(range(1, len(steps) + 1))


def test_bad_input_is_one_sentence(study, tmp_path):
    runs = tmp_path / "runs"
    assert "tune.trials=0" in refused("study", study({"trials": 0}), "--runs", runs)
    assert "tune.smpler" in refused("study", study({"smpler": "tpe"}), "--runs", runs)
    assert "choices: coordinate" in refused("study", study({"sampler": "tp"}), "--tune-only", "--runs", runs)
    assert "tune.seed=1 is also a seed of study t" in refused("study", study({"seed": 1}), "--runs", runs)
    axes = {"loss": {"pa": {"loss": "proxy_anchor"}}}
    space = {"loss.alpha": {"low": -10, "high": 100}}
    assert "search space of loss.alpha, -10 to 100: alpha=-10.0: must be above 0" in refused(
        "study", study({"search": space}, axes=axes), "--runs", runs
    )
    wrong = {"search": {"loss.alfa": [1, 2]}}
    assert "no row has a setting loss.alfa" in refused("study", study(wrong), "--runs", runs)
    assert "cannot be reached" in refused(
        "study", study({}), "--tune-only", "--storage", "sqlite:////nowhere/x.db", "--runs", runs
    )
    assert "was not searched" in refused("study", study({}), "--show-trials", "--runs", runs)
    assert "nothing" in refused("study", study({}, base={"dataset": "nothing"}), "--runs", runs)
    assert Store(runs).runs() == []


@pytest.fixture
def here(monkeypatch):
    """Runs are carried out in this process; what was is listed."""
    carried_out = []

    def executor(workers, ray):
        found = Here(workers or 1)
        found.tasks = carried_out
        return found

    monkeypatch.setattr("nearkin.tuning.study.executor_of", executor)
    return carried_out


ONE = {"axes": {"loss": {"contrastive": LOSSES["contrastive"]}}, "seeds": [0]}


def test_another_space_is_another_search(study, tmp_path, here):
    runs = tmp_path / "runs"
    tune = {"trials": 2, "search": {"train.lr": {"low": 1e-4, "high": 1e-2, "log": True}}}
    call("study", study(tune, **ONE), "--tune-only", "--runs", runs)
    first = len(here)
    call("study", study(tune, **ONE), "--tune-only", "--runs", runs)
    assert len(here) == first  # nothing is done twice
    tune["search"]["train.lr"]["high"] = 0.1
    file = study(tune, **ONE)
    call("study", file, "--tune-only", "--runs", runs)
    assert len(here) > first
    (ledger,) = ledgers_of(file, runs)
    assert len(ledger.trials()) == 2


def test_another_folder_of_images_is_another_search(study, tmp_path, here):
    """The same study on root=A, then on root=B: they share no trial; a copy of A is A, wherever it lies."""
    for name, offset in (("a", 0), ("b", 60)):
        for label, number in itertools.product(range(12), range(6)):
            (tmp_path / name / f"class{label}").mkdir(parents=True, exist_ok=True)
            image = Image.effect_noise((16, 16), 10 + offset + 12 * label + number).convert("RGB")
            image.save(tmp_path / name / f"class{label}" / f"{number}.png")
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    base = {
        "dataset": "folder",
        "data.size": 16,
        "data.crop": 16,
        "data.resize": 16,
        "backbone": "convnet",
        "dim": 8,
        "train.batch": 8,
        "sampler.per_class": 2,
        "epochs": 1,
        "train.batches_per_epoch": 2,
    }
    file, runs = study({"trials": 2}, base=base, **ONE), tmp_path / "runs"

    def trials(name):
        before = len(here)
        call("study", file, "--tune-only", f"root={tmp_path / name}", "--runs", runs)
        searches = searches_of(read_study(file, {"root": str(tmp_path / name)}))
        (ledger,) = searching(searches, Store(runs)).ledgers
        return {run for each in ledger.study.trials for run in each.user_attrs["runs"]}, len(here) - before

    (first, carried_out), (second, as_many) = trials("a"), trials("b")
    assert not first & second
    assert carried_out == as_many == 3  # two trials, one tuned run
    assert trials("copy") == (first, 0)


def test_a_full_disk_uses_up_no_trial(study, tmp_path, here, monkeypatch):
    file = study({"trials": 3}, **ONE)
    call("study", file, "--tune-only", "--runs", tmp_path / "whole")
    runs, start = tmp_path / "runs", Here.start

    def full(self, task, worker):
        self.tasks.append(task)
        return Done(Failure("the disk is full: cannot write log.jsonl", passing=True))

    with monkeypatch.context() as patch:
        patch.setattr(
            Here,
            "start",
            lambda self, task, worker: (start if len(list(runs.glob("*/final.json"))) < 2 else full)(
                self, task, worker
            ),
        )
        assert "the disk is full" in refused("study", file, "--tune-only", "--runs", runs)
    (ledger,) = ledgers_of(file, runs)
    assert [trial.state for trial in ledger.trials()] == ["complete", "complete", "running"]
    call("study", file, "--tune-only", "--runs", runs)
    (whole,) = ledgers_of(file, tmp_path / "whole")
    assert ledger.trials() == whole.trials()


def test_settings_that_cannot_be_trained_are_tried_once(study, tmp_path, here):
    axes = {"loss": {"softmax": {"loss": "softmax"}}}  # which declares one setting
    tune = {"trials": 4, "search": {"train.lr": [1e-3, 1e30]}, "sampler": "grid"}
    file, runs = study(tune, axes=axes, seeds=[0]), tmp_path / "runs"
    assert "4 of 4, 2 failed" in call("study", file, "--tune-only", "--runs", runs)
    before = len(here)
    assert "4 of 4, 2 failed" in call("study", file, "--tune-only", "--runs", runs)
    assert len(here) == before


def test_trials_may_be_shorter_than_final_runs(study, tmp_path, here):
    base = {
        "dataset": "glyphs",
        "data.classes": 12,
        "data.per_class": 6,
        "data.size": 16,
        "backbone": "convnet",
        "dim": 8,
        "train.batch": 8,
        "sampler.per_class": 2,
        "epochs": 4,
        "train.batches_per_epoch": 2,
    }
    file, runs = study({"trials": 3, "epochs": 2}, base=base, **ONE), tmp_path / "runs"
    said = call("study", file, "--runs", runs)
    epochs = {run.purpose: run.stored["train"]["epochs"] for run in Store(runs).runs()}
    assert epochs == {"trial": 2, "final": 4}
    assert "3 of 6 epochs in all" in " ".join(said.split())
    assert "unequal trials: 0 (contrastive, default); 3 of 6 epochs in all" in " ".join(
        call("compare", "t", "--runs", runs).split()
    )
    assert "never validated" in refused(
        "study",
        study({"trials": 3, "epochs": 1}, base={**base, "train.eval_every": 2}, **ONE),
        "--tune-only",
        "--runs",
        runs,
    )


def test_tune_leaves_the_default_rows_in_the_study(study, tmp_path, here):
    file, runs = study({"trials": 2}, **ONE), tmp_path / "runs"
    call("study", file, "--runs", runs)

    def cells():
        return json.loads((runs / "studies" / "t" / "study.json").read_text())["cells"]

    before = cells()
    assert [cell["labels"][1] for cell in before] == ["default", "tuned"]
    call("study", file, "--tune-only", "--runs", runs)
    assert cells() == before


def test_where_the_default_settings_are_best_they_are_the_tuned_ones(study, tmp_path, here):
    """A run that serves both rows is trained with --tune-only too."""
    file, runs = study({"trials": 1}, **ONE), tmp_path / "runs"  # the first trial has the row's own settings
    said = call("study", file, "--tune-only", "--runs", runs)
    assert "0 runs" not in said
    (run,) = [run for run in Store(runs).runs() if run.purpose == "final"]
    assert run.tested


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_two_processes_one_killed(study, tmp_path):
    """Kill -9 of one of two that share the storage: all trials are there, none twice."""
    file, runs = study({"trials": 4}), tmp_path / "runs"
    other = beside(lambda: call("study", file, "--tune-only", "--runs", runs))
    ended = []

    def begun(trials):
        """Wait until so many trials were begun."""
        while len(list((runs / "studies" / "t" / "trials").glob("*-[0-9].lock"))) < trials:
            assert os.waitpid(other, os.WNOHANG) == (0, 0)
            time.sleep(0.02)

    def kill():
        begun(3)
        os.kill(other, signal.SIGKILL)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))

    begun(1)  # by the other
    killer = threading.Thread(target=kill)
    killer.start()
    call("study", file, "--tune-only", "--runs", runs)
    killer.join()
    assert ended == [-signal.SIGKILL]
    for ledger in ledgers_of(file, runs):
        trials = ledger.trials()
        assert [t.state for t in trials] == ["complete"] * 4
        assert len({tuple(t.values.items()) for t in trials}) == 4
    for run in Store(runs).runs():
        steps = [line["step"] for line in run.log_lines() if "step" in line]
        assert steps == list(range(1, len(steps) + 1))
