"""A study, a search and a choice, each killed with SIGKILL at thirty random moments, end with the runs and the verdict
of one that was never killed. Slow: `make kills`."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
import yaml
from stores import contents

from nearkin.config.parse import parse_words
from nearkin.runs.store import Store
from nearkin.studies.grid import read_study
from nearkin.studies.search import searches_of
from nearkin.studies.searching import searching
from nearkin.tuning._schedule import Plan
from nearkin.tuning.choose import Choice

KILLS = int(os.environ.get("NEARKIN_KILLS", "30"))
BASE = {
    "dataset": "glyphs",
    "data.classes": 24,
    "data.per_class": 10,
    "backbone": "convnet",
    "dim": 16,
    "train.batch": 16,
    "epochs": 12,
}
LOSSES = ["triplet", "proxy_anchor"]
# A file, not `python -c`: workers import nearkin anew, and it is the file of the program that they run again.
PROGRAM = """
import nearkin.engine.loop as loop
loop.CHECKPOINT_SECONDS = 0.2
if __name__ == "__main__":
    from nearkin.cli.app import main
    main()
"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs Linux or macOS")]


def start(folder, words):
    (folder / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(folder / "program.py"), *map(str, words)]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, start_new_session=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, **quiet)


def finish(folder, words):
    process = start(folder, words)
    said = process.communicate()[0]
    assert process.returncode == 0, said
    return said


def killed_again_and_again(folder, words, seed=0):
    """Kill the command, or all of its processes, at random moments of its length; then let it end. Returns what it says
    at the end."""
    began = time.monotonic()
    finish(folder, words("straight"))
    length, rng, hits = time.monotonic() - began, random.Random(seed), 0
    while hits < KILLS:
        process = start(folder, words("killed"))
        try:
            process.wait(rng.uniform(0, length))
        except subprocess.TimeoutExpired:
            hits += 1
            os.kill(process.pid, signal.SIGKILL) if hits % 2 else os.killpg(process.pid, signal.SIGKILL)
        else:  # it came to its end: from the start once more
            assert process.returncode == 0, process.communicate()[0]
            shutil.rmtree(folder / "killed")
        process.communicate()
    return finish(folder, words("killed"))


def study_file(folder, **more):
    content = {"name": "t", "base": BASE, "axes": {"loss": LOSSES}, "seeds": [0, 1]} | more
    file = folder / "t.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return file


def test_a_study(tmp_path):
    file = study_file(tmp_path)
    killed_again_and_again(tmp_path, lambda runs: ["study", file, "--workers", 2, "--runs", tmp_path / runs])
    assert contents(tmp_path / "killed") == contents(tmp_path / "straight")
    assert (tmp_path / "killed" / "t.csv").read_text() == (tmp_path / "straight" / "t.csv").read_text()


@pytest.mark.parametrize(
    "tune", [{"trials": 6}, {"trials": 7, "sampler": "coordinate", "halving": 2}], ids=["tpe", "coordinate"]
)
def test_a_search(tmp_path, tune):
    file = study_file(
        tmp_path, axes={"loss": ["triplet"]}, seeds=[0], tune=tune, baselines="none", base={**BASE, "epochs": 4}
    )
    killed_again_and_again(tmp_path, lambda runs: ["study", file, "--tune-only", "--runs", tmp_path / runs])
    assert contents(tmp_path / "killed") == contents(tmp_path / "straight")
    trials = [
        searching(searches_of(read_study(file)), Store(tmp_path / runs)).ledgers[0].trials()
        for runs in ("straight", "killed")
    ]
    assert trials[0] == trials[1]


def test_a_choice(tmp_path):
    words = [f"{key}={value}" for key, value in BASE.items() if key != "epochs"]
    plan = Plan(batches=10, methods=4, finalists=2, seeds=3, whole=True)
    state = {"used": 0.0, "plan": plan.told(), "test": 1.0}  # as the first call would have stored it
    for runs in ("straight", "killed"):
        choice = Choice(parse_words(words), 600.0, Store(tmp_path / runs), 2)
        choice.state = dict(state)
        choice.keep()
        shutil.copytree(tmp_path / runs, tmp_path / f"{runs}-begun")

    def command(runs):
        if not (tmp_path / runs).exists():
            shutil.copytree(tmp_path / f"{runs}-begun", tmp_path / runs)
        return ["choose", *words, "--minutes", 600, "--workers", 2, "--runs", tmp_path / runs]

    said = killed_again_and_again(tmp_path, command)
    verdicts = [
        [line for line in text.splitlines() if " wins" in line or "lead over" in line]
        for text in (said, finish(tmp_path, command("straight")))
    ]
    assert verdicts[0] == verdicts[1] != []
    assert contents(tmp_path / "killed") == contents(tmp_path / "straight")
    decided = [
        json.loads(next((tmp_path / runs / "studies").glob("*/choose.json")).read_text())["decided"]
        for runs in ("straight", "killed")
    ]
    assert decided[0] == decided[1]
