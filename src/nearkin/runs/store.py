"""The store: one directory per run, named by the hash of its spec.

    runs/<hash>/  spec.yaml          schema, the whole resolved spec, data and split hashes
                  split.json         the rows that train, validate and test
                  environment.json   versions, commit, CPU, threads of every session that worked on it
                  log.jsonl          one line per step, one per epoch
                  checkpoint.pt      where to go on, and model-<epoch>.pt, the best weights so far (gone when final)
                  model.pt           the chosen weights of model and objective, and what they have seen (runs/seen.py)
                  validation.npz     raw embeddings, labels and rows of the validation images
                  curve/             test embeddings of every epoch, without labels (train.curve=true)
                  final.json         which epoch was chosen, by which rule: after it the run can be tested
                  embeddings.npz     raw embeddings, rows and roles of the test images
                  test.parquet       row, path, class and role of every test image
                  per_query.parquet  every metric for every query
                  curve.json         test metrics of every epoch (train.curve=true)
                  result.json        the result; a run with it is tested
                  tests.json         what further tests found
                  error.txt          why a worker of a study failed on it
    runs/openings.jsonl              one line for every time that the labels of a test split were opened

Every file but the logs is written whole or not at all. Each directory has one lock: two processes cannot train the same
run. Reading a run never imports code that its spec names; `Run.spec` does, and is for those who want to build it.
"""

import json
import shutil
import time
from pathlib import Path

from nearkin.errors import NearkinError, choices
from nearkin.runs.log import read_log
from nearkin.runs.run import SCHEMA, ReadOnlyRun, Run

__all__ = ["SCHEMA", "ReadOnlyRun", "Run", "Store"]


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
        """All runs, oldest first, damaged ones included."""
        if not self.root.is_dir():
            return []
        found = [Run(p) for p in self.root.iterdir() if (p / "spec.yaml").exists()]
        return sorted(found, key=lambda run: (run.path / "spec.yaml").stat().st_mtime)

    def find(self, name: str) -> Run:
        """A run by its path, its hash or the beginning of its hash."""
        if name and (Path(name) / "spec.yaml").exists():
            return Run(Path(name))
        matches = [run for run in self.runs() if run.hash.startswith(name)] if name else []
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

    def opened(self, run: Run, metrics: list[str]) -> None:
        """Note that the labels of a run's test split were opened."""
        head = run.head()
        line = {"split": head["split_hash"], "data": head["data_hash"], "run": run.hash, "metrics": metrics,
                "when": time.strftime("%Y-%m-%dT%H:%M:%S%z")}  # fmt: skip
        with open(self.root / "openings.jsonl", "a") as file:       # one small append: whole, whoever else writes
            file.write(json.dumps(line) + "\n")

    def openings(self) -> dict[str, int]:
        """How often each test split was opened: split hash -> number."""
        counts: dict[str, int] = {}
        for line in read_log(self.root / "openings.jsonl"):
            counts[line["split"]] = counts.get(line["split"], 0) + 1
        return counts
