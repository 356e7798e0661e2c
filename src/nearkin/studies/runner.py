"""The runs of a study in worker processes of one thread each."""

import multiprocessing
import os
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from nearkin.errors import NearkinError
from nearkin.runs.fit import train
from nearkin.runs.log import LogReader
from nearkin.runs.prepare import Data, prepare
from nearkin.runs.store import Run, Store
from nearkin.runs.test import test
from nearkin.storage import atomic
from nearkin.studies.grid import Cell, Study

REFUSED = "refused"                 # in place of the hash of a run whose settings do not go together


@dataclass
class Job:
    """A cell on its way through the workers."""

    cell: Cell
    run: Run
    metrics: list[str] = field(default_factory=list)    # that its test has to give
    process: BaseProcess | None = None
    error: str | None = None
    same: "Job | None" = None                           # an earlier cell of the same hash: one run serves both
    best: float | None = None                           # validation recall@1 so far
    _last: dict[str, Any] = field(default_factory=dict)
    _log: LogReader | None = None

    @property
    def finished(self) -> bool:
        """Is the run done, and has it all metrics that the study asks for?"""
        return self.run.done and (self.run.purpose == "trial" or not set(self.metrics) - self.run.metrics().keys())

    @property
    def state(self) -> str:
        """done, failed, running or waiting."""
        if self.same is not None:
            return self.same.state
        if self.process is not None:
            return "running"
        if self.error is not None:
            return "failed"
        return "done" if self.finished else "waiting"

    def watched(self) -> dict[str, Any]:
        """The last entry of its log. Only what is new is read."""
        if self._log is None:
            self._log = LogReader(self.run.path / "log.jsonl")
        for line in self._log.more():
            self._last = line if "step" in line else self._last | line
            if "recall@1" in line.get("validation", {}):
                self.best = max(self.best or 0.0, line["validation"]["recall@1"])
        return self._last


def jobs_of(study: Study, store: Store) -> list[Job]:
    """Each cell with the directory that its run has; the data are read once for cells that share them."""
    known: dict[str, Data] = {}
    first: dict[str, Job] = {}
    jobs = []
    for cell in study.cells:
        try:
            job = Job(cell, store.run(prepare(cell.spec, known).hash), study.asked)
        except NearkinError as error:                               # it cannot even begin; the others can
            jobs.append(Job(cell, store.run(REFUSED), study.asked, error=str(error)))
            continue
        job.same = first.get(job.run.hash)
        first.setdefault(job.run.hash, job)
        jobs.append(job)
    return jobs


def write_study(study: Study, jobs: list[Job], store: Store) -> Path:
    """studies/NAME/study.json: the study's file, its cells, and the runs they map to."""
    import json

    path = store.root / "studies" / study.name / "study.json"
    cells = [
        {"labels": job.cell.labels, "seed": job.cell.seed, "run": job.run.hash, "error": job.error} for job in jobs
    ]
    told = {"name": study.name, "axes": study.axes, "metrics": study.metrics, "cells": cells, "file": study.text}
    with atomic(path) as scratch:
        (scratch / path.name).write_text(json.dumps(told, indent=1) + "\n")
    return path


def run_jobs(jobs: list[Job], *, runs: Path, workers: int, poll: float = 0.2) -> Iterable[list[Job]]:
    """Train and test what is not stored, `workers` at a time; yields after every look at the processes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nearkin.runs.fit"])            # torch is imported once, not once per run
    threads = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"                             # spinning threads of two workers starve each other
    waiting = [job for job in jobs if job.same is None and job.error is None and not job.finished]
    running: list[Job] = []
    try:
        while waiting or running:
            for job in [job for job in running if job.process is not None and not job.process.is_alive()]:
                _collect(job)
                running.remove(job)
            while waiting and len(running) < workers:
                job = waiting.pop(0)
                target = (job.cell.spec.tree(), str(runs), str(job.run.path), job.metrics)
                job.process = context.Process(target=_work, args=target)
                job.process.start()
                running.append(job)
            yield jobs
            time.sleep(poll)
    finally:
        for job in running:
            if job.process is not None:
                job.process.terminate()
                job.process.join()
                job.process = None
        if threads is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = threads


def _collect(job: Job) -> None:
    """What became of a worker."""
    assert job.process is not None
    job.process.join()
    if not job.finished:
        note = job.run.path / "error.txt"
        ended = f"the worker ended with exit code {job.process.exitcode}"
        job.error = note.read_text().strip().splitlines()[0] if note.exists() else ended
    job.process = None


def _work(spec: dict[str, Any], runs: str, path: str, metrics: list[str]) -> None:
    import signal

    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)                    # the parent ends its workers itself
    torch.set_num_threads(1)
    note = Path(path) / "error.txt"
    note.unlink(missing_ok=True)
    try:
        run = train(spec, runs=runs)
        if run.purpose == "final":
            test(run, metrics=metrics)
    except Exception as error:                                      # whatever it is, the study goes on without this run
        note.parent.mkdir(parents=True, exist_ok=True)
        first = str(error) if isinstance(error, NearkinError) else f"{type(error).__name__}: {error}"
        note.write_text(" ".join(first.split()) + "\n\n" + traceback.format_exc())
        raise SystemExit(2) from None
