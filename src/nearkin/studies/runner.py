"""The runs of a study on their way through an executor."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nearkin.errors import NearkinError
from nearkin.runs.log import LogReader
from nearkin.runs.prepare import Data, prepare
from nearkin.runs.store import Run, Store
from nearkin.storage import atomic, with_sum
from nearkin.studies.cells import Cell, Study
from nearkin.studies.executors import Executor, Task, Working
from nearkin.studies.pace import work_of

REFUSED = "refused"                 # in place of the hash of a run whose settings do not go together


@dataclass
class Job:
    """A cell on its way."""

    cell: Cell
    run: Run
    metrics: list[str] = field(default_factory=list)    # that its test has to give
    working: Working | None = None                      # while an executor has it
    worker: int = 0                                     # which of the workers has it
    error: str | None = None
    same: "Job | None" = None                           # an earlier cell of the same hash: one run serves both
    work: float = 0.0                                   # what it costs, in batches (studies/pace.py)
    data_hash: str = ""
    part: bool = True                                   # does this process run it? --part leaves it to another
    best: float | None = None                           # validation recall@1 so far
    _finished: bool = False
    _last: dict[str, Any] = field(default_factory=dict)
    _log: LogReader | None = None

    @property
    def finished(self) -> bool:
        """Is the run done, and has it all metrics that the study asks for?"""
        if not self._finished and self.working is None:             # a look at the files; once it is true, it stays so
            self._finished = self.run.done and (self.run.purpose == "trial" or self._measured())
        return self._finished

    def _measured(self) -> bool:
        """Has it all metrics that are asked for, also at every epoch of its test curve?"""
        found = [self.run.metrics()]
        if (self.run.path / "curve.json").exists() and self.cell.spec.train.curve:
            found.append(self.run.read_json("curve.json")["epochs"][0]["metrics"])
        return all(set(self.metrics) <= each.keys() for each in found)

    @property
    def state(self) -> str:
        """done, failed, running, waiting, or elsewhere: in another part."""
        if self.same is not None:
            return self.same.state
        if self.working is not None:
            return "running"
        if self.error is not None:
            return "failed"
        return "done" if self.finished else "waiting" if self.part else "elsewhere"

    @property
    def worked(self) -> float:
        """How much of its work is done."""
        if self.state == "done":
            return self.work
        return min(self.work, float(self.watched().get("step", 0))) if self.working is not None else 0.0

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
            prepared = prepare(cell.spec, known)
            job = Job(cell, store.run(prepared.hash), study.asked, work=work_of(prepared), data_hash=prepared.data_hash)
        except NearkinError as error:                               # it cannot even begin; the others can
            jobs.append(Job(cell, store.run(REFUSED), study.asked, error=str(error)))
            continue
        if (job.run.path / "spec.yaml").exists():
            job.error = job.run.damage()
        job.same = first.get(job.run.hash)
        first.setdefault(job.run.hash, job)
        jobs.append(job)
    return jobs


def take_part(jobs: list[Job], part: str) -> None:
    """Leave all but one part to other processes: `3/16` is the third of sixteen, every sixteenth run from the third on.
    Parts are disjoint and together the study, in whatever order and wherever they run."""
    told = re.fullmatch(r"([0-9]+)/([0-9]+)", part)
    number, of = (int(told[1]), int(told[2])) if told else (0, 0)
    if not 1 <= number <= of:
        raise NearkinError(f"--part {part}: a part of all, as 3/16: from 1/16 to 16/16")
    for place, job in enumerate(job for job in jobs if job.same is None):
        job.part = place % of == number - 1


def write_study(study: Study, jobs: list[Job], store: Store) -> Path:
    """studies/NAME/study.json: the study's file, its cells, and the runs they map to."""
    import json

    path = store.root / "studies" / study.name / "study.json"
    cells = [
        {"labels": job.cell.labels, "seed": job.cell.seed, "fold": job.cell.fold, "run": job.run.hash,
         "baseline": job.cell.baseline, "trials": job.cell.trials, "error": job.error}
        for job in jobs
    ]  # fmt: skip
    told = {
        "name": study.name, "twin": study.twin, "axes": study.axes, "metrics": study.metrics, "select": study.select,
        "readings": study.readings, "evaluations": study.evaluations, "cells": cells, "file": study.text,
    }  # fmt: skip
    with atomic(path) as scratch:
        (scratch / path.name).write_text(json.dumps(with_sum(told), indent=1) + "\n")
    return path


def run_jobs(jobs: list[Job], executor: Executor, *, poll: float = 0.2) -> Iterable[list[Job]]:
    """Train and test what is not stored; yields after every look at what is under way."""
    waiting = [job for job in jobs if job.same is None and job.error is None and job.part and not job.finished]
    running: list[Job] = []
    try:
        while waiting or running:
            for job in [job for job in running if job.working is not None and not job.working.alive]:
                _collect(job)
                running.remove(job)
            while waiting and len(running) < executor.workers:
                job = waiting.pop(0)
                job.worker = min(set(range(executor.workers)) - {other.worker for other in running})
                task = Task(job.cell.spec.whole(), job.run.path, tuple(job.metrics))
                job.working = executor.start(task, job.worker)
                running.append(job)
            yield jobs
            executor.wait([job.working for job in running if job.working is not None], poll)
    finally:
        for job in running:
            if job.working is not None:
                job.working.stop()
                job.working = None


def _collect(job: Job) -> None:
    """What became of a task."""
    working, job.working = job.working, None
    assert working is not None
    why = working.ended()
    try:
        finished = job.finished
    except NearkinError as error:                                   # what was stored cannot be read
        job.error = str(error)
        return
    if not finished:
        job.error = why or "it ended, and the store does not hold what was asked for"
