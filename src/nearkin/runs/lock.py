"""The lock of a run: one process trains or tests it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from nearkin.errors import NearkinError
from nearkin.storage import explained


class RunLocked(NearkinError):
    """Another process trains or tests the run."""


@contextmanager
def locked_run(path: Path) -> Iterator[None]:
    """Hold the lock of a run's directory; it is freed by the system when the process dies, however it dies."""
    file = path / "lock"
    if file.is_symlink():  # taking the lock empties its file
        target = os.readlink(file)
        raise NearkinError(f"{file} is a link to {target}: nearkin does not write through links; remove it")
    lock = FileLock(file)
    with explained(file):
        path.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise RunLocked(f"run {path.name} is being trained by process {_holder(file)}") from None
    with suppress(OSError):  # Windows does not let a locked file be written
        file.write_text(str(os.getpid()))
    try:
        yield
    finally:
        lock.release()


def _holder(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:  # it has just ended
        return "?"
