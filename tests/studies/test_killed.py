"""A study that is killed, its runner or its workers, and called again ends as one that never was."""

import os
import random
import signal
import subprocess
import time
from functools import partial
from multiprocessing import forkserver

import pytest
import yaml
from stores import beside, contents, said

from nearkin.runs.store import Store
from nearkin.studies import executors
from nearkin.studies._local import LocalProcesses

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs Linux or macOS")


def write(folder, losses, seeds, epochs):
    base = {
        "dataset": "glyphs",
        "data.classes": 24,
        "data.per_class": 10,
        "backbone": "convnet",
        "dim": 16,
        "train.batch": 16,
        "epochs": epochs,
    }
    file = folder / "study.yaml"
    axes = {"loss": losses}
    file.write_text(yaml.safe_dump({"base": base, "axes": axes, "seeds": seeds, "metrics": ["recall@1", "nmi"]}))
    return file


def start(file, runs, seconds):
    """The command in a process of its own, with a checkpoint every so many seconds."""

    def command():
        executors.LocalProcesses = partial(LocalProcesses, checkpoints=seconds)
        said("study", file, "--workers", 2, "--runs", runs)

    return beside(command)


def finish(file, runs):
    """The same command, undisturbed, in this process."""
    code, told = said("study", file, "--workers", 2, "--runs", runs)
    assert code == 0, told


def workers():
    """The processes that were forked from the one that is warm: no other study goes on here."""
    warm = str(forkserver._forkserver._forkserver_pid)
    return [int(pid) for pid in subprocess.run(["pgrep", "-P", warm], capture_output=True, text=True).stdout.split()]


def moment(runs, kind, since):
    """Is it time to kill: has training written a checkpoint since then, or is a run final and not yet tested?"""
    for run in Store(runs).runs():
        if kind == "test" and run.final and not run.tested:
            return True
        checkpoint = run.path / "checkpoint.pt"
        try:
            if kind == "training" and not run.final and checkpoint.stat().st_mtime > since:
                return True
        except FileNotFoundError:
            continue
    return False


def struck(study, runs, kind, whom, since, rng):
    """Kill the runner or its workers at such a moment; False: the study ended before one came."""
    while os.waitpid(study, os.WNOHANG) == (0, 0):
        if moment(runs, kind, since):
            time.sleep(rng.uniform(0, 0.3) if kind == "training" else 0)
            for pid in [study] if whom == "runner" else workers():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            os.waitpid(study, 0)
            while workers():  # those of a killed runner write a checkpoint and end themselves
                time.sleep(0.005)
            return True
        time.sleep(0.005)
    return False


def killed_and_called_again(tmp_path, losses, seeds, epochs, kills, seconds):
    file = write(tmp_path, losses, seeds, epochs)
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    finish(file, straight)
    rng, hits = random.Random(0), []
    for number in range(kills):
        kind, whom = ("training", "test")[number % 3 == 2], ("runner", "workers")[number % 2]
        began = time.time()
        study = start(file, killed, seconds)
        if struck(study, killed, kind, whom, began, rng):
            hits.append((kind, whom))
    assert {("training", "runner"), ("training", "workers")} <= set(hits), hits
    finish(file, killed)
    assert contents(killed) == contents(straight)
    assert len(contents(killed)) == (len(losses) + 2) * len(seeds)
    for name in ("study.csv", "study-seeds.csv"):
        assert (killed / name).read_text() == (straight / name).read_text()
    return hits


def test_two_kills(tmp_path):
    killed_and_called_again(tmp_path, ["triplet", "proxy_anchor"], [0], 12, kills=2, seconds=0.1)


@pytest.mark.slow
def test_ten_kills_of_six_losses_and_three_seeds(tmp_path):
    losses = ["triplet", "contrastive", "margin", "multi_similarity", "proxy_anchor", "norm_softmax"]
    hits = killed_and_called_again(tmp_path, losses, [0, 1, 2], 250, kills=10, seconds=1)
    assert len(hits) == 10
    assert {kind for kind, _ in hits} == {"training", "test"}
