"""Logs: one JSON object per line."""

import json
from pathlib import Path
from typing import Any


class Log:
    """The open log of a run: one JSON object per line."""

    def __init__(self, file: Any):
        self._file = file

    def write(self, **entry: Any) -> None:
        """Add a line."""
        self._file.write(json.dumps(entry) + "\n")

    def size(self) -> int:
        """Bytes on disk so far; part of a checkpoint."""
        self._file.flush()
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
        except FileNotFoundError:
            return []
        whole = new[: new.rfind(b"\n") + 1]                         # the rest is still being written, or was cut short
        self._offset += len(whole)
        entries = []
        for line in whole.splitlines():
            try:
                entries.append(json.loads(line))
            except ValueError:                                      # cut short, and then written on
                continue
        return entries
