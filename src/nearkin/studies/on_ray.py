"""Runs on the machines of a cluster, by Ray.

    with RayExecutor(address="10.0.0.1:6379") as executor:
        working = executor.start(Task(spec.whole(), store.run(name).path), worker=0)

A worker is an actor with a core and, where there are any, a GPU (node.py); it serves one run after another. Where it
sees the caller's store, a run is trained there. Elsewhere it is trained in a folder of the worker's own, and its files
come back every few minutes and at the end (parcels.py); meanwhile the caller holds the run's lock. A worker that is
lost is replaced, wherever there is room, and the run goes on from the files that came back last.
"""

import atexit
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from nearkin.studies.cluster import Watch, join
from nearkin.studies.errand import Lost, Member, RayTask, Stopped, reason
from nearkin.studies.executors import Executor, Task, Working
from nearkin.studies.node import Node, differing, versions


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
        self._change = threading.Condition()                        # a task has ended
        self._pool = threading.Lock()                               # of those who wait for Ray; wait() never does
        self._started: list[RayTask] = []
        self._known_nodes: set[str] = set()
        self._idle = [self._new(int(self.has_gpus)) for _ in range(self.workers)]    # they import torch meanwhile

    def start(self, task: Task, worker: int) -> RayTask:
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
            atexit.unregister(self.ray.shutdown)                    # it would wait for the head
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
                with self._pool:                                    # of those that wait for room, one that has it
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
        with self._pool:
            for other in [each for each in self._idle if each.gpus != gpus]:         # it may hold what this one needs
                self._idle.remove(other)
                self.drop(other)
            if not self._idle:
                return self._new(gpus)
            return self._idle.pop(next((i for i, each in enumerate(self._idle) if self._arrived(each)), 0))

    def _give_back(self, member: Member) -> None:
        with self._pool:
            self._idle.append(member)

    def _arrived(self, member: Member) -> bool:
        return bool(member.about) or bool(self.ray.wait([member.coming], timeout=0)[0])

    def _is_there(self, member: Member) -> bool:
        """Has it told of itself? Its versions are compared with these, once for each node."""
        if not member.about and self._arrived(member):
            try:
                member.about = self.ray.get(member.coming)
            except self.ray.exceptions.RayError as error:
                raise Lost(reason(error)) from None
            if (other := differing(versions(), member.about)) and member.about["node"] not in self._known_nodes:
                self.say(f"node {member.about['node']} has {other}: numbers may differ")
            self._known_nodes.add(member.about["node"])
        return bool(member.about)
