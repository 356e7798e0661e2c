"""How files get into place, complete or not at all; locks."""

import errno
import json
import os
import shutil
import stat
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

from filelock import FileLock

from nearkin.cache import cache_dir, make_room
from nearkin.errors import NearkinError, PassingError
from nearkin.scratch import abandoned, new_scratch, outside_scratch
from nearkin.units import BYTES

if TYPE_CHECKING:
    import numpy as np

# what numpy, zipfile and torch raise when a file is damaged
UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    struct.error,
    MemoryError,
)


@contextmanager
def atomic(path: Path, *, needs: Callable[[], int] | None = None) -> Iterator[Path]:
    """A scratch folder beside `path`; what is written into it under the name of `path` is moved there at the end.

    The move is one step: nobody ever sees a half-written file or folder, and a file that has its name is on the disk,
    even after a power cut (NEARKIN_FSYNC=0 leaves that to the system: faster, for tests). A failure, or Ctrl-C, leaves
    nothing behind; what a killed process left is swept by the next one that writes there. If `path` is a folder that
    another process has put there in the meantime, theirs stays: the same name means the same content. Nothing is
    written through a link inside a run.

    Parameters:
        path: the file or folder to make.
        needs: returns the number of bytes needed; it is called only for the message that the disk is full.

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
        move_into_place(scratch / path.name, path)
    except OSError as error:
        raise _explained(error, path, needs) from error
    finally:
        if scratch is not None:
            _remove_scratch(scratch, path.name)


def _remove_scratch(scratch: Path, name: str) -> None:
    """A single file is removed without opening anything: that works even when no more files can be opened."""
    try:
        (scratch / name).unlink(missing_ok=True)
        scratch.rmdir()
    except OSError:  # a folder was made, or more than one file
        shutil.rmtree(scratch, ignore_errors=True)


def scratch_folder(folder: Path, name: str) -> Path:
    """A new folder of this process in `folder`, in which `name` is made. Those that dead processes left are swept."""
    sweep(folder, name)
    return new_scratch(folder, name)


def move_into_place(source: Path, path: Path) -> None:
    """Move a file or folder to `path` in one step, once it is on the disk, and keep the cache within its limit. A
    folder that another process has put there in the meantime stays."""
    if durable():
        for file in sorted(source.rglob("*"), reverse=True) if source.is_dir() else ():  # contents first
            sync(file)
        sync(source)
    try:
        os.replace(source, path)
        if durable():
            sync(path.parent)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    if path.is_relative_to(cache_dir()):
        make_room(path)


def durable() -> bool:
    """Is a file written to the disk before it gets its name? Not with NEARKIN_FSYNC=0."""
    return os.environ.get("NEARKIN_FSYNC") != "0"


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk. Windows cannot sync a folder."""
    folder = path.is_dir()
    if folder and os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY if folder or os.name != "nt" else os.O_RDWR)
    try:
        _wait_for_disk(handle)
    finally:
        os.close(handle)


def sync_open(file: IO[Any]) -> None:
    """Wait until everything written to an open file is on the disk, unless NEARKIN_FSYNC=0."""
    file.flush()
    if durable():
        _wait_for_disk(file.fileno())


def _wait_for_disk(handle: int) -> None:
    """fsync, but for devices and the folders of some network file systems, which have none."""
    try:
        os.fsync(handle)
    except OSError as error:
        if stat.S_ISREG(os.fstat(handle).st_mode) or error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def says_nothing(error: BaseException | None) -> bool:
    """Does an error say nothing about the file that was read, because the system could not open another one or was out
    of memory? Such a file is not damaged."""
    short = isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
    return short or isinstance(error, MemoryError)


def check_no_link(path: Path) -> None:
    """Refuse to write to a path that is, or lies below, a link inside a run: it may lead anywhere."""
    for place in (path, *path.parents):
        if place.is_symlink() and (place.parent / "spec.yaml").exists():
            raise NearkinError(
                f"{place} is a link to {os.readlink(place)}: nothing in a run is written through links; remove it"
            )


