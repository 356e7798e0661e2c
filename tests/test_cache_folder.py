"""The cache folder: where it is, and that nobody removes from it what a process is still making."""

import os
import subprocess
import sys

import pytest
from filelock import FileLock, Timeout
from typer.testing import CliRunner

from nearkin import cache
from nearkin.cache import cache_dir, cached, discard
from nearkin.cli.app import app
from nearkin.scratch import machine
from nearkin.storage import atomic, locked
from nearkin.units import BYTES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARKIN_CACHE", str(tmp_path / "kept"))
    (tmp_path / "kept" / "decoded").mkdir(parents=True)
    return tmp_path / "kept" / "decoded"


def unfinished(folder, name, pid):
    """What process `pid` of this machine is making, without a lock."""
    scratch = folder / f".{name}.{machine()}-{pid}.abc123"
    scratch.mkdir()
    (scratch / name).write_bytes(bytes(1000))
    return scratch


def dead_process():
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    return int(done.stdout)


class TestWhatIsBeingMade:
    def test_is_not_cleared(self, folder):
        alive, dead = unfinished(folder, "a.npy", os.getppid()), unfinished(folder, "b.npy", dead_process())
        (folder / "c.part").mkdir()
        with locked(folder / "c"):
            done = CliRunner().invoke(app, ["cache", "clear", "--yes"])
        assert done.stdout.strip() == "removed 1 entry, 1.0 kB; kept 2 entries that a process is making"
        assert alive.exists()
        assert (folder / "c.part").exists()
        assert not dead.exists()

    def test_is_not_evicted(self, folder, monkeypatch):
        alive = unfinished(folder, "a.npy", os.getppid())
        monkeypatch.setenv("NEARKIN_CACHE_LIMIT", "0.000000001")
        with atomic(folder / "b.npy") as scratch:
            (scratch / "b.npy").write_bytes(bytes(1000))
        assert (alive / "a.npy").exists()

    def test_is_listed_as_unfinished(self, folder):
        unfinished(folder, "a.npy", os.getppid())
        (folder / "b.part").mkdir()
        said = CliRunner().invoke(app, ["cache", "list"]).stdout
        assert said.count("decoded, unfinished") == 2
        assert machine() not in said


def test_a_lock_has_one_holder_whatever_is_discarded_meanwhile(folder, monkeypatch):
    """A process waits for the lock that `discard` holds, and gets it; a third one must then wait."""
    (folder / "a").mkdir()
    waiting = FileLock(folder / "a.lock")

    class HandedOver(FileLock):
        def __exit__(self, *error):
            super().__exit__(*error)
            waiting.acquire(timeout=0)

    monkeypatch.setattr(cache, "FileLock", HandedOver)
    assert discard(cached()[0])
    with pytest.raises(Timeout):
        FileLock(folder / "a.lock").acquire(timeout=0)
    waiting.release()


class TestThePlace:
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path, monkeypatch):
        for name in ("NEARKIN_CACHE", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))

    @pytest.mark.skipif(sys.platform != "linux", reason="Linux keeps its caches in ~/.cache")
    def test_on_linux(self, tmp_path, monkeypatch):
        assert cache_dir() == tmp_path / ".cache" / "nearkin"
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert cache_dir() == tmp_path / "xdg" / "nearkin"
        monkeypatch.setenv("NEARKIN_CACHE", "~/mine")
        assert cache_dir() == tmp_path / "mine"

    def test_what_was_kept_moves_over_once(self, tmp_path, monkeypatch, capsys):
        new = tmp_path / "Library" / "Caches" / "nearkin"
        monkeypatch.setattr(cache, "user_cache_path", lambda *_, **__: new)
        old = tmp_path / ".cache" / "nearkin"
        (old / "decoded" / "a").mkdir(parents=True)
        assert cache_dir() == new
        assert (new / "decoded" / "a").is_dir()
        assert not old.exists()
        assert " ".join(capsys.readouterr().err.split()) == f"the cache has moved from {old} to {new}"
        old.mkdir()  # there are two now: nothing is overwritten
        cache._move_over.cache_clear()
        assert cache_dir() == new
        assert old.is_dir()
        assert capsys.readouterr().err == ""

    def test_what_cannot_be_moved_stays(self, tmp_path, monkeypatch, capsys):
        new = tmp_path / "file" / "nearkin"
        (tmp_path / "file").touch()
        monkeypatch.setattr(cache, "user_cache_path", lambda *_, **__: new)
        (tmp_path / ".cache" / "nearkin").mkdir(parents=True)
        assert cache_dir() == new
        assert "could not be moved" in capsys.readouterr().err


def test_sizes_in_words():
    assert [BYTES.text(size) for size in (0, 999, 1500, 12_345_678, 1.5e12)] == [
        "0 bytes",
        "999 bytes",
        "1.5 kB",
        "12.3 MB",
        "1.5 TB",
    ]
