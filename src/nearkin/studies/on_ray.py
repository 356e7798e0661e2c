"""Runs on the machines of a cluster, by Ray.

    with RayExecutor(address="10.0.0.1:6379") as executor:
        working = executor.start(Task(spec.whole(), store.run(name).path), worker=0)

A worker is an actor with a core and, where there are any, a GPU (node.py); it serves one run after another. Where it
sees the caller's store, a run is trained there. Elsewhere it is trained in a folder of the worker's own, and its files
come back every few minutes and at the end (parcels.py); meanwhile the caller holds the run's lock. A worker that is
lost is replaced, wherever there is room, and the run goes on from the files that came back last.
"""

import os
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from nearkin.errors import NearkinError
from nearkin.runs.run import Run, RunLocked
from nearkin.studies.cluster import Watch, join
from nearkin.studies.executors import Executor, Task, Working
from nearkin.studies.node import News, Node, differing, versions
from nearkin.studies.parcels import Packer, unpack

RETRIES = 3                         # times that a run is begun elsewhere


class Lost(Exception):
    """A worker, or its node, is no more."""


class Stopped(Exception):
    """The caller wants an end."""


@dataclass
class Member:
    """A worker: an actor that lives, or that Ray has not yet found room for."""

    actor: Any
    gpus: int
    coming: Any                                                     # what it tells of itself, once it is there
    about: dict[str, str] = field(default_factory=dict)


class RayExecutor(Executor):
    """Workers on the nodes of a Ray cluster.

    Parameters:
        workers: how many tasks go at a time; None: as many as the cluster has GPUs, without any as it has cores.
        address: HOST:PORT of the cluster; `auto`: the one that runs on this machine, else one for this process alone.
        every: seconds after which the files of a run come back; what a lost worker costs at most.
        in_place: train in the caller's store where a worker sees it; False: files are always copied.
        say: called with a line about what goes on: a lost worker, a node with other versions.
    """

    def __init__(
        self, workers: int | None = None, address: str = "auto", *, every: float = 180.0, in_place: bool = True,
        say: Callable[[str], None] = lambda line: None,
    ):  # fmt: skip
        self.ray, self._joined = join(address)
        self.every, self.in_place, self.say = every, in_place, say
        there = self.ray.cluster_resources()
        self.has_gpus = int(there.get("GPU", 0)) > 0
        super().__init__(workers or max(1, int(there.get("GPU" if self.has_gpus else "CPU", 1))))
        self._watch = Watch(self.ray.get_runtime_context().gcs_address)
        self._change = threading.Condition()
        self._started: list[RayTask] = []
        self._known_nodes: set[str] = set()
        self._idle = [self._new(int(self.has_gpus)) for _ in range(self.workers)]    # they import torch meanwhile

    def start(self, task: Task, worker: int) -> "RayTask":
        """Begin a task on whichever worker is free first."""
        self._started = [each for each in self._started if each.alive]
        self._started.append(RayTask(self, replace(task, path=task.path.absolute())))
        return self._started[-1]

    def wait(self, working: Sequence[Working], seconds: float) -> None:
        """The end of a task wakes it. A NearkinError when the cluster is no more."""
        self._watch.check()
        with self._change:
            self._change.wait_for(lambda: not all(each.alive for each in working), timeout=seconds)

    def close(self) -> None:
        """End all tasks, with checkpoints, and leave the cluster; one that was begun for this process ends."""
        for each in self._started:
            each.tell_to_stop()
        for each in self._started:
            each.stop()
        self._started = []
        self._watch.end()
        if self.lost:
            return
        for member in self._idle:
            self.drop(member)
        self._idle = []
        if self._joined:
            self.ray.shutdown()

    # -- for the tasks, from their threads -----------------------------------------------------------------

    @property
    def lost(self) -> bool:
        """Does the head of the cluster answer no more?"""
        return self._watch.lost

    def gpus_for(self, task: Task) -> int:
        """GPUs of a task: one, where its device asks for it."""
        device = str(task.spec["train"]["device"])
        return int(device.startswith("cuda") or (device == "auto" and self.has_gpus))

    @contextmanager
    def worker(self, gpus: int, stopped: threading.Event) -> Iterator[Member]:
        """A worker that is there; waits for one. Given back unless it was lost."""
        member = self._take(gpus)
        try:
            while not self._is_there(member):
                if stopped.wait(0.1):
                    raise Stopped
                with self._change:                                  # of those that wait for room, one that has it
                    there = [each for each in self._idle if each.gpus == gpus and self._arrived(each)]
                    if there:
                        self._idle.remove(there[0])
                        self._idle.append(member)
                        member = there[0]
            yield member
        except Stopped:
            self._give_back(member)
            raise
        except BaseException:                                       # lost, or it works on for nobody
            self.drop(member)
            raise
        self._give_back(member)

    def ended(self) -> None:
        """A task tells that it has."""
        with self._change:
            self._change.notify_all()

    def drop(self, member: Member) -> None:
        """End a worker."""
        with suppress(Exception):
            self.ray.kill(member.actor)

    def _new(self, gpus: int) -> Member:
        kind = self.ray.remote(num_cpus=1, num_gpus=gpus, max_concurrency=2, max_restarts=0)(Node)
        actor = kind.remote(self.every, os.getcwd())
        return Member(actor, gpus, actor.about.remote())

    def _take(self, gpus: int) -> Member:
        with self._change:
            for other in [each for each in self._idle if each.gpus != gpus]:         # it may hold what this one needs
                self._idle.remove(other)
                self.drop(other)
            if not self._idle:
                return self._new(gpus)
            return self._idle.pop(next((i for i, each in enumerate(self._idle) if self._arrived(each)), 0))

    def _give_back(self, member: Member) -> None:
        with self._change:
            self._idle.append(member)

    def _arrived(self, member: Member) -> bool:
        return bool(member.about) or bool(self.ray.wait([member.coming], timeout=0)[0])

    def _is_there(self, member: Member) -> bool:
        """Has it told of itself? Its versions are compared with these, once for each node."""
        if not member.about and self._arrived(member):
            try:
                member.about = self.ray.get(member.coming)
            except self.ray.exceptions.RayError as error:
                raise Lost(_reason(error)) from None
            if (other := differing(versions(), member.about)) and member.about["node"] not in self._known_nodes:
                self.say(f"node {member.about['node']} has {other}: numbers may differ")
            self._known_nodes.add(member.about["node"])
        return bool(member.about)


