"""The cache folder, and how files get into place: complete or not at all."""

import errno
import json
import os
import re
import shutil
import socket
import struct
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from filelock import FileLock, Timeout

from nearkin.errors import NearkinError

STALE = 24 * 3600                   # seconds after which an untouched scratch folder is removed
# what numpy, zipfile and torch raise at a damaged file
UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError,
              struct.error, MemoryError)  # fmt: skip


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

    The move is one step: nobody ever sees a half-written file or folder, and what has its name is on the disk, also
    after a power cut (NEARKIN_FSYNC=0 leaves that to the system: faster, for tests). After a failure, also after
    Ctrl-C, nothing is left behind; what a killed process left is swept by the next one that writes there. If `path` is
    a folder that another process has put there in the meantime, theirs stays: the same name means the same content.
    Nothing is written through a link inside a run.

    Parameters:
        path: the file or folder to make.
        needs: returns the number of bytes that will be needed; it is called for the message when the disk is full.

    Example:
        with atomic(folder / "result.json") as scratch:
            (scratch / "result.json").write_text("{}")
    """
    scratch = None
    try:
        check_no_link(path.parent)
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
    """Move what was made to its place, in one step, once it is on the disk, and keep the cache within its limit. A
    folder that another process has put there in the meantime stays."""
    if durable():
        for file in sorted(made.rglob("*"), reverse=True) if made.is_dir() else ():     # what is inside comes first
            sync(file)
        sync(made)
    try:
        os.replace(made, path)
        if durable():
            sync(path.parent)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    if path.is_relative_to(cache_dir()):
        _make_room(path)


def durable() -> bool:
    """Does a file wait for the disk before it gets its name? NEARKIN_FSYNC=0: no."""
    return os.environ.get("NEARKIN_FSYNC") != "0"


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk. Windows cannot sync a folder, nor can some network
    file systems."""
    folder = path.is_dir()
    if folder and os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY if folder or os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        if not folder or error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def check_no_link(path: Path) -> None:
    """Refuse to write to a path that is, or lies below, a link inside a run: it may lead anywhere."""
    for each in (path, *path.parents):
        if each.is_symlink() and (each.parent / "spec.yaml").exists():
            raise NearkinError(f"{each} is a link to {os.readlink(each)}: in a run nothing is written through links; "
                               "remove it")  # fmt: skip


def open_to_append(path: Path) -> TextIO:
    """A text file open for appending, made where it is not there; a link is refused."""
    check_no_link(path.parent)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        if path.is_symlink():
            raise NearkinError(f"{path} is a link to {os.readlink(path)}: nothing is written through it; remove the "
                               "link") from error  # fmt: skip
        raise _explained(error, path, None) from error
    return open(handle, "a", encoding="utf-8")


def with_sum(told: Mapping[str, Any]) -> dict[str, Any]:
    """What a JSON file is about to hold, and as its last key `sha256`, the sum of it."""
    return {**told, "sha256": _sum_of(told)}


def without_sum(told: Any) -> Any:
    """What a JSON file holds, without its sum; a ValueError where the sum is not that of the rest. Files of an older
    nearkin have none."""
    if not isinstance(told, dict) or "sha256" not in told:
        return told
    rest = {key: value for key, value in told.items() if key != "sha256"}
    if told["sha256"] != _sum_of(rest):
        raise ValueError("its SHA-256 differs from the one that it was stored with")
    return rest


def _sum_of(told: Mapping[str, Any]) -> str:
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz, every byte of which has the checksum that it was written with: numpy alone would not see a
    flipped bit in the shape of an array. Raises one of UNREADABLE."""
    with zipfile.ZipFile(path) as parts:
        if (name := parts.testzip()) is not None:
            raise zipfile.BadZipFile(f"{path}: bad CRC-32 of {name}")
    with np.load(path) as held:
        return {name: held[name] for name in held.files}


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
        name: what is about to be made; of what else was being made elsewhere nothing is touched.
    """
    for scratch in folder.glob(".*.*"):
        owner = re.search(r"\.([0-9a-f]{8})-(\d+)\.\w+$", scratch.name)
        if owner and owner[1] == _here():
            dead = not _alive(int(owner[2]))
        else:
            same = scratch.name.startswith(f".{name}.")
            dead = same and scratch.is_relative_to(cache_dir()) and _untouched(scratch)
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
