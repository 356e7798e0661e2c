"""`Run`: one run in its directory."""

import json
import os
import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
import yaml
from filelock import FileLock, Timeout

from nearkin.config.spec import RunSpec, stored_spec
from nearkin.errors import NearkinError
from nearkin.runs.environment import environment
from nearkin.runs.log import Log, read_log
from nearkin.storage import atomic, sweep

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)      # the same, ten times as fast, where libyaml is
SCHEMA = 2                          # 1: commit b58c777 and older, without a word about it


class RunLocked(NearkinError):
    """Another process trains or tests the run."""


class Run:
    """One run in its directory: its spec, its states, its log, its results.

    Parameters:
        path: the directory; it need not exist yet.

    Example:
        run = nearkin.train({"dataset": "glyphs"})
        run.result["test"]["recall@1"]
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self._kept: dict[str, tuple[tuple[int, int, int], Any]] = {}        # file -> what it was, what it holds

    # -- what it is ----------------------------------------------------------------------------------------

    @property
    def hash(self) -> str:
        """Its name: the hash of its spec, its data and its split."""
        return self.path.name

    def head(self) -> dict[str, Any]:
        """What spec.yaml holds, as plain values: `spec`, `schema`, `data_hash`, `split_hash`. Read once and kept while
        the file stays as it is: do not change it."""
        return self._once("spec.yaml", self._read_head)

    def _read_head(self, path: Path) -> dict[str, Any]:
        try:
            told = yaml.load(path.read_text(), Loader=LOADER)
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            reason = f"spec.yaml cannot be read ({type(error).__name__})"
            raise NearkinError(f"run {self.hash} is damaged: {reason}") from error
        if not isinstance(told, dict) or not isinstance(told.get("spec"), dict):
            raise NearkinError(f"run {self.hash} is damaged: spec.yaml holds no spec")
        schema = told.setdefault("schema", 1)
        if not isinstance(schema, int) or schema > SCHEMA:
            raise NearkinError(
                f"run {self.hash} was stored by a newer nearkin (schema {schema}; this one reads up to {SCHEMA})"
            )
        return told

    @property
    def stored(self) -> dict[str, Any]:
        """The stored spec as plain values; nothing that it names is imported."""
        return self.head()["spec"]

    @property
    def spec(self) -> RunSpec:
        """The resolved spec that it was trained with; imports what it names."""
        return stored_spec(self.stored)

    @property
    def purpose(self) -> str:
        """`final`, or `trial`: a run that chooses settings and is never tested."""
        return self.stored.get("purpose", "final")

    # -- how far it is -------------------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Is there a checkpoint to go on from?"""
        return (self.path / "checkpoint.pt").exists()

    @property
    def final(self) -> bool:
        """Is the choice of the epoch stored? Only then do the test labels open."""
        return (self.path / "final.json").exists()

    @property
    def tested(self) -> bool:
        """Is its result stored?"""
        return (self.path / "result.json").exists()

    @property
    def done(self) -> bool:
        """Is there nothing left to do? A trial is done when it is final, any other run when it is tested."""
        return self.tested or (self.final and self.purpose == "trial")

    # -- what it found -------------------------------------------------------------------------------------

    @property
    def result(self) -> dict[str, Any]:
        """What result.json holds: metrics of validation and test, the chosen epoch, the rule."""
        return self.read_json("result.json")

    def metrics(self, distance: str = "cosine") -> dict[str, float]:
        """All test metrics found so far under a distance, by the first test and by further ones."""
        further = self.read_json("tests.json") if (self.path / "tests.json").exists() else {}
        first = self.result["test"] if self.tested and distance == "cosine" else {}
        return first | further.get(distance, {}).get("metrics", {})

    def log_lines(self) -> list[dict[str, Any]]:
        """All entries of the log, oldest first."""
        return read_log(self.path / "log.jsonl")

    def curve(self) -> list[dict[str, Any]]:
        """Learning curves, one row per epoch: epoch, the mean loss, validation.* and, once tested, test.* metrics. The
        epochs of a warm-up that does not count are 0 and below."""
        rows: dict[int, dict[str, Any]] = {}
        losses: dict[int, list[float]] = {}
        for line in self.log_lines():
            if "step" in line:
                losses.setdefault(line["epoch"], []).append(line["loss"])
            elif "epoch_end" in line:
                epoch = line["epoch_end"]
                mean = sum(losses[epoch]) / len(losses[epoch]) if epoch in losses else None
                validation = {f"validation.{k}": v for k, v in line.get("validation", {}).items()}
                rows[epoch] = {"epoch": epoch, "loss": mean, "lr": line.get("lr"), **validation}
        if (self.path / "curve.json").exists():
            for point in self.read_json("curve.json")["epochs"]:
                row = rows.setdefault(point["epoch"], {"epoch": point["epoch"]})
                row |= {f"test.{k}": v for k, v in point["metrics"].items()}
        return [rows[epoch] for epoch in sorted(rows)]

    # -- files ---------------------------------------------------------------------------------------------

    def start(self, spec: RunSpec, *, split: Mapping[str, Any], processes: int = 1, **hashes: str) -> None:
        """Write what the run is before its first step, and a session of work on it."""
        sweep(self.path)
        if not (self.path / "spec.yaml").exists():
            told = {"schema": SCHEMA, "spec": spec.whole(), **hashes}
            with atomic(self.path / "spec.yaml") as scratch:
                (scratch / "spec.yaml").write_text(yaml.safe_dump(told, sort_keys=False, allow_unicode=True))
            self.write_json("split.json", split)
        before = self.read_json("environment.json") if (self.path / "environment.json").exists() else {}
        sessions = before.get("sessions", [{k: v for k, v in before.items() if k != "sessions"}] if before else [])
        now = environment() | {"processes": processes, "began": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        self.write_json("environment.json", now | {"sessions": [*sessions, now]})

    def check(self, spec: RunSpec) -> None:
        """Refuse a stored run whose spec is not the one asked for, although the hash is."""
        if (self.path / "spec.yaml").exists() and (found := spec.differences(self.stored)):
            raise NearkinError(
                f"run {self.hash} is not what is asked for: {'; '.join(found[:3])}. A default has changed since: name "
                f"the old value to see the stored run, or remove it (nearkin runs rm {self.hash})"
            )

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON file of its directory. Read once and kept while the file stays as it is: do not change it."""
        return self._once(name, self._read_json)

    def _read_json(self, path: Path) -> dict[str, Any]:
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError) as error:
            reason = f"{path.name} cannot be read ({type(error).__name__})"
            raise NearkinError(f"run {self.hash} is damaged: {reason}") from error

    def _once(self, name: str, read: Callable[[Path], Any]) -> Any:
        """What a file holds, read again only after it was replaced."""
        path = self.path / name
        try:
            found = path.stat()
        except OSError:
            return read(path)                                       # it says what is wrong
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if name not in self._kept or self._kept[name][0] != stamp:
            self._kept[name] = stamp, read(path)
        return self._kept[name][1]

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
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

    def promote(self, name: str, *, seen: Sequence[Mapping[str, Any]]) -> None:
        """Make the weights of one epoch the chosen ones, `model.pt`, with records of what they have seen
        (runs/seen.py); the file itself stays until the run is final."""
        state = self.load(name)
        assert state is not None
        self.save("model.pt", {**state, "seen": [dict(record) for record in seen]})

    def keep_models(self, epoch: int | None = None) -> None:
        """Remove the weights of all epochs but one; None: of all."""
        for file in self.path.glob("model-*.pt"):
            if file.name != f"model-{epoch}.pt":
                file.unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held while training or testing; freed by the system when the process dies, however it dies."""
        self.path.mkdir(parents=True, exist_ok=True)
        file = self.path / "lock"
        lock = FileLock(file)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise RunLocked(f"run {self.hash} is being trained by process {file.read_text().strip()}") from None
        with suppress(OSError):                             # Windows does not let a locked file be written
            file.write_text(str(os.getpid()))
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def log(self, size: int) -> Iterator[Log]:
        """The log, cut back to the `size` that the checkpoint knows of."""
        path = self.path / "log.jsonl"
        path.touch()
        os.truncate(path, min(size, path.stat().st_size))
        with open(path, "a") as file:
            log = Log(file)
            try:
                yield log
            finally:
                log.flush()


class ReadOnlyRun(Run):
    """A run that another process writes: reads as usual, writes nothing."""

    def start(self, spec: RunSpec, *, split: Mapping[str, Any], processes: int = 1, **hashes: str) -> None:
        """Nothing."""

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Nothing."""

    def save(self, name: str, state: dict[str, Any]) -> None:
        """Nothing."""

    def promote(self, name: str, *, seen: Sequence[Mapping[str, Any]]) -> None:
        """Nothing."""

    def keep_models(self, epoch: int | None = None) -> None:
        """Nothing."""

    @contextmanager
    def lock(self) -> Iterator[None]:
        """No lock: the process that writes has it."""
        yield

    @contextmanager
    def log(self, size: int) -> Iterator[Log]:
        """A log that nobody reads."""
        with open(os.devnull, "w") as file:
            yield Log(file)
