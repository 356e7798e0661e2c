"""A study, a search and a fit, each killed with SIGKILL at thirty random moments, end with the runs and the verdict
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

from nearkin.runs.store import Store
from nearkin.studies.grid import read_study
from nearkin.studies.search import searches_of
from nearkin.studies.searching import searching

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


def test_a_fit(tmp_path):
    words = [f"{key}={value}" for key, value in BASE.items()]
    more = ["--losses", ",".join(LOSSES), "--minutes", 600, "--workers", 2]
    said = killed_again_and_again(tmp_path, lambda runs: ["fit", *words, *more, "--runs", tmp_path / runs])
    assert "On classes it has never seen" in said
    assert contents(tmp_path / "killed") == contents(tmp_path / "straight")
    estimates = [
        [json.loads(file.read_text()) for file in (tmp_path / runs).glob("*/estimate.json")]
        for runs in ("straight", "killed")
    ]
    assert estimates[0] == estimates[1] != []
