"""The cache folder: where it is, what lies in it, and how it is kept within its limit."""

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from nearkin.errors import NearkinError
from nearkin.progress import note
from nearkin.scratch import abandoned


def cache_dir() -> Path:
    """$NEARKIN_CACHE, else where this system keeps caches: on Linux $XDG_CACHE_HOME/nearkin, else ~/.cache/nearkin.
    Everything in it can be made again."""
    chosen = os.environ.get("NEARKIN_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    place = user_cache_path("nearkin", appauthor=False)
    base = os.environ.get("XDG_CACHE_HOME")
    _move_over((Path(base) if base else Path.home() / ".cache") / "nearkin", place)
    return place


@cache
def _move_over(old: Path, new: Path) -> None:
    """The cache used to be in ~/.cache on every system: it is moved once, unless there is a new one already."""
    if old == new or not old.is_dir() or new.exists():
        return
    try:
        new.parent.mkdir(parents=True, exist_ok=True)
        os.rename(old, new)
    except OSError as error:
        if old.is_dir():  # else another process has moved it
            note(f"the cache is now in {new}; the old one in {old} could not be moved ({error.strerror}): remove it")
    else:
        note(f"the cache has moved from {old} to {new}")


@dataclass(frozen=True)
class CacheEntry:
    """One entry of the cache."""

    kind: str  # decoded, packed, sizes, features, glyphs, hashes
    path: Path
    size: int  # bytes
    used: float  # when it was last read, seconds since 1970

    @property
    def name(self) -> str:
        """What it is, or will be once it is finished."""
        name = self.path.name
        return name[1:].rsplit(".", 2)[0] if name.startswith(".") else name.removesuffix(".part")

    @property
    def unfinished(self) -> bool:
        """Is it being made, or was that interrupted? The same command finishes a `.part`."""
        return self.path.name.startswith(".") or self.path.suffix == ".part"


def cached() -> list[CacheEntry]:
    """All entries of the cache, largest first."""
    entries = []
    for folder in cache_dir().iterdir() if cache_dir().is_dir() else ():
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.suffix == ".lock":
                continue
            try:
                files = [file for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
                stats = [file.stat() for file in files]
                used = max((max(s.st_atime, s.st_mtime) for s in stats), default=path.stat().st_mtime)
            except FileNotFoundError:  # another process has finished or removed it
                continue
            entries.append(CacheEntry(folder.name, path, sum(s.st_size for s in stats), used))
    return sorted(entries, key=lambda entry: -entry.size)


def cache_limit() -> float | None:
    """$NEARKIN_CACHE_LIMIT in GB, as bytes; None: as much as the disk holds."""
    text = os.environ.get("NEARKIN_CACHE_LIMIT")
    try:
        return float(text) * 1e9 if text else None
    except ValueError:
        raise NearkinError(f"NEARKIN_CACHE_LIMIT={text!r}: must be a number of GB, such as 50") from None


def to_evict(entries: list[CacheEntry], limit: float) -> list[CacheEntry]:
    """The least recently used entries, those that do not fit into the limit (in bytes)."""
    total, evicted = 0.0, []
    for entry in sorted(entries, key=lambda entry: -entry.used):
        total += entry.size
        if total > limit:
            evicted.append(entry)
    return evicted


def discard(entry: CacheEntry) -> bool:
    """Remove an entry of the cache unless a process is making it; returns whether it was removed. The lock file stays:
    another process may be waiting for it, and a new file of that name would be a second lock."""
    if entry.path.name.startswith("."):  # a scratch folder: its name says who makes it
        return abandoned(entry.path, by_age=True) and _remove(entry.path)
    try:
        with FileLock(entry.path.with_name(f"{entry.name}.lock"), timeout=0):
            return _remove(entry.path)
    except OSError:  # filelock's Timeout is one: another process holds the lock
        return False


def _remove(path: Path) -> bool:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):  # it may be open (Windows), or belong to somebody else
            path.unlink()
    return not path.exists()


def make_room(path: Path) -> None:
    """Keep the cache within its limit; `path`, which was just made, stays."""
    if (limit := cache_limit()) is not None:
        for entry in to_evict(cached(), limit):
            if entry.path != path:
                discard(entry)
