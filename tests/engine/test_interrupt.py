"""Ctrl-C and SIGTERM, whenever they come: a checkpoint of the last whole step, and the bits of a run never stopped."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
import torch
from ranks import spawn

import nearkin.engine.loop
import nearkin.runs.fit
from nearkin.runs.store import Run, Store

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

PER_EPOCH = 6  # steps of an epoch of the tiny run


def strike(kind):
    os.kill(os.getpid(), kind)


def struck_at(moment, kind):
    """Have this process struck by a signal, once, at a moment of its second step or of its first epoch's end; gives the
    watcher that the run needs for it."""
    left = [1]

    def once():
        if left[0]:
            left[0] -= 1
            strike(kind)

    def before(place, name, at=1):
        calls, original = iter(range(10**6)), getattr(place, name)

        def wrapped(*args, **kwargs):
            if next(calls) + 1 == at:
                once()
            return original(*args, **kwargs)

        setattr(place, name, wrapped)

    if moment == "forward":
        before(nearkin.engine.loop, "batch_loss", 2)
    elif moment == "backward":
        before(torch.Tensor, "backward", 2)
    elif moment == "optimiser":
        before(torch.optim.AdamW, "step", 2)
    elif moment == "validation":
        before(nearkin.runs.fit, "evaluate")
    elif moment == "model":
        before(Run, "save")  # the best weights, before there is a checkpoint
    elif moment == "curve":
        before(nearkin.runs.fit.np, "save")  # the test embeddings of an epoch

    def watch(entry):
        if (moment == "step" and entry.get("step") == 1) or (moment == "epoch" and "epoch_end" in entry):
            once()

    return watch


def child(work):
    """What became of `work` in a child process with Python's own signal handlers: its exit code, or minus a signal."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            work()
            code = 0
        except KeyboardInterrupt:
            code = 130
        except SystemExit as stopped:
            code = stopped.code
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def content(run):
    """Weights, embeddings, and the log without its clock."""
    state = run.load("model.pt")
    found = {f"{part}.{k}": v.numpy() for part in ("model", "objective") for k, v in state[part].items()}
    with np.load(run.path / "embeddings.npz") as held:
        found["z"] = held["embeddings"]
    return found, [{k: v for k, v in line.items() if k != "images_per_s"} for line in run.log_lines()]


def same(a, b):
    weights, log = content(a)
    others, other_log = content(b)
    assert [k for k in weights if not np.array_equal(weights[k], others[k])] == []
    assert log == other_log


@pytest.fixture(scope="module")
def words():
    return {
        "dataset": "glyphs",
        "data.classes": 24,
        "data.per_class": 10,
        "data.size": 16,
        "backbone": "convnet",
        "dim": 16,
        "train.batch": 16,
        "sampler.per_class": 4,
        "epochs": 2,
        "loss": "nt_xent",
        "memory.size": 24,
        "train.curve": True,
    }


@pytest.fixture(scope="module")
def straight(words, tmp_path_factory):
    return nearkin.train(words, runs=tmp_path_factory.mktemp("straight"))


MOMENTS = {
    "step": 1,
    "forward": 2,
    "backward": 2,
    "optimiser": 2,
    "validation": PER_EPOCH,
    "model": PER_EPOCH,
    "curve": PER_EPOCH,
    "epoch": PER_EPOCH,
}


KINDS = (signal.SIGINT, signal.SIGTERM)  # one handler takes both: in turn, and both where a step ends


@pytest.mark.parametrize(
    ("moment", "kind"), [("step", signal.SIGTERM), *((each, KINDS[i % 2]) for i, each in enumerate(MOMENTS))]
)
def test_struck_at_any_moment_it_goes_on_there(words, straight, tmp_path, moment, kind):
    ended = child(lambda: nearkin.train(words, runs=tmp_path, watch=struck_at(moment, kind)))
    assert ended == (130 if kind == signal.SIGINT else -signal.SIGTERM)
    state = Run(tmp_path / straight.hash).load("checkpoint.pt")
    assert state["progress"]["step"] == MOMENTS[moment]  # that step was finished
    told = []
    resumed = nearkin.train(words, runs=tmp_path, watch=told.append)
    at = [entry["resumed"] for entry in told if "resumed" in entry]
    epoch = 1 if state["progress"]["epoch"] == 0 else 2
    assert at == [{"epoch": epoch, "step": MOMENTS[moment]}]
    assert "resumed" not in (resumed.path / "log.jsonl").read_text()
    same(resumed, straight)


