"""Logs: one JSON object per line."""

import json
import math
import time
from pathlib import Path
from typing import Any

from nearkin.storage import sync_open

FLUSH_SECONDS = 1.0  # a log on the disk may lag behind by this much


class Log:
    """The open log of a run: one JSON object per line.

    Lines are written in blocks, at least once a second while there are new ones: a step of a small network takes a
    millisecond, and writing each line separately would be a noticeable part of it. Flush the log before closing the
    file.

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
        """Write all lines so far to the file, for other processes that read it."""
        lines, self._waiting = self._waiting, []
        self._file.write("".join([json.dumps(entry) + "\n" for entry in lines]))
        self._file.flush()
        self._written = time.monotonic()

    def sync(self) -> int:
        """Wait until all lines so far are on the disk. Returns the size of the log in bytes, which a checkpoint
        stores: after a power cut the log must not be shorter than the checkpoint says."""
        self.flush()
        sync_open(self._file)
        return self._file.tell()


def read_log(path: Path) -> list[dict[str, Any]]:
    """All entries of a file, oldest first; a last line that a kill cut short is left out."""
    return LogReader(path).more()


class LogReader:
    """Reads what was added to a log since the last call, so that following a long log is cheap.

    Parameters:
        path: the log; it need not exist yet.
    """

    def __init__(self, path: Path):
        self.path = path
        self._offset = 0

    def more(self) -> list[dict[str, Any]]:
        """The new complete lines. After the log was truncated (a resumed run) it is read from its beginning."""
        try:
            with open(self.path, "rb") as file:
                if self._offset > file.seek(0, 2):
                    self._offset = 0
                file.seek(self._offset)
                new = file.read()
        except OSError:  # not there, or a folder in its place
            return []
        complete = new[: new.rfind(b"\n") + 1]  # the rest is still being written, or was truncated
        self._offset += len(complete)
        entries = []
        for line in complete.splitlines():
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):  # truncated, then continued
                continue
            if isinstance(entry, dict):
                entries.append(entry)
        return entries
