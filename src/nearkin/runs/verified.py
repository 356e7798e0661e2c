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

LOOKS = 3  # at a file whose sum differs: a process may just be replacing it


class VerifiedFiles:
    """The files of a run, each compared with the sum that files.json has of it, where it has one.

    Parameters:
        path: the directory; it need not exist yet.
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self._kept: dict[str, tuple[tuple[int, int, int], Any]] = {}  # file -> what it was, what it holds

    @property
    def hash(self) -> str:
        """Its name: the hash of its spec, its data and its split."""
        return self.path.name

    def has(self, name: str) -> bool:
        """Is this file there? Of a run that was removed while it is looked at: was it there when it was read?"""
        return os.path.exists(f"{self.path}/{name}") or (name in self._kept and not self.path.exists())

    def damaged(self, reason: str) -> NearkinError:
        """The error that says so. Where the system could not open a file, or had no memory to read it, this says
        nothing about the run, and is the error."""
        if says_nothing(error := sys.exception()):
            why = error.strerror if isinstance(error, OSError) else "too little memory"
            return PassingError(f"run {self.hash} cannot be read now: {why}")
        return NearkinError(f"run {self.hash} is damaged: {reason}")

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON file of its directory. Read once and kept while the file stays as it is: do not change it."""
        return self._once(name, lambda content: self._parse_json(name, content))

    def _parse_json(self, name: str, content: bytes) -> dict[str, Any]:
        try:
            told = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self.damaged(f"{name} cannot be read ({type(error).__name__})") from error
        if problem := check_shape(name, told):
            raise self.damaged(f"{name} {problem}")
        return told

    def _once(self, name: str, parse: Callable[[bytes], Any]) -> Any:
        """What a small file holds, verified; read again only after it was replaced. Of a run that was removed in the
        meantime, what was read before."""
        try:
            found = os.stat(f"{self.path}/{name}")
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if name not in self._kept or self._kept[name][0] != stamp:
                self._kept[name] = stamp, parse(self._verified(name))
        except OSError as error:
            if self.path.exists():
                raise self.damaged(f"{name} cannot be read ({type(error).__name__})") from error
            if name not in self._kept:
                raise self._removed() from error
        return self._kept[name][1]

    def _removed(self) -> NearkinError:
        return NearkinError(f"run {self.hash} is not there, or was just removed: {self.path}")

    def sums(self) -> Sums | None:
        """What files.json says of its files; None: it was stored without, or is not begun."""
        if not os.path.exists(f"{self.path}/{SUMS}"):
            return None
        return self._once(SUMS, self._parse_sums)

    def _parse_sums(self, content: bytes) -> Sums:
        try:
            return parse_sums(content)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self.damaged(f"{SUMS} is not what was stored; without it the run is read, but unverified") from error

    def file(self, name: str) -> Path:
        """The path of a file, once its content is verified: one that is large is read for that once in a process."""
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
        """An error unless a file has the sum that files.json tells, where it tells one."""
        for look in range(LOOKS):
            found = measure()
            sums = self.sums()
            right = sums.of(name) if sums is not None else ()
            if not right or found in right:
                return
            if look + 1 < LOOKS:
                time.sleep(0.02)
        sizes = f"{found.bytes} bytes instead of {right[0].bytes}" if found.bytes != right[0].bytes else "same size"
        raise self.damaged(f"{name} is not what was stored: its SHA-256 differs ({sizes})")
