"""Runs on the machines of a cluster, by Ray.

The folder of runs lies on a disk that all nodes see, and a run is trained where it is stored. The caller holds the
run's lock while its task is out. A task takes one core and, where there are any, one GPU. When its worker or its node
dies, Ray begins it again wherever there is room, and it goes on from its checkpoint.
"""

import atexit
import importlib
import os
import pickle
import platform
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from nearkin.engine.allocator import release
from nearkin.errors import NearkinError, PassingError
from nearkin.runs.run import Run, RunLocked
from nearkin.runs.store import Store
from nearkin.storage import scratch_folder
from nearkin.studies._local import carry_out
from nearkin.studies.cluster import Watch, join
from nearkin.studies.scheduler import Executor, Failure, Task, Working

RETRIES = 3  # times that Ray begins a task again whose worker died


class RayExecutor(Executor):
    """Workers on the nodes of a Ray cluster.

    Parameters:
        workers: how many tasks go at a time; None: as many as the cluster has GPUs, without any as it has cores.
        address: HOST:PORT of the cluster; `auto`: the one that runs on this machine, else one for this process alone.
        say: called with a line about what goes on: a node with other versions.
    """

    def __init__(self, workers: int | None = None, address: str = "auto", *, say: Callable[[str], None] = print):
        self.ray, self._joined = join(address)
        there = self.ray.cluster_resources()
        self._has_gpus = int(there.get("GPU", 0)) > 0
        super().__init__(workers or max(1, int(there.get("GPU" if self._has_gpus else "CPU", 1))))
        self._say = say
        self._known_nodes: set[str] = set()
        self._marks: dict[Path, Path] = {}  # folder of runs -> what its nodes have to see there
        self._started: list[RayTask] = []
        self.watch = Watch(self.ray.get_runtime_context().gcs_address)
        self._enter = [self.ray.remote(num_cpus=1, num_gpus=n, max_retries=RETRIES)(entrance()) for n in (0, 1)]
        for _ in range(0 if self._has_gpus else self.workers):  # a process that had a GPU serves no second task
            self._enter[0].remote("warm_up", pickle.dumps(()))

    def start(self, task: Task, worker: int) -> "RayTask":
        """Begin a task wherever Ray has room, once nobody else has its run."""
        self._started = [started for started in self._started if started.alive]
        self._started.append(RayTask(self, replace(task, path=task.path.absolute())))
        return self._started[-1]

    def wait(self, working: Sequence[Working], seconds: float) -> None:
        """The end of a task wakes it. A NearkinError when the cluster is no more."""
        self.watch.check()
        tasks = [task for task in working if isinstance(task, RayTask)]
        for task in tasks:
            task.begin()
        refs, end = [task.ref for task in tasks if task.ref is not None], time.monotonic() + seconds
        while time.monotonic() < end and not (refs and self.ray.wait(refs, timeout=0)[0]):
            time.sleep(min(0.02, seconds))  # a signal inside ray.wait loses its exit code

    def close(self) -> None:
        """End all tasks, with checkpoints, and leave the cluster; one that was begun for this process ends."""
        for started in self._started:
            started.stop()
        self.watch.over.set()
        for mark in self._marks.values():
            shutil.rmtree(mark, ignore_errors=True)
        if self.watch.lost:
            atexit.unregister(self.ray.shutdown)  # it would wait for the head
        elif self._joined:
            self.ray.shutdown()

    def submit(self, task: Task) -> Any:
        """Hand a task to Ray; gives what Ray has for its result."""
        folder = task.path.parent
        if folder not in self._marks:
            self._marks[folder] = scratch_folder(folder, "ray")
        device = str(task.spec["train"]["device"])
        gpus = int(self._has_gpus and (device == "auto" or device.startswith("cuda")))
        return self._enter[gpus].remote("serve", pickle.dumps((task, self._marks[folder], os.getcwd())))

    def meet(self, about: dict[str, str]) -> None:
        """Say it once of each node if its versions are not those here."""
        other = [f"{name} {about[name]} (here {here})" for name, here in versions().items() if about[name] != here]
        if other and about["node"] not in self._known_nodes:
            self._say(f"node {about['node']} has {', '.join(other)}: numbers may differ")
        self._known_nodes.add(about["node"])


