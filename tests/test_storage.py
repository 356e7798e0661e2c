"""Files appear whole or not at all, and a kill leaves nothing for good."""

import os
import time

import pytest

from nearkin.storage import STALE, atomic, cache_dir


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
    assert young.exists()                                           # its process may still be at work


def test_nothing_is_removed_outside_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARKIN_CACHE", str(tmp_path / "cache"))
    kept = leave_scratch(tmp_path / "mine", "a.txt", STALE + 60)
    with atomic(tmp_path / "mine" / "a.txt") as scratch:
        (scratch / "a.txt").write_text("whole")
    assert kept.exists()
