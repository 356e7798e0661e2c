"""Where derived data are kept, and how they get there: whole, or not at all."""

import errno
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from nearkin.errors import NearkinError

STALE = 24 * 3600                   # seconds


def cache_dir() -> Path:
    """$NEARKIN_CACHE, else $XDG_CACHE_HOME/nearkin, else ~/.cache/nearkin. All in it can be made again."""
    own = os.environ.get("NEARKIN_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "nearkin"


@contextmanager
def atomic(path: Path, *, needs: Callable[[], int] | None = None) -> Iterator[Path]:
    """A scratch folder beside `path`. Leave in it a file or folder named like `path`: it takes that place at
    the end, in one step. After any failure, Ctrl-C included, the scratch folder is gone. `needs` tells the bytes
    wanted in all, for the message of a full disk.

    When another process has put the same thing there in the meantime, theirs stays: equal keys mean equal content.
    """
    scratch = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_relative_to(cache_dir()):                        # nowhere else is anything ours to remove
            _sweep(path)
        scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        yield scratch
        try:
            os.replace(scratch / path.name, path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    except OSError as error:
        raise _explained(error, path, needs) from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of `path` (a file beside it): another process that wants the same thing made waits here."""
    lock = FileLock(path.with_name(f"{path.name}.lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise _explained(error, path, None) from error
    try:
        yield
    finally:
        lock.release()


def _sweep(path: Path) -> None:
    """Scratch folders of processes that were killed: nobody has written in them for a day."""
    for scratch in path.parent.glob(f".{glob.escape(path.name)}.*"):
        try:
            written = max(file.stat().st_mtime for file in (scratch, *scratch.rglob("*")))
        except OSError:                                             # gone in the meantime
            continue
        if scratch.is_dir() and time.time() - written > STALE:
            shutil.rmtree(scratch, ignore_errors=True)


def _explained(error: OSError, path: Path, needs: Callable[[], int] | None) -> Exception:
    hint = " (another place: NEARKIN_CACHE=DIR)" if path.is_relative_to(cache_dir()) else ""
    where = f"{path.parent}{hint}"
    size = f" ({human(needs())} needed)" if needs is not None else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NearkinError(f"the disk is full: cannot write {path.name}{size} in {where}")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
        return NearkinError(f"cannot write {path.name} in {where}: {error.strerror}")
    return error


def human(size: float) -> str:
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.3g} {units[0]}"
