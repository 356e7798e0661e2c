"""The cache folder, and how files get into place: complete or not at all."""

import errno
import glob
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path

from filelock import FileLock, Timeout

from nearkin.errors import NearkinError

STALE = 24 * 3600                   # seconds after which an untouched scratch folder is removed


def cache_dir() -> Path:
    """$NEARKIN_CACHE, else $XDG_CACHE_HOME/nearkin, else ~/.cache/nearkin. Everything in it can be made again."""
    own = os.environ.get("NEARKIN_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "nearkin"


@dataclass(frozen=True)
class Kept:
    """One entry of the cache."""

    kind: str           # decoded, packed, sizes, features, glyphs, hashes
    path: Path
    size: int           # bytes
    used: float         # when it was last read, seconds since 1970


def cached() -> list[Kept]:
    """All entries of the cache, largest first."""
    found = []
    for folder in cache_dir().iterdir() if cache_dir().is_dir() else ():
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.suffix == ".lock":
                continue
            try:
                files = [file for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
                stats = [file.stat() for file in files]
                used = max((max(s.st_atime, s.st_mtime) for s in stats), default=path.stat().st_mtime)
            except FileNotFoundError:                               # another process has finished or removed it
                continue
            found.append(Kept(folder.name, path, sum(s.st_size for s in stats), used))
    return sorted(found, key=lambda each: -each.size)


@contextmanager
def atomic(path: Path, *, needs: Callable[[], int] | None = None) -> Iterator[Path]:
    """A scratch folder beside `path`; what is written into it under the name of `path` is moved there at the end.

    The move is one step: nobody ever sees a half-written file or folder. After a failure, also after Ctrl-C, nothing is
    left behind; what a killed process left is swept by the next one that writes the same thing. If `path` is a folder
    that another process has put there in the meantime, theirs stays: the same name means the same content.

    Parameters:
        path: the file or folder to make.
        needs: returns the number of bytes that will be needed; it is called for the message when the disk is full.

    Example:
        with atomic(folder / "result.json") as scratch:
            (scratch / "result.json").write_text("{}")
    """
    scratch = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = scratch_folder(path.parent, path.name)
        yield scratch
        settle(scratch / path.name, path)
    except OSError as error:
        raise _explained(error, path, needs) from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def scratch_folder(folder: Path, name: str) -> Path:
    """A new folder of this process in `folder`, for the making of `name`. Those that dead processes left are swept."""
    sweep(folder, name)
    return Path(tempfile.mkdtemp(prefix=f".{name}.{_here()}-{os.getpid()}.", dir=folder))


def settle(made: Path, path: Path) -> None:
    """Move what was made to its place, in one step, and keep the cache within its limit. A folder that another process
    has put there in the meantime stays."""
    try:
        os.replace(made, path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    if path.is_relative_to(cache_dir()):
        _make_room(path)


@contextmanager
def explained(path: Path, needs: Callable[[], int] | None = None) -> Iterator[None]:
    """Say in words what goes wrong when `path` is written: a full disk, a folder that may not be written. `needs` as in
    `atomic`."""
    try:
        yield
    except OSError as error:
        raise _explained(error, path, needs) from error


def check_writable(path: Path) -> None:
    """Refuse an output that cannot be written, before work is done for it. Makes the folders above it."""
    path = path.expanduser()
    if path.is_dir():
        raise NearkinError(f"{path} is a folder; the name of a file is needed, such as {path / 'out'}")
    check_folder(path.parent)


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be made or written into."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = "it is a file" if folder.is_file() else error.strerror or str(error)
        raise NearkinError(f"cannot write in {folder}: {reason}") from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of `path`, a file beside it; another process that wants to make the same thing waits for it."""
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


def cache_limit() -> float | None:
    """$NEARKIN_CACHE_LIMIT in GB, as bytes; None: as much as the disk holds."""
    told = os.environ.get("NEARKIN_CACHE_LIMIT")
    try:
        return float(told) * 1e9 if told else None
    except ValueError:
        raise NearkinError(f"NEARKIN_CACHE_LIMIT={told!r}: a number of GB, such as 50") from None


def beyond(found: list[Kept], limit: float) -> list[Kept]:
    """The least recently used entries that are too much."""
    kept, gone = 0.0, []
    for each in sorted(found, key=lambda each: -each.used):
        kept += each.size
        if kept > limit:
            gone.append(each)
    return gone


def discard(entry: Kept) -> None:
    """Remove an entry of the cache, unless a process is making it."""
    lock = FileLock(entry.path.with_name(f"{entry.path.name.removesuffix('.part')}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return
    try:
        shutil.rmtree(entry.path, ignore_errors=True) if entry.path.is_dir() else entry.path.unlink(missing_ok=True)
    finally:
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)


def _make_room(path: Path) -> None:
    """Keep the cache within its limit; what was just made stays."""
    if (limit := cache_limit()) is not None:
        for entry in beyond(cached(), limit):
            if entry.path != path:
                discard(entry)


def sweep(folder: Path, name: str = "*") -> None:
    """Remove scratch folders of processes that are dead, and of no other.

    A process that runs elsewhere (another machine, another container) cannot be asked: in the cache, what it has not
    touched for a day is taken for dead.

    Parameters:
        folder: where they lie.
        name: what they were for; by default everything.
    """
    pattern = "*" if name == "*" else glob.escape(name)
    for scratch in folder.glob(f".{pattern}.*"):
        owner = re.search(r"\.([0-9a-f]{8})-(\d+)\.\w+$", scratch.name)
        if owner and owner[1] == _here():
            dead = not _alive(int(owner[2]))
        else:
            dead = name != "*" and scratch.is_relative_to(cache_dir()) and _untouched(scratch)
        if dead and scratch.is_dir():
            shutil.rmtree(scratch, ignore_errors=True)


def _untouched(scratch: Path) -> bool:
    try:
        return time.time() - max(file.stat().st_mtime for file in (scratch, *scratch.rglob("*"))) > STALE
    except OSError:                                                 # gone in the meantime
        return False


@cache
def _here() -> str:
    """A name for where process numbers mean the same: this machine since its start, this container."""
    told = [socket.gethostname()]
    for place in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            told.append(os.readlink(place) if place.endswith("ns/pid") else Path(place).read_text())
        except OSError:                                             # not Linux
            continue
    return blake2b("".join(told).encode(), digest_size=4).hexdigest()


def _alive(pid: int) -> bool:
    if os.name == "nt":                                             # there os.kill(pid, 0) would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


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
    """A number of bytes in words: '1.23 MB'; a MB is 1,000,000 bytes."""
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.3g} {units[0]}"
