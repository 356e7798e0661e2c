"""The files of one run's directory, verified as they are read."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nearkin.errors import NearkinError, PassingError
from nearkin.runs.shapes import check_shape
from nearkin.runs.sums import SUMS, Sum, Sums, parse_sums, sum_of, sum_of_bytes
from nearkin.storage import says_nothing

LOOKS = 3  # at a file whose sum differs: another process may be replacing it


class VerifiedFiles:
    """The files of a run, each compared with its sum in files.json, if it is listed there.

    Parameters:
        path: the directory; it need not exist yet.
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self._cache: dict[str, tuple[tuple[int, int, int], Any]] = {}  # file -> its stamp, its content

    @property
    def hash(self) -> str:
        """Its name: the hash of its spec, its data and its split."""
        return self.path.name

    def has(self, name: str) -> bool:
        """Does this file exist? For a run that was removed meanwhile: did it exist when it was read?"""
        return os.path.exists(f"{self.path}/{name}") or (name in self._cache and not self.path.exists())

    def damaged(self, reason: str) -> NearkinError:
        """The error that the run is damaged. If the system could not open a file, or had no memory to read it, that
        says nothing about the run, and is the error instead."""
        if says_nothing(error := sys.exception()):
            why = error.strerror if isinstance(error, OSError) else "too little memory"
            return PassingError(f"run {self.hash} cannot be read now: {why}")
        return NearkinError(f"run {self.hash} is damaged: {reason}")

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON file of its directory. It is read once and cached until the file changes: do not modify it."""
        return self._once(name, lambda content: self._parse_json(name, content))

    def _parse_json(self, name: str, content: bytes) -> dict[str, Any]:
        try:
            content_read = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self.damaged(f"{name} cannot be read ({type(error).__name__})") from error
        if problem := check_shape(name, content_read):
            raise self.damaged(f"{name} {problem}")
        return content_read

    def _once(self, name: str, parse: Callable[[bytes], Any]) -> Any:
        """The verified content of a small file; read again only after it was replaced. For a run that was removed
        meanwhile, what was read before."""
        try:
            stat = os.stat(f"{self.path}/{name}")
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if name not in self._cache or self._cache[name][0] != stamp:
                self._cache[name] = stamp, parse(self._verified(name))
        except OSError as error:
            if self.path.exists():
                raise self.damaged(f"{name} cannot be read ({type(error).__name__})") from error
            if name not in self._cache:
                raise self._removed() from error
        return self._cache[name][1]

    def _removed(self) -> NearkinError:
        return NearkinError(f"run {self.hash} does not exist, or was just removed: {self.path}")

    def sums(self) -> Sums | None:
        """The content of files.json; None if the run was stored without it, or is not started."""
        if not os.path.exists(f"{self.path}/{SUMS}"):
            return None
        return self._once(SUMS, self._parse_sums)

    def _parse_sums(self, content: bytes) -> Sums:
        try:
            return parse_sums(content)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self.damaged(f"{SUMS} is not what was stored; without it the run is read, but unverified") from error

    def file(self, name: str) -> Path:
        """The path of a file after its content was verified; a large file is read for that once in a process."""
        try:
            self._look(name, lambda: sum_of(self.path / name))
        except OSError as error:
            if not self.path.exists():
                raise self._removed() from error
            gone = isinstance(error, FileNotFoundError)
            reason = "is missing" if gone else f"cannot be read ({type(error).__name__})"
            raise self.damaged(f"{name} {reason}") from error
        return self.path / name

    def _verified(self, name: str) -> bytes:
        content = b""

        def read() -> Sum:
            nonlocal content
            with open(f"{self.path}/{name}", "rb") as file:
                content = file.read()
            return sum_of_bytes(content)

        if name == SUMS:  # it has its own sum
            read()
        else:
            self._look(name, read)
        return content

    def _look(self, name: str, measure: Callable[[], Sum]) -> None:
        """Raise an error unless a file has the sum that is listed in files.json, if any."""
        for look in range(LOOKS):
            actual = measure()
            sums = self.sums()
            expected = sums.of(name) if sums is not None else ()
            if not expected or actual in expected:
                return
            if look + 1 < LOOKS:
                time.sleep(0.02)
        sizes = (
            f"{actual.bytes} bytes instead of {expected[0].bytes}" if actual.bytes != expected[0].bytes else "same size"
        )
        raise self.damaged(f"{name} is not what was stored: its SHA-256 differs ({sizes})")
