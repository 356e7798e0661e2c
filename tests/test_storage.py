"""Files appear whole or not at all, and a kill leaves nothing for good."""

import os
import subprocess
import sys
import time

import pytest

from nearkin.cache import cache_dir
from nearkin.scratch import STALE, machine
from nearkin.storage import atomic, sweep


def leave_scratch(folder, name, age):
    """What a killed process leaves."""
    scratch = folder / f".{name}.abcd1234"
    scratch.mkdir(parents=True)
    (scratch / name).write_text("half")
    then = time.time() - age
    for path in (scratch / name, scratch):
        os.utime(path, (then, then))
    return scratch


def test_a_failure_leaves_nothing(tmp_path):
    def write():
        with atomic(tmp_path / "a.txt") as scratch:
            (scratch / "a.txt").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write()
    assert list(tmp_path.iterdir()) == []


def test_what_killed_processes_left_in_the_cache_goes_after_a_day(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARKIN_CACHE", str(tmp_path))
    old, young = leave_scratch(cache_dir() / "x", "a[1].npy", STALE + 60), leave_scratch(cache_dir() / "y", "b.npy", 60)
    for folder, name in (("x", "a[1].npy"), ("y", "b.npy")):
        with atomic(cache_dir() / folder / name) as scratch:
            (scratch / name).write_text("whole")
        assert (cache_dir() / folder / name).read_text() == "whole"
    assert not old.exists()
    assert young.exists()  # its process may still be at work


def test_nothing_is_removed_outside_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARKIN_CACHE", str(tmp_path / "cache"))
    kept = leave_scratch(tmp_path / "mine", "a.txt", STALE + 60)
    with atomic(tmp_path / "mine" / "a.txt") as scratch:
        (scratch / "a.txt").write_text("whole")
    assert kept.exists()


def test_what_a_dead_process_left_is_swept_wherever_it_is_and_nothing_of_a_living_one(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARKIN_CACHE", str(tmp_path / "cache"))
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    dead, elsewhere, alive = (
        tmp_path / f".a.txt.{place}-{pid}.abc123"
        for place, pid in (
            (machine(), gone.stdout.strip()),
            ("0123abcd", gone.stdout.strip()),
            (machine(), os.getppid()),
        )
    )
    for scratch in (dead, elsewhere, alive):
        scratch.mkdir()
    with atomic(tmp_path / "a.txt") as scratch:
        (scratch / "a.txt").write_text("whole")
    assert [scratch.exists() for scratch in (dead, elsewhere, alive)] == [False, True, True]


def test_a_folder_is_swept_of_all_that_dead_processes_left(tmp_path):
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    dead = tmp_path / f".model-3.pt.{machine()}-{gone.stdout.strip()}.abc123"
    dead.mkdir()
    (tmp_path / ".hidden.of.the-1.user").mkdir()
    sweep(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [".hidden.of.the-1.user"]


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_name_is_given_to_what_is_on_the_disk(tmp_path, monkeypatch, what):
    monkeypatch.setenv("NEARKIN_FSYNC", "1")
    done, fsync, replace = [], os.fsync, os.replace
    named = "/proc/self/fd/{}".format
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append(os.readlink(named(handle))), fsync(handle)))
    monkeypatch.setattr(os, "replace", lambda made, path: (done.append("named"), replace(made, path)))
    with atomic(tmp_path / "a") as scratch:
        if what == "folder":
            (scratch / "a").mkdir()
        made = scratch / "a" / "b" if what == "folder" else scratch / "a"
        made.write_text("whole")
    before, after = done[: done.index("named")], done[done.index("named") + 1 :]
    assert before == ([str(made), str(scratch / "a")] if what == "folder" else [str(made)])
    assert after == [str(tmp_path)]


def test_without_waiting_for_the_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARKIN_FSYNC", "0")
    monkeypatch.setattr(os, "fsync", lambda handle: pytest.fail("it waits"))
    with atomic(tmp_path / "a") as scratch:
        (scratch / "a").write_text("whole")
