"""Many runs: the one way in which a study, a search and a choice have theirs carried out.

They only say which runs are wanted, and know nothing of processes or machines:

    with LocalProcesses(workers=2) as executor:
        for look in schedule(executor, tasks):
            for ended in look.ended:
                print(ended.task.path.name, ended.failure)

Whatever carries a task out, the run's directory holds its files afterwards.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

TRIES = 3  # of a task whose process is killed, for example by the out-of-memory killer
POLL = 0.2  # seconds between two looks


@dataclass(frozen=True)
class Task:
    """A run that is to be trained and, unless it is a trial or leaves no test images, tested.

    Parameters:
        spec: its whole resolved spec, as plain values: with where its data lie now.
        path: its directory in the caller's store, named by its hash.
        metrics: what its test has to give.
        until: the epoch after which it pauses, with a checkpoint; None: it is trained to the end.
    """

    spec: dict[str, Any]
    path: Path
    metrics: tuple[str, ...] = ()
    until: int | None = None


@dataclass(frozen=True)
class Failure:
    """Why a task came to nothing.

    Parameters:
        why: in one line.
        passing: nothing is wrong with the run itself (a full disk, a worker that died): the next call may succeed.
        killed: its process was ended by a signal.
    """

    why: str
    passing: bool = False
    killed: bool = False


class Working(ABC):
    """A task that was started."""

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Is it still being carried out?"""

    @abstractmethod
    def ended(self) -> Failure | None:
        """Once it is not alive: why it failed, or None."""

    def cancel(self) -> None:  # noqa: B027
        """Tell it that `stop` is about to come, so that many end at the same time; it may do nothing."""

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


@dataclass(frozen=True)
class Ended:
    """A task that is over; `failure` is None where the store holds what was asked for."""

    task: Task
    failure: Failure | None


@dataclass
class Look:
    """One look at what is under way: what has ended since the last, and what is being carried out."""

    ended: list[Ended] = field(default_factory=list)
    running: list[Task] = field(default_factory=list)


@dataclass
class _Started:
    task: Task
    worker: int
    working: Working
    tries: int = 1


def schedule(
    executor: Executor, tasks: Iterable[Task | None], *, stop: Callable[[], bool] = lambda: False, poll: float = POLL
) -> Iterator[Look]:
    """Carry out tasks, as many at a time as there are workers; yields after every look.

    A task whose process is killed goes on from its checkpoint, on two further tries. When the caller leaves the loop,
    whether by Ctrl-C or by an error, what is under way is stopped with checkpoints.

    Parameters:
        executor: carries them out.
        tasks: asked for the next one when a worker is free, after the caller has seen what ended. None instead of a
            task: there is none now, ask again; the end of `tasks`: there will be no more.
        stop: asked at every look; True: begin nothing more, stop what is under way with checkpoints, and end.
        poll: seconds between two looks where nothing ends.
    """
    upcoming, more = iter(tasks), True
    running: list[_Started] = []
    look = Look()
    try:
        while True:
            yield look
            if stop():
                return
            while more and len(running) < executor.workers:
                try:
                    task = next(upcoming)
                except StopIteration:
                    more = False
                    break
                if task is None:
                    break
                worker = min(set(range(executor.workers)) - {started.worker for started in running})
                running.append(_Started(task, worker, executor.start(task, worker)))
            if not running and not more:
                return
            if running:
                executor.wait([started.working for started in running], poll)
            else:  # other processes have what is left
                time.sleep(poll)
            look = Look(_collect(executor, running), [started.task for started in running])
    finally:
        for started in running:
            started.working.cancel()
        for started in running:
            started.working.stop()


def _collect(executor: Executor, running: list[_Started]) -> list[Ended]:
    """Take out of `running` what is over; what was killed is begun again while it has tries left."""
    ended = []
    for started in [started for started in running if not started.working.alive]:
        failure = started.working.ended()
        if failure is not None and failure.killed and started.tries < TRIES:
            started.working = executor.start(started.task, started.worker)
            started.tries += 1
            continue
        running.remove(started)
        ended.append(Ended(started.task, failure))
    return ended
