"""The runs of a study: which there are, what each still needs, and what became of it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nearkin.config.spec import RunSpec
from nearkin.errors import NearkinError
from nearkin.runs.log import LogReader
from nearkin.runs.names import run_of
from nearkin.runs.prepare import Data, prepare
from nearkin.runs.store import Run, Store
from nearkin.storage import atomic, locked, with_sum, without_sum
from nearkin.studies.cells import Cell, Study
from nearkin.studies.pace import work_of
from nearkin.studies.scheduler import Failure, Look, Task
from nearkin.studies.twin import twin_words

REFUSED = "refused"  # in place of the hash of a run whose settings do not go together


@dataclass
class Job:
    """A cell on its way."""

    cell: Cell
    run: Run
    metrics: list[str] = field(default_factory=list)  # that its test has to give
    spec: RunSpec | None = None  # with all its settings; None where they do not go together
    error: str | None = None
    same: "Job | None" = None  # an earlier cell of the same hash: one run serves both
    work: float = 0.0  # what it costs, in batches (studies/pace.py)
    data_hash: str = ""
    part: bool = True  # does this process run it? part= leaves it to another
    running: bool = False
    best: float | None = None  # validation recall@1 so far
    _finished: bool = False
    _last: dict[str, Any] = field(default_factory=dict)
    _log: LogReader | None = None

    @property
    def finished(self) -> bool:
        """Is the run done, and has it all metrics that the study asks for?"""
        if not self._finished and not self.running:  # a look at the files; once it is true, it stays so
            self._finished = self.run.done and (self.run.purpose == "trial" or self._measured())
        return self._finished

    def _measured(self) -> bool:
        """Has it all metrics that are asked for, also at every epoch of its test curve?"""
        tables = [self.run.metrics()]
        if (self.run.path / "curve.json").exists() and self.cell.spec.train.curve:
            tables.append(self.run.read_json("curve.json")["epochs"][0]["metrics"])
        return all(set(self.metrics) <= table.keys() for table in tables)

    @property
    def state(self) -> str:
        """done, failed, running, waiting, or elsewhere: in another part."""
        if self.same is not None:
            return self.same.state
        if self.running:
            return "running"
        if self.error is not None:
            return "failed"
        return "done" if self.finished else "waiting" if self.part else "elsewhere"

    @property
    def worked(self) -> float:
        """How much of its work is done."""
        if self.state == "done":
            return self.work
        return min(self.work, float(self.watched().get("step", 0))) if self.running else 0.0

    def watched(self) -> dict[str, Any]:
        """The last entry of its log. Only what is new is read."""
        if self._log is None:
            self._log = LogReader(self.run.path / "log.jsonl")
        for line in self._log.more():
            self._last = line if "step" in line else self._last | line
            if "recall@1" in line.get("validation", {}):
                self.best = max(self.best or 0.0, line["validation"]["recall@1"])
        return self._last

    def end(self, failure: Failure | None) -> None:
        """Note what became of it. What counts is what the store holds, also where a worker was lost after its work."""
        self.running = False
        try:
            if not self.finished:
                self.error = failure.why if failure else "it ended, and the store does not hold what was asked for"
        except NearkinError as error:  # what was stored cannot be read
            self.error = str(error)


def jobs_of(study: Study, store: Store, known: dict[str, Data] | None = None) -> list[Job]:
    """Each cell with the directory that its run has. Data that cells share are read once; `known` remembers them from
    call to call."""
    known = {} if known is None else known
    first: dict[str, Job] = {}
    jobs = []
    for cell in study.cells:
        asked = study.asked_on(cell.spec.data.name)
        try:
            prepared = prepare(cell.spec, known)
        except NearkinError as error:  # it cannot even begin; the others can
            jobs.append(Job(cell, store.run(REFUSED), asked, error=str(error)))
            continue
        job = Job(
            cell, store.run(prepared.hash), asked, prepared.spec, work=work_of(prepared), data_hash=prepared.data_hash
        )
        try:
            job.run = run_of(store, prepared)
            job.error = job.run.damage() if (job.run.path / "spec.yaml").exists() else None
        except NearkinError as error:  # what is stored of it is damaged
            job.error = str(error)
        job.same = first.get(job.run.hash)
        first.setdefault(job.run.hash, job)
        jobs.append(job)
    return jobs


def take_part(jobs: list[Job], part: str) -> None:
    """Leave all but one part to other processes: `3/16` is the third of sixteen, every sixteenth run from the third on.
    Parts are disjoint and together the study, in whatever order and wherever they run."""
    match = re.fullmatch(r"([0-9]+)/([0-9]+)", part)
    number, of = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= of:
        raise NearkinError(f"part={part}: must be PART/PARTS, such as 3/16: from 1/16 to 16/16")
    for place, job in enumerate(job for job in jobs if job.same is None):
        job.part = place % of == number - 1


def tasks_of(jobs: list[Job]) -> Iterator[Task]:
    """What is not stored of the runs that this process has a part in."""
    for job in jobs:
        if job.same is None and job.error is None and job.part and not job.finished:
            yield Task(job.cell.spec.whole(), job.run.path, tuple(job.metrics))


def note(jobs: list[Job], look: Look) -> None:
    """Take down what the scheduler saw."""
    running = {task.path for task in look.running}
    ended = {over.task.path: over.failure for over in look.ended}
    for job in jobs:
        if job.same is None and job.run.path in ended:
            job.end(ended[job.run.path])
        elif job.same is None:
            job.running = job.run.path in running


def write_study(study: Study, jobs: list[Job], store: Store) -> Path:
    """studies/NAME/study.json: the study's file, its cells, and the runs they map to. What another part of the study
    has noted about its failures stays."""
    path = store.root / "studies" / study.name / "study.json"
    with locked(path):
        before = _failures(path)
        cells = [
            {
                "labels": job.cell.labels,
                "seed": job.cell.seed,
                "fold": job.cell.fold,
                "run": job.run.hash,
                "baseline": job.cell.baseline,
                "trials": job.cell.trials,
                "searched_epochs": job.cell.searched_epochs,
                "error": before.get(job.run.hash) if job.state == "elsewhere" else job.error,
            }
            for job in jobs
        ]
        content = {
            "name": study.name,
            "twin": twin_words(study.twin),
            "axes": study.axes,
            "metrics": study.metrics,
            "data_metrics": study.data_metrics,
            "select": study.select,
            "readings": study.readings,
            "evaluations": study.evaluations,
            "cells": cells,
            "file": study.text,
        }
        with atomic(path) as scratch:
            (scratch / path.name).write_text(json.dumps(with_sum(content), indent=1) + "\n")
    return path


def _failures(path: Path) -> dict[str, str | None]:
    """Run -> why it failed, as study.json has it; nothing where that is absent or damaged."""
    try:
        return {cell["run"]: cell["error"] for cell in without_sum(json.loads(path.read_text()))["cells"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
