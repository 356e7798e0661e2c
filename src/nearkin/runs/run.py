"""`Run`: one run in its directory."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from nearkin.config.load_yaml import load_yaml
from nearkin.config.spec import RunSpec, completed, stored_spec
from nearkin.consent import import_paths, note_stored
from nearkin.errors import NearkinError
from nearkin.progress import note_once
from nearkin.runs.environment import environment
from nearkin.runs.lock import RunLocked, locked_run
from nearkin.runs.log import Log, read_log
from nearkin.runs.shapes import check_head
from nearkin.runs.states import BROKEN, read_state, write_state
from nearkin.runs.sums import Sums, resealed, sum_of, write_sums
from nearkin.runs.verified import VerifiedFiles
from nearkin.storage import atomic, open_to_append, sweep

if TYPE_CHECKING:
    import pandas
    import pyarrow

SCHEMA = 2  # of the files of a run
FIRST = "first.pt"  # the weights that the network began with, while they are needed
LATER = ("files.json", "checkpoint.pt", "final.json", "result.json")  # files that are written after spec.yaml

__all__ = ["SCHEMA", "ReadOnlyRun", "Run", "RunLocked"]


class Run(VerifiedFiles):
    """One run in its directory: its spec, its states, its log, its results.

    Parameters:
        path: the directory; it need not exist yet.

    Example:
        run = nearkin.train({"dataset": "glyphs"})
        run.result["test"]["recall@1"]
    """

    def __repr__(self) -> str:
        from nearkin.runs.shown import shown  # which reads runs

        return shown(self)

    def _repr_html_(self) -> str:
        from nearkin.runs.shown import html

        return html(self)

    def to_arrow(self) -> "pyarrow.Table":
        """The metrics of a final run, one per row: on validation classes, in the test, without training."""
        from nearkin.runs.shown import result_of

        return result_of(self).to_arrow()

    def to_pandas(self) -> "pandas.DataFrame":
        """The same as a data frame of pandas, which must be installed."""
        from nearkin.runs.shown import result_of

        return result_of(self).to_pandas()

    # -- settings -------------------------------------------------------------------------------------------

    def head(self) -> dict[str, Any]:
        """The content of spec.yaml as plain values: `spec`, `schema`, `data_hash`, `split_hash`. It is read once and
        cached until the file changes: do not modify it."""
        return self._once("spec.yaml", self._parse_head)

    def _parse_head(self, content: bytes) -> dict[str, Any]:
        try:
            head = load_yaml(content.decode())
        except (UnicodeDecodeError, NearkinError) as error:
            raise self.damaged(f"spec.yaml cannot be read: {error}") from error
        if not isinstance(head, dict) or not isinstance(head.get("spec"), dict):
            raise self.damaged("spec.yaml holds no spec")
        if (schema := head.get("schema", 1)) != SCHEMA:
            when = "before nearkin was released" if schema == 1 else "by a newer nearkin"
            raise NearkinError(f"run {self.hash} was stored {when} (schema {schema}; this one reads {SCHEMA})")
        if problem := check_head(head):
            raise self.damaged(f"spec.yaml {problem}")
        note_stored(import_paths(head["spec"]))
        return head

    @property
    def stored(self) -> dict[str, Any]:
        """The stored spec as plain values; nothing that it names is imported."""
        return self.head()["spec"]

    @property
    def spec(self) -> RunSpec:
        """The resolved spec that it was trained with; imports what it names."""
        return stored_spec(completed(self.stored))

    @property
    def purpose(self) -> str:
        """`final`, or `trial`: a run that chooses settings and is never tested."""
        return self.stored.get("purpose", "final")

    # -- state ---------------------------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Is there a checkpoint to continue from?"""
        return (self.path / "checkpoint.pt").exists()

    @property
    def final(self) -> bool:
        """Is the choice of the epoch stored? Only then may test labels be read. An error if it was stored and is
        gone."""
        if self.has("final.json"):
            return True
        if (sums := self.sums()) is not None and sums.of("final.json"):
            raise self.damaged("final.json is missing")
        return False

    @property
    def tested(self) -> bool:
        """Is its result stored?"""
        return self.has("result.json")

    @property
    def testable(self) -> bool:
        """Is it to be tested? Trials never are, and protocol=all leaves no test images."""
        return self.purpose != "trial" and self.stored["protocol"]["name"] != "all"

    def untested(self, remedy: str = "") -> str:
        """Why it is not tested; `remedy` is what would test it, by default the command."""
        if self.testable:
            return remedy or f"nearkin test {self.hash}"
        return "trials never are" if self.purpose == "trial" else "it was trained on all classes"

    @property
    def done(self) -> bool:
        """Is there nothing left to do? A run that is never tested is done when it is final."""
        return self.tested or (self.final and not self.testable)

    # -- results --------------------------------------------------------------------------------------------

    @property
    def result(self) -> dict[str, Any]:
        """The content of result.json: metrics of validation and test, the chosen epoch, the rule."""
        return self.read_json("result.json")

    def metrics(self, distance: str = "cosine") -> dict[str, float]:
        """All test metrics computed so far under a distance, by the first test and by further ones."""
        further = self.read_json("tests.json") if self.has("tests.json") else {}
        first = self.result["test"] if self.tested and distance == "cosine" else {}
        return first | further.get(distance, {}).get("metrics", {})

    def log_lines(self) -> list[dict[str, Any]]:
        """All entries of the log, oldest first. No result depends on it: a damaged log is skipped with a note."""
        if not (self.path / "log.jsonl").exists():
            return []
        try:
            return read_log(self.file("log.jsonl"))
        except NearkinError as error:
            note_once(f"{error}; its curves are left out")
            return []

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
        if self.has("curve.json"):
            for point in self.read_json("curve.json")["epochs"]:
                row = rows.setdefault(point["epoch"], {"epoch": point["epoch"]})
                row |= {f"test.{k}": v for k, v in point["metrics"].items()}
        return [rows[epoch] for epoch in sorted(rows)]

    # -- files ---------------------------------------------------------------------------------------------

    def start(self, spec: RunSpec, *, split: Mapping[str, Any], processes: int = 1, **hashes: str) -> None:
        """Write the settings of the run before its first step, and an entry for this session."""
        sweep(self.path)
        if not (self.path / "spec.yaml").exists():
            head = {"schema": SCHEMA, "spec": spec.whole(), **hashes}
            with self.put("spec.yaml") as file:
                file.write_text(yaml.safe_dump(head, sort_keys=False, allow_unicode=True))
        if not (self.path / "split.json").exists():  # after a kill between the two
            self.write_json("split.json", split)
        before = self.read_json("environment.json") if (self.path / "environment.json").exists() else {}
        sessions = before.get("sessions", [{k: v for k, v in before.items() if k != "sessions"}] if before else [])
        now = environment() | {"processes": processes, "began": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        self.write_json("environment.json", now | {"sessions": [*sessions, now]})
        self.seal(begin=True)

    def check(self, spec: RunSpec) -> None:
        """Refuse a stored run whose spec differs although its hash is the same, and one whose spec is missing."""
        if not (self.path / "spec.yaml").exists() and any((self.path / name).exists() for name in LATER):
            raise self.damaged(f"spec.yaml is missing; `nearkin runs rm {self.hash}` and train again")
        if (self.path / "spec.yaml").exists() and (differences := spec.differences(self.stored)):
            raise NearkinError(
                f"run {self.hash} was stored with other settings: {'; '.join(differences[:3])}. A default has "
                f"changed since: set the old value to see the stored run, or remove it (nearkin runs rm {self.hash})"
            )

    def damage(self) -> str | None:
        """In words, what is wrong with the small files that hold settings and results; None: nothing."""
        try:
            self.head()
            if self.final or self.tested:
                self.read_json("final.json")
            for name in ("result.json", "tests.json", "curve.json"):
                if self.has(name):
                    self.read_json(name)
        except NearkinError as error:
            return str(error)
        return None

    def seal(self, *, begin: bool = False) -> None:
        """Write files.json, after everything else. A run of an older nearkin, which has none, stays without: nobody
        knows what its files were."""
        if (before := self.sums()) is not None or begin:
            write_sums(resealed(self.path, before or Sums()), self.path)

    def tidy(self) -> None:
        """Finish a final run, also after a kill: remove its checkpoint, and list the files that are not listed yet."""
        self.keep_models(None)
        for name in (FIRST, "checkpoint.pt"):
            (self.path / name).unlink(missing_ok=True)
        self.seal()

    @property
    def untidy(self) -> bool:
        """Are there leftovers of the training of this final run, or is final.json or result.json not in files.json?"""
        if self.begun or (self.path / FIRST).exists() or any(self.path.glob("model-*.pt")):
            return True
        sums = self.sums()
        marks = [name for name in ("final.json", "result.json") if (self.path / name).exists()]
        return sums is not None and (bool(sums.coming) or not all(sums.of(name) for name in marks))

    # -- writing -------------------------------------------------------------------------------------------

    @contextmanager
    def put(self, name: str) -> Iterator[Path]:
        """The path to write a file to, which is then renamed: whole or not at all. The replacement of a file that is
        listed in files.json is announced there."""
        with atomic(self.path / name) as scratch:
            file = scratch / Path(name).name
            yield file
            if (sums := self.sums()) is not None and name in sums.files:
                write_sums(Sums(sums.files, {**sums.coming, name: sum_of(file)}), self.path)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file, whole or not at all."""
        with self.put(name) as file:
            file.write_text(json.dumps(content, indent=1) + "\n")

    def save(self, name: str, state: dict[str, Any]) -> None:
        """Write a state (weights, optimiser, ...), whole or not at all."""
        with self.put(name) as file:
            write_state(file, state)

    def load(self, name: str) -> dict[str, Any] | None:
        """A state, or None if there is none; never unpickles code. Its SHA-256 is compared with files.json; for a file
        that is not listed, the CRC-32 of each of its parts is checked: torch checks neither."""
        path = self.path / name
        sums = self.sums()
        listed = sums is not None and bool(sums.of(name))
        if not path.exists() and not listed:
            return None
        self.file(name)
        try:
            return read_state(path, verified=listed)
        except BROKEN as error:
            raise self.damaged(
                f"{name} cannot be read or is not a checkpoint ({type(error).__name__}); "
                f"`nearkin runs rm {self.hash}` and train again"
            ) from error

    def promote(self, name: str, *, seen: Sequence[Mapping[str, Any]], model: Mapping[str, Any] | None = None) -> None:
        """Make the weights of one epoch the chosen ones, `model.pt`, with records of what they have seen
        (runs/seen.py); the file itself stays until the run is final. `model` is the network's state where it is not
        that of the file: a blended one."""
        state = self.load(name)
        assert state is not None
        changed = {} if model is None else {"model": dict(model)}
        self.save("model.pt", {**state, **changed, "seen": [dict(record) for record in seen]})

    def keep_models(self, epoch: int | None = None) -> None:
        """Remove the weights of all epochs except one; None: of all epochs."""
        for file in self.path.glob("model-*.pt"):
            if file.name != f"model-{epoch}.pt":
                file.unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held while training or testing; freed by the system when the process dies, however it dies."""
        with locked_run(self.path):
            yield

    @contextmanager
    def log(self, size: int) -> Iterator[Log]:
        """The log, truncated to the `size` that the checkpoint stores."""
        with open_to_append(self.path / "log.jsonl") as file:
            file.truncate(min(size, os.fstat(file.fileno()).st_size))
            file.seek(0, os.SEEK_END)
            log = Log(file)
            try:
                yield log
            finally:
                log.flush()
            log.sync()  # files.json will have its sum

    @property
    def failure(self) -> str | None:
        """Why a worker failed on it: the first line of error.txt, however damaged; None if there is no such file."""
        file = self.path / "error.txt"
        if not file.exists():
            return None
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError as error:
            return f"error.txt cannot be read ({type(error).__name__})"
        first = next((line.strip() for line in lines if line.strip()), "error.txt is empty")
        return "".join(letter if letter.isprintable() else "\ufffd" for letter in first)[:1000]


class ReadOnlyRun(Run):
    """A run that another process writes: reads as usual, writes nothing."""

    def start(self, spec: RunSpec, *, split: Mapping[str, Any], processes: int = 1, **hashes: str) -> None:
        """Nothing."""

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Nothing."""

    def save(self, name: str, state: dict[str, Any]) -> None:
        """Nothing."""

    def promote(self, name: str, *, seen: Sequence[Mapping[str, Any]], model: Mapping[str, Any] | None = None) -> None:
        """Nothing."""

    def seal(self, *, begin: bool = False) -> None:
        """Nothing."""

    def tidy(self) -> None:
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
