"""When checkpoints are written, and that they and the log are on the disk before the checkpoint has its name."""

import os
import signal
import time
from types import SimpleNamespace

import pytest

import nearkin
from nearkin.engine import loop
from nearkin.runs import listing
from nearkin.runs.store import Run, Store


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_short_run_that_was_killed_goes_on_where_its_last_epoch_ended(tiny, tmp_path):
    words = tiny | {"epochs": 3}
    child = os.fork()
    if child == 0:

        def watch(entry):
            if entry.get("epoch") == 2:
                os.kill(os.getpid(), signal.SIGKILL)

        nearkin.train(words, runs=tmp_path, watch=watch)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    (run,) = Store(tmp_path).runs()
    assert listing.state(run).startswith("begun ")
    said = []
    nearkin.train(words, runs=tmp_path, watch=said.append)
    assert not said[0]["plan"]["again"]  # not "nothing was saved yet"
    assert said[1] == {"resumed": {"epoch": 2, "step": 6}}


class Clock:
    """A clock that only the steps and the checkpoints of a run move on."""

    def __init__(self, monkeypatch, step, checkpoint):
        self.now, self.checkpoint, self.step = 0.0, checkpoint, step
        self.written = []  # after which steps
        self._save = Run.save
        now = SimpleNamespace(monotonic=lambda: self.now, perf_counter=time.perf_counter)
        monkeypatch.setattr(loop, "time", now)
        monkeypatch.setattr(Run, "save", lambda run, name, state: self.save(run, name, state))

    def save(self, run, name, state):
        self._save(run, name, state)
        if name == "checkpoint.pt":
            self.now += self.checkpoint
            self.written.append(state["progress"]["step"])

    def watch(self, entry):
        self.now += self.step if "step" in entry else 0


@pytest.mark.parametrize(
    ("step", "checkpoint", "written"),
    [
        (1, 0.2, [6, 12, 18, 24]),  # an epoch of 6 steps takes 6 seconds: cheap enough
        (1, 0.4, [6, 18]),  # only every second; of the first its cost is not known yet
        (10, 0.4, [3, 6, 9, 12, 15, 18, 21, 24]),  # every 30 seconds; then an epoch's end needs none of its own
    ],
    ids=["cheap", "dear", "long"],
)
def test_an_epochs_end_has_one_where_it_costs_little(tiny, tmp_path, monkeypatch, step, checkpoint, written):
    clock = Clock(monkeypatch, step, checkpoint)
    nearkin.train(tiny | {"epochs": 4}, runs=tmp_path, watch=clock.watch, test=False)
    assert clock.written == written


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc")
def test_log_and_checkpoint_are_on_the_disk_before_the_checkpoint_has_its_name(tiny, tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, os.replace

    def noted_fsync(handle):
        done.append(("synced", os.path.basename(os.readlink(f"/proc/self/fd/{handle}"))))
        fsync(handle)

    def noted_replace(made, path):
        done.append(("named", os.path.basename(path)))
        replace(made, path)

    monkeypatch.setenv("NEARKIN_FSYNC", "1")
    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    run = nearkin.train(tiny | {"epochs": 1}, runs=tmp_path, test=False)
    at = done.index(("named", "checkpoint.pt"))
    log, state = done.index(("synced", "log.jsonl")), done.index(("synced", "checkpoint.pt"))
    assert log < at
    assert state < at
    assert done[at + 1] == ("synced", run.hash)  # the folder that has the name
    last = len(done) - 1 - done[::-1].index(("synced", "log.jsonl"))
    assert last < done.index(("named", "final.json"))  # all of the log, to which files.json refers


def test_nothing_waits_for_the_disk_where_that_is_switched_off(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("NEARKIN_FSYNC", "0")
    monkeypatch.setattr(os, "fsync", lambda handle: pytest.fail("it waits"))
    nearkin.train(tiny | {"epochs": 1}, runs=tmp_path)