def test_struck_again_and_again(words, straight, tmp_path):
    """Every step of the run by another process."""
    for step in range(1, 2 * PER_EPOCH + 1):

        def watch(entry, kind=(signal.SIGINT, signal.SIGTERM)[step % 2]):
            if "step" in entry:
                strike(kind)

        assert child(lambda watch=watch: nearkin.train(words, runs=tmp_path, watch=watch)) in (130, -signal.SIGTERM)
        assert Run(tmp_path / straight.hash).load("checkpoint.pt")["progress"]["step"] == step
    same(nearkin.train(words, runs=tmp_path), straight)


def test_what_the_program_does_on_sigterm_happens_after_the_checkpoint(words, straight, tmp_path):
    def work():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        nearkin.train(words, runs=tmp_path, watch=struck_at("optimiser", signal.SIGTERM))

    assert child(work) == 143
    assert Run(tmp_path / straight.hash).load("checkpoint.pt")["progress"]["step"] == 2


def test_a_program_that_goes_on_after_a_signal_is_let_go_on(words, straight, tmp_path):
    def work():
        caught = []
        signal.signal(signal.SIGINT, lambda *_: caught.append(1))
        nearkin.train(words, runs=tmp_path, watch=lambda entry: entry.get("step") in (1, 3) and strike(signal.SIGINT))
        sys.exit(10 + len(caught))

    assert child(work) == 12
    same(Run(tmp_path / straight.hash), straight)


def test_a_second_signal_goes_through_at_once(words, tmp_path):
    """In the middle of a step, which is then not saved."""

    def work():
        inner = torch.optim.AdamW.step

        def step(*args, **kwargs):
            strike(signal.SIGINT)
            time.sleep(0.01)
            strike(signal.SIGINT)
            time.sleep(0.01)
            os._exit(77)
            return inner(*args, **kwargs)

        torch.optim.AdamW.step = step
        nearkin.train(words, runs=tmp_path)

    assert child(work) == 130
    assert not list(tmp_path.glob("*/checkpoint.pt"))


def test_ignored_signals_stay_ignored_and_handlers_are_put_back(words, straight, tmp_path):
    def work():
        def mine(*args):
            raise AssertionError

        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as the workers of a study have it
        signal.signal(signal.SIGTERM, mine)
        nearkin.train(words, runs=tmp_path, watch=struck_at("step", signal.SIGINT))
        sys.exit(
            20 if (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == (signal.SIG_IGN, mine) else 21
        )

    assert child(work) == 20
    same(Run(tmp_path / straight.hash), straight)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_raised_by_a_watcher_in_another_thread(words, straight, tmp_path, raised):
    """Where no signal can be held back."""
    found = []

    def watch(entry):
        if entry.get("step") == 3:
            raise raised

    def work():
        try:
            nearkin.train(words, runs=tmp_path, watch=watch)
        except BaseException as error:
            found.append(type(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [raised]
    assert Run(tmp_path / straight.hash).load("checkpoint.pt")["progress"]["step"] == 3
    same(nearkin.train(words, runs=tmp_path), straight)


def test_a_full_disk_says_more_than_the_signal(words, tmp_path):
    def work():
        def full(*args):
            raise nearkin.errors.NearkinError("the disk is full")

        Run.save = full
        try:
            nearkin.train(words, runs=tmp_path, watch=struck_at("step", signal.SIGINT))
        except nearkin.errors.NearkinError:
            sys.exit(30)

    assert child(work) == 30


def test_two_processes_struck_at_once(words, tmp_path):
    """The first saves; the second stays until its part of the step is done."""
    answers = spawn("struck", 2, tmp_path, words, str(tmp_path / "runs"))["answers"]
    assert [answer["error"].strip().splitlines()[-1] for answer in answers] == ["KeyboardInterrupt"] * 2
    (run,) = Store(tmp_path / "runs").runs()
    assert run.load("checkpoint.pt")["progress"]["step"] == 2
