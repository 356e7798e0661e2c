"""What carries out runs on a machine of a cluster: an actor of Ray's, one run at a time."""

import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from nearkin.storage import scratch_folder
from nearkin.studies.executors import LocalProcess, LocalProcesses, Task
from nearkin.studies.parcels import Packer, Parcel, unpack


@dataclass
class News:
    """From a run on a node: files that are new, if they are to be copied, and at its end what became of it."""

    parcel: Parcel | None = None
    ended: bool = False
    why: str | None = None              # it failed
    killed: bool = False                # its process was ended by a signal


class Node:
    """Runs one task after another, each in a process of its own, as LocalProcesses does.

    Parameters:
        every: seconds between two parcels of files; checkpoints are at most so old.
        folder: where the caller is; paths that a spec names are relative to it, if there is such a folder here.
    """

    def __init__(self, every: float, folder: str):
        self.every = every
        with suppress(OSError):
            os.chdir(folder)
        os.environ["NEARKIN_NODE"] = socket.gethostname()           # runs/prepare.py: roots of this node
        sys.modules["__main__"].__file__ = None                     # Ray's program, which no run needs to import
        self._executor = LocalProcesses(1, checkpoints=every)
        self._working: LocalProcess | None = None
        self._ticket = self._stopped = ""

    def about(self) -> dict[str, str]:
        """Where it is, and what it runs with."""
        return {"node": socket.gethostname(), "process": str(os.getpid()), **versions()}

    def sees(self, file: str, token: str) -> bool:
        """Is there such a file with such a content? Then the caller's store is on a disk that is shared."""
        try:
            return Path(file).read_text() == token
        except OSError:
            return False

    def work(self, ticket: str, task: Task, sent: Parcel | None) -> Iterator[News]:
        """Carry out a task, and tell of it. `sent` are the run's files so far; None: it is trained where it lies."""
        self._ticket = ticket
        if sent is None:
            for _ in self._carried_out(task):
                pass
            yield self._end(None)
            return
        store = scratch_folder(Path(tempfile.gettempdir()), "nearkin-node")
        try:
            task = replace(task, path=store / task.path.name)
            packer = Packer(task.path, errors=True)
            unpack(sent, task.path)
            packer.skip()
            for _ in self._carried_out(task):
                if self._other(task):
                    self.stop(ticket)
                yield News(packer.pack())
            end = self._end(packer.pack())
            yield replace(end, why=self._other(task) or end.why)
        finally:
            shutil.rmtree(store, ignore_errors=True)

    def _carried_out(self, task: Task) -> Iterator[None]:
        """Every few minutes, until it has ended."""
        self._working = working = self._executor.start(task, 0)
        if self._stopped == self._ticket:
            working.stop()
        self._executor.wait([working], self.every)
        while working.alive:
            yield
            self._executor.wait([working], self.every)

    def _other(self, task: Task) -> str | None:
        """A run is named by its data too: if another one has begun, the data here are not the caller's."""
        for path in task.path.parent.glob("*/spec.yaml"):
            if path.parent.name != task.path.name:
                node = os.environ["NEARKIN_NODE"]
                return f"on node {node} it is run {path.parent.name}: the data there are not those here"
        return None

    def _end(self, parcel: Parcel | None) -> News:
        assert self._working is not None
        why = self._working.ended()
        killed = (self._working.process.exitcode or 0) < 0
        self._working = None
        return News(parcel, ended=True, why=why, killed=killed)

    def stop(self, ticket: str) -> None:
        """End the task of that ticket, with a checkpoint."""
        self._stopped = ticket
        working = self._working
        if working is not None and self._ticket == ticket:
            working.stop()


def versions() -> dict[str, str]:
    """Versions that change numbers, or what a spec means."""
    return {"Python": platform.python_version(), **{name: metadata.version(name) for name in ("nearkin", "torch")}}


def differing(here: dict[str, Any], there: dict[str, Any]) -> str:
    """How the versions of a node differ from these, in words; empty: they do not."""
    return ", ".join(f"{name} {there[name]} (here {here[name]})" for name in here if there[name] != here[name])
