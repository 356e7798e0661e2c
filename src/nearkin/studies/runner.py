"""The runs of a study in worker processes of one thread each."""

import multiprocessing
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from nearkin.errors import NearkinError
from nearkin.runs.fit import train
from nearkin.runs.prepare import prepare
from nearkin.runs.store import Run, Store
from nearkin.studies.grid import Cell, Study


@dataclass
class Job:
    """A cell on its way through the workers."""

    cell: Cell
    run: Run
    process: BaseProcess | None = None
    error: str | None = None

    @property
    def state(self) -> str:
        """done, failed, running or waiting."""
        if self.run.done:
            return "done"
        if self.error is not None:
            return "failed"
        return "running" if self.process is not None else "waiting"


def jobs_of(study: Study, store: Store) -> list[Job]:
    """Each cell with the directory its run has; the data are read once for cells that share them."""
    known: dict[str, Any] = {}
    return [Job(cell, store.run(prepare(cell.spec, known).hash)) for cell in study.cells]


def run_jobs(jobs: list[Job], *, runs: Path, workers: int, poll: float = 0.2) -> Iterable[list[Job]]:
    """Train what is not stored, `workers` at a time; yields after every look at the processes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nearkin.runs.fit"])          # torch is imported once, not once per run
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