def open_to_append(path: Path) -> TextIO:
    """A text file open for appending, created if need be; a link is refused."""
    check_no_link(path.parent)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        if path.is_symlink():
            raise NearkinError(
                f"{path} is a link to {os.readlink(path)}: nothing is written through it; remove the link"
            ) from error
        raise _explained(error, path, None) from error
    return open(handle, "a", encoding="utf-8")


def with_sum(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a JSON file with its checksum as the last key, `sha256`."""
    return {**content, "sha256": _sum_of(content)}


def without_sum(content: Any) -> Any:
    """The content of a JSON file without its checksum; a ValueError if the two disagree. Files of an older nearkin have
    no checksum."""
    if not isinstance(content, dict) or "sha256" not in content:
        return content
    rest = {key: value for key, value in content.items() if key != "sha256"}
    if content["sha256"] != _sum_of(rest):
        raise ValueError("its SHA-256 differs from the one that it was stored with")
    return rest


def _sum_of(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def arrays_of(path: Path) -> "dict[str, np.ndarray]":
    """The arrays of an .npz after all its checksums were verified: numpy alone would not notice a flipped bit in the
    shape of an array. Raises one of UNREADABLE."""
    import numpy as np  # here: most files are no arrays, and a list of runs should be there at once

    with zipfile.ZipFile(path) as parts:
        if (name := parts.testzip()) is not None:
            raise zipfile.BadZipFile(f"{path}: bad CRC-32 of {name}")
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def fingerprint(path: str | Path) -> tuple[int, int, int]:
    """Size and times of a file: while they stay the same, so does its content."""
    stat = os.stat(path)
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


@contextmanager
def explained(path: Path, needs: Callable[[], int] | None = None) -> Iterator[None]:
    """Turn an OSError while `path` is written into a sentence: a full disk, a folder without write permission. `needs`
    as in `atomic`."""
    try:
        yield
    except OSError as error:
        raise _explained(error, path, needs) from error


def check_writable(path: Path) -> None:
    """Refuse an output that cannot be written, before any work is done for it. Makes the folders above it."""
    path = path.expanduser()
    if path.is_dir():
        raise NearkinError(f"{path} is a folder; the name of a file is needed, such as {path / 'out'}")
    check_folder(path.parent)


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be made or written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        if folder.is_file():
            raise NearkinError(f"cannot write in {folder}: it is a file") from error
        if error.errno == errno.ENOTDIR:  # it would lie below a file
            raise NearkinError(f"cannot write in {folder}: {error.strerror}") from error
        raise PassingError(f"cannot write in {folder}: {error.strerror or error}") from error


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


def sweep(folder: Path, name: str = "*") -> None:
    """Remove the scratch folders of dead processes, and no others.

    A process that runs elsewhere (another machine, another container) cannot be asked: in the cache it is taken for
    dead when its folder has not changed for a day.

    Parameters:
        folder: where they lie.
        name: what is about to be made. Scratch folders for other names are removed only if they are from this machine.
    """
    for scratch in folder.glob(".*.*"):
        elsewhere = scratch.name.startswith(f".{name}.") and scratch.is_relative_to(cache_dir())
        if abandoned(scratch, by_age=elsewhere) and scratch.is_dir():
            shutil.rmtree(scratch, ignore_errors=True)


def _explained(error: OSError, path: Path, needs: Callable[[], int] | None) -> Exception:
    hint = " (another place: NEARKIN_CACHE=DIR)" if path.is_relative_to(cache_dir()) else ""
    where = f"{outside_scratch(path.parent)}{hint}"
    size = f" ({BYTES.text(needs())} needed)" if needs is not None else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return PassingError(f"the disk is full: cannot write {path.name}{size} in {where}")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return PassingError(f"cannot write {path.name} in {where}: {error.strerror}")
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return NearkinError(f"cannot write {path.name} in {where}: {error.strerror}")
    return error
