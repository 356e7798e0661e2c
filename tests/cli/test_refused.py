"""What the system refuses is one line and exit code 1, in whatever words it comes."""

import errno
import os
import subprocess
import sys

import pytest

from nearkin.cli import app as module
from nearkin.runs import listing

ERRORS = [
    *(
        OSError(number, os.strerror(number), "some/file")
        for number in (
            errno.EIO,
            errno.EMFILE,
            errno.EFBIG,
            errno.ENAMETOOLONG,
            errno.ENOSPC,
            errno.EACCES,
            errno.ELOOP,
        )
    ),
    OSError("without a number"),
    MemoryError(),
    MemoryError("Unable to allocate 7 GiB\nfor an array"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:1] . DefaultCPUAllocator: can't allocate memory: you tried 7"),
    RuntimeError("can't start new thread"),
]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_one_line(error, monkeypatch, capsys):
    def refuse(*_):
        raise error

    monkeypatch.setattr(listing, "select", refuse)
    monkeypatch.setattr(sys, "argv", ["nearkin", "runs", "list"])
    with pytest.raises(SystemExit) as ended:
        module.main()
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert said.startswith("nearkin: ")
    assert said.count("\n") == 1
    assert len(said) > len("nearkin: \n")


def test_other_errors_are_not_hidden(monkeypatch):
    def fail(*_):
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(listing, "select", fail)
    monkeypatch.setattr(sys, "argv", ["nearkin", "runs", "list"])
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        module.main()


def shell(line, tmp_path, **more):
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | more
    line = line.replace("nearkin", f"{sys.executable} -m nearkin")
    return subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment, capture_output=True, timeout=120)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_an_output_that_is_full(tmp_path):
    done = shell("nearkin list losses > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr.decode().count("\n") == 1


@pytest.mark.parametrize("line", ["nearkin list losses >&-", "nearkin list losses | true; exit ${PIPESTATUS[0]}"])
def test_an_output_that_is_closed(line, tmp_path):
    done = shell(line, tmp_path)
    assert done.returncode in (0, 1)
    assert done.stderr == b""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_that_lacks_characters(encoding, tmp_path):
    done = shell("nearkin list losses", tmp_path, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr.decode()
    assert b"triplet" in done.stdout