class RayTask(Working):
    """A task on a cluster: a thread that waits for a worker, hands it over, and lays down what comes back."""

    def __init__(self, executor: RayExecutor, task: Task):
        self._executor, self._task = executor, task
        self._stopping = threading.Event()
        self._out: tuple[Member, str] | None = None                 # who has it, under which ticket
        self._why: str | None = None
        self._over = False
        self._thread = threading.Thread(target=self._attend, daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Is it still on its way?"""
        return not self._over

    @property
    def worker(self) -> dict[str, str]:
        """Who has it: node, process number, versions; nothing while it waits."""
        return self._out[0].about if self._out is not None else {}

    def ended(self) -> str | None:
        """What its error.txt says, or how its workers were lost."""
        return self._why

    def stop(self) -> None:
        """The worker ends it with a checkpoint, which is brought back."""
        self.tell_to_stop()
        while self.alive and not self._executor.lost:
            self._thread.join(0.2)

    def tell_to_stop(self) -> None:
        """The same without waiting."""
        if not self._stopping.is_set():
            self._stopping.set()
            if self._out is not None and not self._executor.lost:
                member, ticket = self._out
                member.actor.stop.remote(ticket)

    def _attend(self) -> None:
        try:
            self._why = self._carried_out()
        except Stopped:
            self._why = "it was stopped"
        except NearkinError as error:
            self._why = str(error)
        except Exception as error:                                  # of ours or of Ray's: the other runs go on
            self._why = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
        finally:
            self._over = True
            self._executor.ended()

    def _carried_out(self) -> str | None:
        name, node = self._task.path.name, "?"
        (self._task.path / "error.txt").unlink(missing_ok=True)
        for left in reversed(range(RETRIES + 1)):
            try:
                with self._executor.worker(self._executor.gpus_for(self._task), self._stopping) as member:
                    node = member.about["node"]
                    news = self._served(member)
            except Lost as lost:
                if left == 0 or self._stopping.is_set():
                    times = RETRIES + 1 - left
                    raise NearkinError(f"run {name} lost {times} workers, the last on {node}: {lost}") from None
                self._executor.say(f"run {name} lost its worker on {node} ({lost}); it goes on elsewhere")
                continue
            if not news.killed or self._stopping.is_set():
                return news.why
            if left:
                self._executor.say(f"run {name}: its process on {node} was killed; it goes on from its checkpoint")
        return f"its process was killed {RETRIES + 1} times, the last time on {node}: {news.why}"

    def _served(self, member: Member) -> News:
        """Where the store is seen the worker locks the run itself."""
        if self._executor.in_place and self._seen_by(member):
            return self._through(member, None)
        while True:
            try:
                with Run(self._task.path).lock():
                    return self._through(member, Packer(self._task.path))
            except RunLocked:
                if self._stopping.wait(1):
                    raise Stopped from None

    def _through(self, member: Member, packer: Packer | None) -> News:
        """Hand the task over, with the files of its run where they are copied; lay down what comes back."""
        ray, ticket = self._executor.ray, uuid.uuid4().hex
        sent = None if packer is None else replace(packer.pack(), openings=[])
        self._out = member, ticket
        try:
            if self._stopping.is_set():
                raise Stopped
            for told in member.actor.work.options(num_returns="streaming").remote(ticket, self._task, sent):
                news: News = ray.get(told)
                if news.parcel is not None:
                    unpack(news.parcel, self._task.path)
                if news.ended:
                    return news
        except ray.exceptions.RayTaskError as error:                # of nearkin on the node: elsewhere it is the same
            raise NearkinError(_reason(error)) from None
        except ray.exceptions.RayError as error:
            raise Lost(_reason(error)) from None
        finally:
            self._out = None
        raise Lost("it ended without a word")

    def _seen_by(self, member: Member) -> bool:
        token = uuid.uuid4().hex
        file = self._task.path / f".{token}"
        self._task.path.mkdir(parents=True, exist_ok=True)
        file.write_text(token)
        try:
            return self._executor.ray.get(member.actor.sees.remote(str(file), token))
        except self._executor.ray.exceptions.RayError as error:
            raise Lost(_reason(error)) from None
        finally:
            file.unlink(missing_ok=True)


def _reason(error: Exception) -> str:
    """What Ray says, short: its first line, or of an error that a worker raised, the last."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1 if "Traceback" in str(error) or "ray::" in lines[0] else 0][:300]
