"""Runs in processes of this machine."""

import math
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection, forkserver
from multiprocessing.process import BaseProcess
from typing import Any

from nearkin.config.spec import stored_spec
from nearkin.engine import loop
from nearkin.errors import NearkinError, PassingError
from nearkin.runs.events import silent
from nearkin.runs.fit import train
from nearkin.runs.names import names_of
from nearkin.runs.prepare import prepare
from nearkin.runs.run import Run, RunLocked
from nearkin.runs.store import Store
from nearkin.runs.test import test
from nearkin.storage import atomic
from nearkin.studies.scheduler import Executor, Failure, Task, Working

FAILED, PASSING = 2, 3  # exit codes of a worker: its run cannot be trained; it could not be trained now


class LocalProcesses(Executor):
    """Processes of this machine, one thread each, spread over the GPUs that are there.

    Parameters:
        workers: how many tasks go at a time.
        checkpoints: seconds between the checkpoints of a run, where they are fewer than the loop's own.
    """

    def __init__(self, workers: int, *, checkpoints: float = math.inf):
        super().__init__(workers)
        self._checkpoints = checkpoints
        self._context = warm_up()
        self._started: list[LocalProcess] = []

    def start(self, task: Task, worker: int) -> "LocalProcess":
        """Begin a task in a process of its own, forked from one that has imported everything."""
        gpu = gpu_of(worker, task.spec["train"]["device"])
        process = self._context.Process(target=work, args=(task, gpu, self._checkpoints))
        process.start()
        self._started = [started for started in self._started if started.alive]
        self._started.append(LocalProcess(process, task))
        return self._started[-1]

    def wait(self, working: Sequence[Working], seconds: float) -> None:
        """The end of a process wakes it."""
        connection.wait(
            [started.process.sentinel for started in working if isinstance(started, LocalProcess)], timeout=seconds
        )

    def close(self) -> None:
        """End all processes."""
        for started in self._started:
            started.cancel()
        for started in self._started:
            started.stop()
        self._started = []


@dataclass
class LocalProcess(Working):
    """A task in a process of this machine."""

    process: BaseProcess
    task: Task
    _cancelled: bool = False

    @property
    def alive(self) -> bool:
        """Does the process live?"""
        return self.process.is_alive()

    def ended(self) -> Failure | None:
        """What its error.txt says, or its exit code."""
        self.process.join()
        code = self.process.exitcode or 0
        if code == 0:
            return None
        why = Run(self.task.path).failure if code > 0 else None
        return Failure(why or f"the worker ended with exit code {code}", passing=code != FAILED, killed=code < 0)

    def cancel(self) -> None:
        """SIGTERM, which waits for the end of the step; a second one would end it without a checkpoint."""
        if not self._cancelled:
            self.process.terminate()
        self._cancelled = True

    def stop(self) -> None:
        """Returns when the process has ended."""
        self.cancel()
        self.process.join()


def work(task: Task, gpu: int | None, checkpoints: float) -> None:
    """What a worker process does: train and test one run, and say by its exit code what became of it."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers itself
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    torch.set_num_threads(1)
    loop.CHECKPOINT_SECONDS = min(loop.CHECKPOINT_SECONDS, checkpoints)
    if gpu is not None:
        torch.cuda.set_device(gpu)  # what `cuda` without a number means from here on
    failure = carry_out(task)
    if failure is not None:
        raise SystemExit(PASSING if failure.passing else FAILED)


def carry_out(task: Task, store: Store | None = None) -> Failure | None:
    """Train and test a run in this process; another process that has it is waited for. A failure is noted in the run's
    directory too.

    Parameters:
        task: what is to be done.
        store: where its run is; None: where its path says.
    """
    note = task.path / "error.txt"
    try:
        note.unlink(missing_ok=True)
        prepared = prepare(stored_spec(task.spec, trust=True))
        if task.path.name not in names_of(prepared):
            raise NearkinError(
                f"run {task.path.name} is run {prepared.hash} here: data, weights or code are not those that it was "
                f"planned with (data: {prepared.spec.data.root or prepared.spec.data.name})"
            )
        while True:
            try:
                run = train(prepared, runs=store or task.path.parent, test=False, until=task.until, watch=silent)
                if run.final and run.testable:
                    test(run, metrics=list(task.metrics), spec=prepared.spec)
                return None
            except RunLocked:
                time.sleep(1)
    except Exception as error:
        why = " ".join((str(error) if isinstance(error, NearkinError) else f"{type(error).__name__}: {error}").split())
        with suppress(NearkinError, OSError), atomic(note) as scratch:  # a full disk holds no note
            (scratch / note.name).write_text(f"{why}\n\n{traceback.format_exc()}", "utf-8")
        return Failure(why, passing=isinstance(error, PassingError | OSError | MemoryError))


def warm_up() -> Any:
    """Begin the process that workers are forked from: what they import is imported once, not once per run, and while
    the caller reads the study's data. torch's optimisers import torch._dynamo at their first step: that takes a second.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nearkin.studies._local", "torch._dynamo", "pyarrow.parquet"])
    threads = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"  # spinning threads of two workers starve each other
    forkserver.ensure_running()
    if threads is None:
        del os.environ["OMP_NUM_THREADS"]
    else:
        os.environ["OMP_NUM_THREADS"] = threads
    return context


def gpu_of(worker: int, device: str) -> int | None:
    """The GPU of a worker: of several, each takes the next; None: what torch takes by itself, or what the spec names.

    The spec keeps its word, auto or cuda: which of the GPUs it was means nothing on the next machine.
    """
    import torch

    count = torch.cuda.device_count() if device in ("auto", "cuda") else 0
    return worker % count if count > 1 else None


def _end_with_the_parent() -> None:
    """A runner that is killed cannot end its workers: they see it, write a checkpoint and end themselves."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
