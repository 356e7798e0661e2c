"""The store: one directory per run, named by the hash of its spec.

    runs/<hash>/  spec.yaml          schema, the whole resolved spec, data and split hashes
                  split.json         the rows that train, validate and test
                  environment.json   versions, commit, CPU, threads of every session that worked on it
                  log.jsonl          one line per step, one per epoch
                  checkpoint.pt      where to continue; first.pt, the weights at the beginning (train.blend), and
                                     model-<epoch>.pt, the best weights so far: all removed when it is final
                  model.pt           the chosen weights of model and objective, and what they have seen (runs/seen.py)
                  validation.npz     raw embeddings, labels and rows of the validation images
                  curve/             test embeddings of every epoch, without labels (train.curve=true)
                  final.json         which epoch was chosen, by which rule: after it the run can be tested
                  embeddings.npz     raw embeddings, rows and roles of the test images
                  test.parquet       row, path, class and role of every test image
                  per_query.parquet  every metric for every query
                  curve.json         test metrics of every epoch (train.curve=true)
                  result.json        the result; a run with it is tested
                  tests.json         the results of further tests
                  files.json         size and SHA-256 of all these, written last (runs/sums.py)
                  error.txt          why a worker of a study failed on it
    runs/openings.jsonl              one line for every time that the labels of a test split were opened
    runs/.trash/                     what `nearkin runs rm` removed, until `nearkin runs rm --purge`

Every file except the logs is written whole or not at all, and is on the disk before it gets its name. Each directory
has one lock: two processes cannot train the same run. Reading a run never imports code that its spec names; `Run.spec`
does, and is for code that builds it.
"""

import json
import os
import re
import shutil
import time
from pathlib import Path

from nearkin.errors import NearkinError, choices
from nearkin.runs.log import read_log
from nearkin.runs.run import SCHEMA, ReadOnlyRun, Run
from nearkin.storage import open_to_append

MARKS = ("spec.yaml", "files.json", "final.json", "result.json", "checkpoint.pt")  # a folder with one is a run

__all__ = ["SCHEMA", "ReadOnlyRun", "Run", "Store"]


class Store:
    """All runs of a folder.

    Parameters:
        root: the folder, by default `runs`.

    Example:
        for run in Store("runs").runs():
            print(run.hash, run.done)
    """

    def __init__(self, root: Path | str = "runs"):
        self.root = Path(root)

    def run(self, run_hash: str, *, writes: bool = True) -> Run:
        """The run of that name, whether it exists or not; `writes=False` gives one that writes nothing."""
        return (Run if writes else ReadOnlyRun)(self.root / run_hash)

    def runs(self) -> list[Run]:
        """All runs, oldest first, damaged ones included."""
        if not self.root.is_dir():
            return []
        begun = {path: when for path in self.root.iterdir() if (when := _begun(path)) is not None}
        return [Run(path) for path in sorted(begun, key=lambda path: (begun[path], path))]

    def find(self, name: str) -> Run:
        """A run by its path, its hash or the beginning of its hash."""
        if name and (Path(name) / "spec.yaml").exists():
            return Run(Path(name))
        matches = [run for run in self.runs() if run.hash.startswith(name)] if name else []
        if len(matches) == 1:
            return matches[0]
        if matches:
            hashes = ", ".join(run.hash for run in matches)
            raise NearkinError(f"{name!r} is ambiguous: {len(matches)} runs begin with it: {hashes}")
        raise NearkinError(f"no run {name!r} in {self.root}: {choices(name, [r.hash for r in self.runs()])}")

    @property
    def trash(self) -> Path:
        """Where removed runs are until they are purged."""
        return self.root / ".trash"

    def check_removable(self, run: Run) -> None:
        """Refuse to remove anything that is not a run of this store: a folder elsewhere, a link, a user's folder that
        happens to contain a spec.yaml."""
        refused = f"{run.path} is not removed: "
        if not re.fullmatch(r"[0-9a-f]{12}", run.path.name):
            raise NearkinError(f"{refused}{run.path.name or str(run.path)!r} is not the hash of a run")
        if run.path.parent.resolve() != self.root.resolve():
            raise NearkinError(f"{refused}it is not in {self.root}; runs={run.path.parent} names its store")
        if run.path.is_symlink():
            raise NearkinError(f"{refused}it is a link to {os.readlink(run.path)}; remove the link yourself")
        try:
            head = run.head()
            of_a_run = {"data_hash", "split_hash"} <= head.keys() and {"data", "model", "train"} <= head["spec"].keys()
        except NearkinError:  # damaged: other files must say that it is a run
            of_a_run = sum((run.path / name).exists() for name in (*MARKS, "split.json", "environment.json")) >= 3
        if not of_a_run:
            raise NearkinError(f"{refused}its spec.yaml is not that of a run")

    def remove(self, run: Run) -> Path:
        """Move a run to the trash, in one step, unless a process is training it; returns its new path."""
        self.check_removable(run)
        self._check_trash()
        stamp = time.strftime("%Y%m%d-%H%M%S")
        with run.lock():
            self.trash.mkdir(exist_ok=True)
            place = self.trash / f"{run.hash}-{stamp}"
            number = 1
            while place.exists():
                number += 1
                place = self.trash / f"{run.hash}-{stamp}-{number}"
            os.rename(run.path, place)
        return place

    def removed(self) -> list[Path]:
        """The contents of the trash."""
        self._check_trash()
        return sorted(self.trash.iterdir()) if self.trash.is_dir() else []

    def purge(self) -> int:
        """Delete the contents of the trash for good; returns the number of runs."""
        places = self.removed()
        for place in places:
            shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
        return len(places)

    def _check_trash(self) -> None:
        if self.trash.is_symlink():
            target = os.readlink(self.trash)
            raise NearkinError(f"{self.trash} is a link to {target}: nothing is moved or deleted there; remove it")

    def opened(self, run: Run, metrics: list[str], evaluation: int) -> None:
        """Note that the labels of a run's test split were opened, for metrics under a version of the evaluation. A test
        that is repeated after a kill is noted once."""
        head = run.head()
        line = {
            "split": head["split_hash"],
            "data": head["data_hash"],
            "run": run.hash,
            "metrics": metrics,
            "evaluation": evaluation,
            "when": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        final = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime((run.path / "final.json").stat().st_mtime))
        same = {key: line[key] for key in ("split", "data", "run", "metrics", "evaluation")}
        for noted in read_log(self.root / "openings.jsonl"):
            if same.items() <= noted.items() and noted.get("when", "") >= final:  # after it was trained
                return
        with open_to_append(
            self.root / "openings.jsonl"
        ) as file:  # one small append is atomic, even with other writers
            file.write(json.dumps(line) + "\n")

    def openings(self) -> dict[str, int]:
        """How often each test split was opened: split hash -> number."""
        counts: dict[str, int] = {}
        for line in read_log(self.root / "openings.jsonl"):
            if isinstance(split := line.get("split"), str):  # else the line is damaged
                counts[split] = counts.get(split, 0) + 1
        return counts


def _begun(path: Path) -> float | None:
    """When a run was started, or damaged since; None for a folder that is not a run, or was just removed."""
    for name in MARKS:
        try:
            return (path / name).stat().st_mtime
        except OSError:
            continue
    return None
