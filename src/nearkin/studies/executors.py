"""Where runs are carried out: an executor takes tasks and tells what became of them. Here: processes of this machine;
those of a cluster are in on_ray.py.

A study, a search and a choice hand their runs to an executor and know nothing of processes or machines:

    with LocalProcesses(workers=2) as executor:
        working = executor.start(Task(spec.whole(), store.run(name).path), worker=0)
        executor.wait([working], seconds=0.2)
        if not working.alive:
            why = working.ended()                   # None: it is in the store

Whatever carries it out, a run's directory in the caller's store holds its files afterwards.
"""

import math
import multiprocessing
import os
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection, forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Self

from nearkin.config.spec import stored_spec
from nearkin.errors import NearkinError
from nearkin.runs.fit import train
from nearkin.runs.run import Run, RunLocked
from nearkin.runs.test import test
from nearkin.storage import atomic


@dataclass(frozen=True)
class Task:
    """A run that is to be trained and, unless it is a trial, tested.

    Parameters:
        spec: its whole resolved spec, as plain values.
        path: its directory in the caller's store.
        metrics: what its test has to give.
        until: the epoch after which it pauses, with a checkpoint; None: it is trained to the end.
        test: test it when it is final.
    """

    spec: dict[str, Any]
    path: Path
    metrics: tuple[str, ...] = ()
    until: int | None = None
    test: bool = True


class Working(ABC):
    """A task that was started."""

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Is it still being carried out?"""

    @abstractmethod
    def ended(self) -> str | None:
        """Once it is not alive: why it failed, or None."""

    @abstractmethod
    def stop(self) -> None:
        """End it; it writes a checkpoint first. Returns when it has ended."""


class Executor(ABC):
    """Carries out tasks, `workers` at a time. Used as a context: what is left at the end is stopped.

    Parameters:
        workers: how many tasks go at a time.
    """

    def __init__(self, workers: int):
        self.workers = workers

    @abstractmethod
    def start(self, task: Task, worker: int) -> Working:
        """Begin a task. `worker` is 0..workers-1, one that nothing else occupies."""

    @abstractmethod
    def wait(self, working: Sequence[Working], seconds: float) -> None:
        """Until one of them has ended, at most so long."""

    @abstractmethod
    def close(self) -> None:
        """Stop what is left, and give back what was taken."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


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
        process = self._context.Process(target=_work, args=(task, gpu, self._checkpoints))
        process.start()
        self._started = [each for each in self._started if each.alive]
        self._started.append(LocalProcess(process, task))
        return self._started[-1]

    def wait(self, working: Sequence[Working], seconds: float) -> None:
        """The end of a process wakes it."""
        connection.wait([each.process.sentinel for each in working if isinstance(each, LocalProcess)], timeout=seconds)

    def close(self) -> None:
        """End all processes."""
        for each in self._started:
            each.stop()
        self._started = []


@dataclass
class LocalProcess(Working):
    """A task in a process of this machine."""

    process: BaseProcess
    task: Task

    @property
    def alive(self) -> bool:
        """Does the process live?"""
        return self.process.is_alive()

    def ended(self) -> str | None:
        """What its error.txt says, or its exit code."""
        self.process.join()
        return None if self.process.exitcode == 0 else failure(self.task.path, self.process.exitcode)

    def stop(self) -> None:
        """SIGTERM, which waits for the end of the step."""
        self.process.terminate()
        self.process.join()


def failure(path: Path, code: int | None) -> str:
    """Why a run failed: the first line of its error.txt, else how its process ended."""
    return Run(path).failure or f"the worker ended with exit code {code}"


def carry_out(task: Task) -> None:
    """Train and test a run in this process; another process that has it is waited for. An error is noted in its
    directory and raised again."""
    note = task.path / "error.txt"
    note.unlink(missing_ok=True)
    try:
        while True:
            try:
                run = train(stored_spec(task.spec, trust=True), runs=task.path.parent, test=False, until=task.until)
                if run.final and run.purpose == "final" and task.test:
                    test(run, metrics=list(task.metrics))
                return
            except RunLocked:
                time.sleep(1)
    except Exception as error:
        first = str(error) if isinstance(error, NearkinError) else f"{type(error).__name__}: {error}"
        with suppress(NearkinError, OSError), atomic(note) as scratch:     # a full disk holds no note
            (scratch / note.name).write_text(" ".join(first.split()) + "\n\n" + traceback.format_exc(), "utf-8")
        raise


def warm_up() -> Any:
    """Begin the process that workers are forked from: what they import is imported once, not once per run, and while
    the caller reads the study's data. torch's optimisers import torch._dynamo at their first step: that takes a second.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nearkin.runs.fit", "torch._dynamo", "pyarrow.parquet"])
    threads = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"                             # spinning threads of two workers starve each other
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
    import signal

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _work(task: Task, gpu: int | None, checkpoints: float) -> None:
    import signal

    import torch

    from nearkin.engine import loop

    signal.signal(signal.SIGINT, signal.SIG_IGN)                    # the parent ends its workers itself
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    torch.set_num_threads(1)
    loop.CHECKPOINT_SECONDS = min(loop.CHECKPOINT_SECONDS, checkpoints)
    if gpu is not None:
        torch.cuda.set_device(gpu)                                  # what `cuda` without a number means from here on
    try:
        carry_out(task)
    except Exception:                                               # it is noted; the others go on
        raise SystemExit(2) from None
