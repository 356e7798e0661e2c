"""Logs: one JSON object per line."""

import json
import math
import time
from pathlib import Path
from typing import Any

from nearkin.storage import sync_open

FLUSH_SECONDS = 1.0  # how old the end of a log may be, for those who watch it


class Log:
    """The open log of a run: one JSON object per line.

    Lines are written in blocks, at least once a second while there are new ones: a step of a small network takes a
    millisecond, and a line of its own would be a noticeable part of it. Whoever opened the file flushes the log before
    closing it.

    Parameters:
        file: a text file, open for writing.
    """

    def __init__(self, file: Any):
        self._file = file
        self._waiting: list[dict[str, Any]] = []
        self._written = -math.inf  # when; the first line goes out at once

    def write(self, **entry: Any) -> None:
        """Add a line."""
        self._waiting.append(entry)
        if time.monotonic() - self._written > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Hand all lines so far to the system, for those who watch."""
        lines, self._waiting = self._waiting, []
        self._file.write("".join([json.dumps(entry) + "\n" for entry in lines]))
        self._file.flush()
        self._written = time.monotonic()

    def sync(self) -> int:
        """Wait until all lines so far are on the disk. Returns the bytes of the log, which a checkpoint keeps: after a
        power cut the log must not be shorter than the checkpoint says."""
        self.flush()
        sync_open(self._file)
        return self._file.tell()


def read_log(path: Path) -> list[dict[str, Any]]:
    """All entries of a file, oldest first; a last line that a kill cut short is left out."""
    return LogReader(path).more()


class LogReader:
    """Reads what has been added to a log since it was last asked: a look at a long log costs nothing.

    Parameters:
        path: the log; it need not exist yet.
    """

    def __init__(self, path: Path):
        self.path = path
        self._offset = 0

    def more(self) -> list[dict[str, Any]]:
        """The whole lines that are new. After the log was cut back (a resumed run) it is read from its beginning."""
        try:
            with open(self.path, "rb") as file:
                if self._offset > file.seek(0, 2):
                    self._offset = 0
                file.seek(self._offset)
                new = file.read()
        except OSError:  # not there, or a folder in its place
            return []
        whole = new[: new.rfind(b"\n") + 1]  # the rest is still being written, or was cut short
        self._offset += len(whole)
        entries = []
        for line in whole.splitlines():
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):  # cut short, and then written on
                continue
            if isinstance(entry, dict):
                entries.append(entry)
        return entries
