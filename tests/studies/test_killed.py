"""A study that is killed, its runner or its workers, and called again ends as one that never was."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml

from nearkin.runs.store import Store

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs Linux or macOS")


def write(folder, losses, seeds, epochs):
    base = {"dataset": "glyphs", "data.classes": 24, "data.per_class": 10, "backbone": "convnet", "dim": 16,
            "train.batch": 16, "epochs": epochs}  # fmt: skip
    file = folder / "study.yaml"
    axes = {"loss": losses}
    file.write_text(yaml.safe_dump({"base": base, "axes": axes, "seeds": seeds, "metrics": ["recall@1", "nmi"]}))
    return file


def start(file, runs):
    program = "import nearkin.engine.loop as loop; loop.CHECKPOINT_SECONDS = 1; import nearkin.cli.app as a; a.main()"
    words = ["study", str(file), "--workers", "2", "--runs", str(runs)]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([sys.executable, "-c", program, *words], **quiet)


def descendants(pid):
    found = []
    for child in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split():
        found += [int(child), *descendants(int(child))]
    return found


def contents(runs):
    """Weights, embeddings and results of all runs, without clocks."""
    found = {}
    for run in Store(runs).runs():
        state = run.load("model.pt")
        with np.load(run.path / "embeddings.npz") as held:
            arrays = {key: held[key].tobytes() for key in held.files}
        weights = {key: value.numpy().tobytes() for key, value in state["model"].items()}
        result = {k: v for k, v in run.result.items() if k not in ("seconds", "tested")}
        found[run.hash] = (weights, arrays, result, run.metrics())
    return found


def killed_and_called_again(tmp_path, losses, seeds, epochs, kills):
    file = write(tmp_path, losses, seeds, epochs)
    undisturbed = start(file, tmp_path / "straight")
    began = time.monotonic()
    said = undisturbed.communicate()[0]
    assert undisturbed.returncode == 0, said
    took = time.monotonic() - began
    rng = random.Random(0)
    for number in range(kills):
        study = start(file, tmp_path / "killed")
        try:
            study.wait(timeout=rng.uniform(0.3, 0.9) * took)
        except subprocess.TimeoutExpired:
            below = descendants(study.pid)
            victims = [study.pid] if number % 2 == 0 or not below else below[-2:]       # the runner, or its workers
            for pid in victims:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            study.wait()
        study.stdout.close()
    last = start(file, tmp_path / "killed")
    said = last.communicate()[0]
    assert last.returncode == 0, said
    assert contents(tmp_path / "killed") == contents(tmp_path / "straight")
    assert len(contents(tmp_path / "killed")) == (len(losses) + 2) * len(seeds)
    for name in ("study.csv", "study-seeds.csv"):
        assert (tmp_path / "killed" / name).read_text() == (tmp_path / "straight" / name).read_text()


def test_three_kills(tmp_path):
    killed_and_called_again(tmp_path, ["triplet", "proxy_anchor"], [0, 1], 3, kills=3)


@pytest.mark.slow
def test_ten_kills_of_six_losses_and_three_seeds(tmp_path):
    losses = ["triplet", "contrastive", "margin", "multi_similarity", "proxy_anchor", "norm_softmax"]
    killed_and_called_again(tmp_path, losses, [0, 1, 2], 8, kills=10)
