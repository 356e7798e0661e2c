"""The store: one directory per run, named by the hash of its spec.

    runs/<hash>/  spec.yaml          the resolved spec, data and split hashes
                  environment.json   versions, commit, CPU, threads, processes
                  log.jsonl          one line per step, one per epoch
                  checkpoint.pt      where to go on (gone when the run is done)
                  model.pt           the chosen weights of model and objective
                  final.json         which epoch was chosen, by which rule: after it the test labels open
                  embeddings.npz     test embeddings, labels, rows of the table
                  per_query.parquet  every metric for every query
                  result.json        the result; a run with it is done

Every file but the log is written whole or not at all. Each directory has one lock: two processes cannot train the
same run.
"""

import json
import os
import pickle
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
import yaml
from filelock import FileLock, Timeout

from nearkin.config.spec import RunSpec, make_spec
from nearkin.errors import NearkinError, choices
from nearkin.runs.environment import environment
from nearkin.storage import atomic


class Run:
    """One run in its directory: its spec, its states, its log, its result.

    Parameters:
        path: the directory; it need not exist yet.

    Example:
        run = nearkin.train({"dataset": "glyphs"})
        run.result["test"]["recall@1"]
    """

    def __init__(self, path: Path):
        self.path = Path(path)

    @property
    def hash(self) -> str:
        """Its name: the hash of its spec, its data and its split."""
        return self.path.name

    @property
    def done(self) -> bool:
        """Is its result stored?"""
        return (self.path / "result.json").exists()

    @property
    def begun(self) -> bool:
        """Is there a checkpoint to go on from?"""
        return (self.path / "checkpoint.pt").exists()

    @property
    def final(self) -> bool:
        """Is the choice of the epoch made? Only then do the test labels open."""
        return (self.path / "final.json").exists()

    @property
    def spec(self) -> RunSpec:
        """The resolved spec that it was trained with."""
        return make_spec(self._head()["spec"])

    @property
    def result(self) -> dict[str, Any]:
        """What result.json holds: metrics of validation and test, the chosen epoch, the rule."""
        return self.read_json("result.json")

    def _head(self) -> dict[str, Any]:
        return yaml.safe_load((self.path / "spec.yaml").read_text())

    def start(self, spec: RunSpec, *, processes: int = 1, **hashes: str) -> None:
        """What the run is, written before its first step."""
        with atomic(self.path / "spec.yaml") as scratch:
            (scratch / "spec.yaml").write_text(yaml.safe_dump({"spec": spec.tree(), **hashes}, sort_keys=False))
        self.write_json("environment.json", environment() | {"processes": processes})

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON file of its directory."""
        return json.loads((self.path / name).read_text())

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Write a JSON file, whole or not at all."""
        with atomic(self.path / name) as scratch:
            (scratch / name).write_text(json.dumps(content, indent=1) + "\n")

    def save(self, name: str, state: dict[str, Any]) -> None:
        """Write a state (weights, optimiser, ...), whole or not at all."""
        with atomic(self.path / name) as scratch, open(scratch / name, "wb") as file:
            try:
                torch.save(state, file)
            except RuntimeError as error:           # on a full disk torch hides the cause behind an error of its own
                raise error.__context__ if isinstance(error.__context__, OSError) else error from None

    def load(self, name: str) -> dict[str, Any] | None:
        """A state, or None when there is none; never unpickles code."""
        path = self.path / name
        if not path.exists():
            return None
        try:
            return torch.load(path, map_location="cpu", weights_only=True)
        except (RuntimeError, EOFError, pickle.UnpicklingError, OSError, ValueError) as error:
            raise NearkinError(
                f"{path} is damaged or not a checkpoint ({type(error).__name__}); "
                f"`nearkin runs rm {self.hash}` and train again"
            ) from error

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held while training; freed by the system when the process dies, however it dies."""
        self.path.mkdir(parents=True, exist_ok=True)
        file = self.path / "lock"
        lock = FileLock(file)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise NearkinError(f"run {self.hash} is being trained by process {file.read_text().strip()}") from None
        with suppress(OSError):                             # Windows does not let a locked file be written
            file.write_text(str(os.getpid()))
        try:
            yield
        finally:
            lock.release()

    # -- the log -------------------------------------------------------------------------------------------

    @contextmanager
    def log(self, size: int) -> Iterator["Log"]:
        """The log, cut back to the `size` that the checkpoint knows of."""
        path = self.path / "log.jsonl"
        path.touch()
        os.truncate(path, min(size, path.stat().st_size))
        with open(path, "a") as file:
            yield Log(file)

    def log_lines(self) -> list[dict[str, Any]]:
        """All entries of the log, oldest first."""
        path = self.path / "log.jsonl"
        if not path.exists():
            return []
        whole = [line for line in path.read_text().splitlines() if line.endswith("}")]  # a kill may cut the last
        return [json.loads(line) for line in whole]


class ReadOnlyRun(Run):
    """A run that another process writes: reads as usual, writes nothing."""

    def start(self, spec: RunSpec, *, processes: int = 1, **hashes: str) -> None:
        pass

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        pass

    def save(self, name: str, state: dict[str, Any]) -> None:
        pass

    @contextmanager
    def lock(self) -> Iterator[None]:
        yield

    @contextmanager
    def log(self, size: int) -> Iterator["Log"]:
        with open(os.devnull, "w") as file:
            yield Log(file)


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


class Store:
    """All runs of a folder.

    Parameters:
        root: the folder, by default `runs`.

    Example:
        for run in nearkin.runs.store.Store("runs").runs():
            print(run.hash, run.done)
    """

    def __init__(self, root: Path | str = "runs"):
        self.root = Path(root)

    def run(self, run_hash: str, *, writes: bool = True) -> Run:
        """The run of that name, whether it exists or not; `writes=False` gives one that writes nothing."""
        return (Run if writes else ReadOnlyRun)(self.root / run_hash)

    def runs(self) -> list[Run]:
        """All runs, oldest first."""
        if not self.root.is_dir():
            return []
        found = [Run(p) for p in self.root.iterdir() if (p / "spec.yaml").exists()]
        return sorted(found, key=lambda run: (run.path / "spec.yaml").stat().st_mtime)

    def find(self, name: str) -> Run:
        """A run by its path, its hash or the beginning of its hash."""
        if (Path(name) / "spec.yaml").exists():
            return Run(Path(name))
        matches = [run for run in self.runs() if run.hash.startswith(name)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            found = ", ".join(run.hash for run in matches)
            raise NearkinError(f"{name!r} is the beginning of {len(matches)} runs: {found}")
        raise NearkinError(f"no run {name!r} in {self.root}: {choices(name, [r.hash for r in self.runs()])}")

    def remove(self, run: Run) -> None:
        """Delete a run, unless a process is training it."""
        with run.lock():
            shutil.rmtree(run.path)
