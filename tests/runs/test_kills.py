"""SIGKILL at twenty moments of a run, also while files are written and while it is tested: bits equal, nothing lost."""

import os
import random
import signal
import time

import numpy as np
import pytest
import torch

import nearkin.runs.test
from nearkin.runs.store import Run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def train_and_die(words, runs, at, half):
    """In a child: train, and be killed at the `at`-th write, before the file is in place (half: when half of a state is
    on the disk), or never, when there are fewer. True: it was killed."""
    child = os.fork()
    if child == 0:
        writes = 0
        replace, save = os.replace, torch.save

        def counted_replace(*args):
            nonlocal writes
            writes += 1
            if writes == at:
                if not half:
                    replace(*args)  # in place, but whoever wrote it does not know
                kill()
            return replace(*args)

        def half_save(state, file):
            if half and writes + 1 == at:
                save(state, file)
                file.truncate(file.tell() // 2)
                file.flush()
                kill()
            return save(state, file)

        os.replace, torch.save = counted_replace, half_save
        nearkin.train(words, runs=runs)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def content(run):
    """All that a run found: weights, embeddings, results, log without its clock."""
    state = run.load("model.pt")
    weights = {f"{part}.{k}": v.numpy() for part in ("model", "objective") for k, v in state[part].items()}
    arrays = {}
    for name in ("embeddings.npz", "validation.npz"):
        with np.load(run.path / name) as held:
            arrays |= {f"{name} {key}": held[key] for key in held.files}
    timed = ("images_per_s", "seconds", "tested")
    log = [{k: v for k, v in line.items() if k not in timed} for line in run.log_lines()]
    result = {k: v for k, v in run.result.items() if k not in timed}
    return weights | arrays, log, result


def test_twenty_kills_at_writes_of_all_kinds(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("nearkin.engine.loop.CHECKPOINT_SECONDS", 0)
    blended = {"train.average": 0.9, "train.blend": "auto"}
    small = {"data.classes": 12, "data.size": 16, "train.batches_per_epoch": 4}
    words = tiny | small | blended | {"epochs": 3, "loss": "nt_xent", "memory.size": 24, "train.curve": True}
    straight = nearkin.train(words, runs=tmp_path / "straight")
    rng = random.Random(0)
    kills, chain = 0, 0
    moments = list(range(1, 12)) + [rng.randrange(1, 30) for _ in range(40)]
    while kills < 20:
        chain += 1
        runs = tmp_path / f"chain{chain}"
        while kills < 20 and train_and_die(words, runs, moments[kills], half=kills % 2 == 0):
            kills += 1
        run = nearkin.train(words, runs=runs)
        arrays, log, result = content(run)
        expected, expected_log, expected_result = content(straight)
        assert arrays.keys() == expected.keys()
        assert [k for k in arrays if not np.array_equal(arrays[k], expected[k])] == []
        assert log == expected_log
        assert result == expected_result
        assert run.read_json("curve.json") == straight.read_json("curve.json")
        left = {p.name for p in run.path.iterdir()} - {p.name for p in straight.path.iterdir()}
        assert {name for name in left if name.startswith(("model-", "checkpoint"))} == set()
    assert kills == 20


def killed_at_any_moment(words, tmp_path, kills):
    """A checkpoint after every step, and SIGKILL again and again, wherever training then is."""
    began = time.monotonic()
    straight = nearkin.train(words, runs=tmp_path / "straight")
    longest = time.monotonic() - began
    rng, chain = random.Random(0), 0
    while kills:
        chain += 1
        ended = False
        while kills and not ended:
            child = os.fork()
            if child == 0:
                nearkin.train(words, runs=tmp_path / f"chain{chain}")
                os._exit(0)
            time.sleep(rng.uniform(0, longest))
            os.kill(child, signal.SIGKILL)
            ended = not os.WIFSIGNALED(os.waitpid(child, 0)[1])  # it was faster
            kills -= not ended
        run = nearkin.train(words, runs=tmp_path / f"chain{chain}")
        (arrays, *told), (expected, *expected_told) = content(run), content(straight)
        assert [k for k in arrays.keys() | expected.keys() if not np.array_equal(arrays[k], expected[k])] == []
        assert told == expected_told


def test_killed_at_any_moment_of_any_step(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("nearkin.engine.loop.CHECKPOINT_SECONDS", 0)
    killed_at_any_moment(tiny | {"data.size": 16, "loss": "margin", "sampler": "gc"}, tmp_path, kills=6)


@pytest.mark.slow
def test_killed_a_hundred_times(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("nearkin.engine.loop.CHECKPOINT_SECONDS", 0)
    killed_at_any_moment(tiny | {"loss": "margin", "sampler": "gc", "epochs": 6}, tmp_path, kills=100)


@pytest.mark.parametrize("stage", ["embed", "write_per_query", "_store_first", "_curve"])
def test_killed_while_it_is_tested(tiny, tmp_path, stage):
    words = tiny | {"data.classes": 12, "data.size": 16, "epochs": 1, "train.curve": True}
    straight = nearkin.train(words, runs=tmp_path / "straight")
    child = os.fork()
    if child == 0:
        setattr(nearkin.runs.test, stage, lambda *args, **kwargs: kill())
        nearkin.train(words, runs=tmp_path / "killed")
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    killed = Run(tmp_path / "killed" / straight.hash)
    assert killed.final
    assert not killed.tested
    trained = (killed.path / "model.pt").stat().st_mtime_ns
    run = nearkin.train(words, runs=tmp_path / "killed")
    assert (run.path / "model.pt").stat().st_mtime_ns == trained  # it was not trained again
    assert run.metrics() == straight.metrics()


def test_a_second_process_tests_a_run_while_the_first_trains_another(tiny, tmp_path):
    tested = nearkin.train(tiny, runs=tmp_path)
    child = os.fork()
    if child == 0:
        nearkin.train(tiny, runs=tmp_path, seed=1, epochs=8)
        os._exit(0)
    found = nearkin.test(tested, metrics=["nmi", "ami", "f1", "map@1000", "recall@100"])
    assert len(found) == 5
    assert os.waitpid(child, 0)[1] == 0
