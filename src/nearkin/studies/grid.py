"""A study: a base spec, axes, seeds; every combination is a run, found by its hash or trained.

    name: demo
    base: {dataset: glyphs, dim: 64, epochs: 4}
    axes:
      method:                                   # label -> words
        untrained: {train.epochs: 0}
        multi-similarity: {loss: multi_similarity, miner: multi_similarity}
      dim: [64, 128]                            # or values of one key
    seeds: [0, 1]
    metrics: [recall@1, map_at_r, train.rho]

Runs that are not stored yet go to worker processes of one thread each. Kill it and call it again: what is done is
skipped, what was begun goes on.
"""

import csv
import itertools
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from nearkin.config.parse import read_yaml
from nearkin.config.spec import RunSpec, make_spec
from nearkin.errors import NearkinError, choices
from nearkin.runs.experiment import prepare, train
from nearkin.runs.store import Run, Store
from nearkin.storage import atomic

KEYS = ("name", "base", "axes", "seeds", "metrics")


@dataclass(frozen=True)
class Cell:
    """One run of a study: its place on the axes, its seed, its spec."""

    labels: tuple[str, ...]
    seed: int
    spec: RunSpec


@dataclass(frozen=True)
class Study:
    name: str
    axes: tuple[str, ...]
    cells: tuple[Cell, ...]
    metrics: tuple[str, ...]


@dataclass
class Job:
    """A cell on its way through the workers."""

    cell: Cell
    run: Run
    process: BaseProcess | None = None
    error: str | None = None

    @property
    def state(self) -> str:
        if self.run.done:
            return "done"
        if self.error is not None:
            return "failed"
        return "running" if self.process is not None else "waiting"


@dataclass
class Row:
    """Mean and sample standard deviation over seeds of one place on the axes."""

    labels: tuple[str, ...]
    seeds: int
    failed: int
    mean: dict[str, float] = field(default_factory=dict)
    std: dict[str, float | None] = field(default_factory=dict)


def read_study(path: Path, words: Mapping[str, Any] | None = None) -> Study:
    """`words` are laid over the base, as `root=DIR` on the command line."""
    content = read_yaml(path)
    for key in content:
        if key not in KEYS:
            raise NearkinError(f"unknown key {key!r} in {path}: {choices(key, KEYS)}")
    axes = content.get("axes") or {}
    if not isinstance(axes, dict) or not all(isinstance(a, dict | list) and a for a in axes.values()):
        raise NearkinError(f"axes in {path}: each is a list of values or a mapping from labels to words")
    seeds = content.get("seeds", [0])
    if not isinstance(seeds, list) or not all(isinstance(s, int) for s in seeds) or not seeds:
        raise NearkinError(f"seeds={seeds!r} in {path}: a list of whole numbers")
    points = [_points(key, values) for key, values in axes.items()]
    cells = [
        Cell(tuple(label for label, _ in place), seed,
             make_spec(content.get("base"), words, *(own for _, own in place), {"train.seed": seed}))
        for place in itertools.product(*points) for seed in seeds
    ]  # fmt: skip
    metrics = content.get("metrics", ["recall@1", "map_at_r"])
    return Study(str(content.get("name", Path(path).stem)), tuple(axes), tuple(cells), tuple(metrics))


def _points(key: str, values: dict[str, Any] | list[Any]) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(values, dict):
        return [(str(label), words or {}) for label, words in values.items()]
    return [(str(value), {key: value}) for value in values]


def jobs_of(study: Study, store: Store) -> list[Job]:
    """Each cell with the directory its run has; the data are read once for cells that share them."""
    known: dict[str, Any] = {}
    return [Job(cell, store.run(prepare(cell.spec, known).hash)) for cell in study.cells]


def run_jobs(jobs: list[Job], *, runs: Path, workers: int, poll: float = 0.2) -> Iterable[list[Job]]:
    """Train what is not stored, `workers` at a time; yields after every look at the processes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nearkin.runs.experiment"])          # torch is imported once, not once a run
    threads = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"                             # spinning threads of two workers starve each other
    waiting = [job for job in jobs if not job.run.done]
    try:
        while waiting or any(job.process is not None for job in jobs):
            for job in jobs:
                if job.process is not None and not job.process.is_alive():
                    job.process.join()
                    if not job.run.done:
                        note = job.run.path / "error.txt"
                        reason = note.read_text() if note.exists() else f"worker ended with {job.process.exitcode}"
                        job.error = reason.strip()
                    job.process = None
            busy = sum(job.process is not None for job in jobs)
            while waiting and busy < workers:
                job = waiting.pop(0)
                process = context.Process(target=_work, args=(job.cell.spec.tree(), str(runs), str(job.run.path)))
                process.start()
                job.process = process
                busy += 1
            yield jobs
            time.sleep(poll)
    finally:
        for job in jobs:
            if job.process is not None:
                job.process.terminate()
                job.process.join()
                job.process = None
        if threads is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = threads


def _work(spec: dict[str, Any], runs: str, path: str) -> None:
    import signal

    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)                    # the parent ends its workers itself
    torch.set_num_threads(1)
    note = Path(path) / "error.txt"
    note.unlink(missing_ok=True)
    try:
        train(spec, runs=runs)
    except NearkinError as error:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(str(error))
        raise SystemExit(2) from None


def rows_of(study: Study, jobs: list[Job]) -> list[Row]:
    """The table of a study, in the order of its file."""
    rows = []
    for labels in dict.fromkeys(cell.labels for cell in study.cells):
        mine = [job for job in jobs if job.cell.labels == labels]
        results = [_numbers(job.run) for job in mine if job.run.done]
        row = Row(labels, len(results), sum(job.error is not None for job in mine))
        for metric in study.metrics:
            values = [r[metric] for r in results if metric in r]
            if results and not values:
                raise NearkinError(f"metric {metric!r} is not stored: {choices(metric, results[0])}")
            if values:
                row.mean[metric] = statistics.fmean(values)
                row.std[metric] = statistics.stdev(values) if len(values) > 1 else None
        rows.append(row)
    return rows


def _numbers(run: Run) -> dict[str, float]:
    """The test metrics, and as train.* those of the training embeddings."""
    result = run.result
    return result["test"] | {f"train.{name}": value for name, value in result["train"].items()}


def write_csv(study: Study, rows: list[Row], path: Path) -> None:
    with atomic(path) as scratch, open(scratch / path.name, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*study.axes, "seeds", *(f"{m} {what}" for m in study.metrics for what in ("mean", "std"))])
        for row in rows:
            cells = [value for m in study.metrics for value in (row.mean.get(m), row.std.get(m))]
            writer.writerow([*row.labels, row.seeds, *("" if c is None else f"{c:.6f}" for c in cells)])