class RayTask(Working):
    """A task on a cluster, and the lock of its run."""

    def __init__(self, executor: RayExecutor, task: Task):
        self.ref: Any = None  # Ray's, once the run's lock is held
        self._executor, self._task = executor, task
        self._lock = ExitStack()
        self._failure: Failure | None = None
        self._over = self._cancelled = False
        self.begin()

    def begin(self) -> None:
        """Take the run's lock and hand the task over, if that is still to be done and nobody else has the run."""
        if self.ref is not None or self._over:
            return
        try:
            self._lock.enter_context(Run(self._task.path).lock())
            self.ref = self._executor.submit(self._task)
        except (NearkinError, OSError) as error:
            if not isinstance(error, RunLocked):  # else the next look tries again
                self._end(Failure(str(error), passing=isinstance(error, PassingError | OSError)))

    @property
    def alive(self) -> bool:
        """Is it still on its way?"""
        if self.ref is not None and not self._over and self._executor.ray.wait([self.ref], timeout=0)[0]:
            self._end(self._result())
        return not self._over

    def ended(self) -> Failure | None:
        """What the worker says, or how Ray lost it."""
        return self._failure

    def cancel(self) -> None:
        """In the worker it is as Ctrl-C; a second one would end it without a checkpoint."""
        if self.ref is not None and not (self._over or self._cancelled or self._executor.watch.lost):
            self._executor.ray.cancel(self.ref)
        self._cancelled = True

    def stop(self) -> None:
        """The worker writes a checkpoint at the end of its step."""
        self.cancel()
        while self.ref is not None and self.alive and not self._executor.watch.lost:
            self._executor.ray.wait([self.ref], timeout=0.2)
        if not self._over:
            self._end(Failure("it was stopped", passing=True))

    def _end(self, failure: Failure | None) -> None:
        self._failure, self._over = failure, True
        self._lock.close()

    def _result(self) -> Failure | None:
        ray = self._executor.ray
        try:
            failure, about = ray.get(self.ref)
        except ray.exceptions.TaskCancelledError:
            return Failure("it was stopped", passing=True)
        except ray.exceptions.RayTaskError as error:  # of nearkin on the node: elsewhere it is the same
            return Failure(str(error).strip().splitlines()[-1])
        except ray.exceptions.RayError as error:
            why = str(error).strip().splitlines()[0][:200]
            return Failure(f"Ray lost its worker ({RETRIES} retries): {why}", passing=True)
        self._executor.meet(about)
        return failure


class LentRun(Run):
    """A run that is carried out for a caller who holds its lock. The worker has a lock of its own: another one, which
    Ray has given up because its node no longer answers, may still be at work."""

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held by one worker at a time."""
        try:
            lock = FileLock(self.path / "worker.lock").acquire(timeout=0)
        except Timeout:
            raise RunLocked(f"run {self.hash} is being trained by another worker") from None
        with lock:
            yield


class LentStore(Store):
    """The caller's store, as a worker has it."""

    def run(self, run_hash: str, *, writes: bool = True) -> Run:
        """The run of that name, without the lock that the caller holds."""
        return LentRun(self.root / run_hash)


def entrance() -> Callable[[str, bytes], Any]:
    """What Ray calls in a worker, by the name of a function below and its packed arguments. Ray sends it as it is: an
    interrupted import of what it then needs ends the process, which could serve no other task."""

    def enter(name: str, packed: bytes) -> Any:
        try:
            return getattr(importlib.import_module("nearkin.studies._ray"), name)(*pickle.loads(packed))
        except KeyboardInterrupt:
            os._exit(1)

    return enter


def serve(task: Task, mark: Path, folder: str) -> tuple[Failure | None, dict[str, str]]:
    """What a worker does: carry out a task. Gives why it failed, or None, and what this node is.

    `mark` is what the caller has made among its runs, to be seen from here; `folder` is where the caller is, for paths
    that a spec names."""
    node = socket.gethostname()
    about = {"node": node, **versions()}
    if not mark.is_dir():
        where = f"node {node} does not see {mark.parent} as the caller does"
        return Failure(f"{where}: the folder of runs must lie on a disk that all nodes see", passing=True), about
    with suppress(OSError):
        os.chdir(folder)
    os.environ["NEARKIN_NODE"] = node  # runs/data.py: roots of this node
    warm_up()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a cluster begun in the background ignores it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # Ray blocks it; engine/stops.py raises it
    failure = carry_out(task, LentStore(task.path.parent))
    release()  # memory, which idle workers do not need
    return failure, about


def warm_up() -> None:
    """Import what a task needs, as a worker does while the caller reads the study's data."""
    import pyarrow.parquet  # noqa: F401
    import torch
    import torch._dynamo

    torch.set_num_threads(1)


def versions() -> dict[str, str]:
    """Versions that change numbers, or what a spec means."""
    return {"Python": platform.python_version(), **{name: metadata.version(name) for name in ("nearkin", "torch")}}
