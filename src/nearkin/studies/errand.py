"""One task on its way over a cluster: handed to a worker, its files laid down as they come back, begun elsewhere when
the worker is lost."""

import threading
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nearkin.errors import NearkinError
from nearkin.runs.run import Run, RunLocked
from nearkin.studies.executors import Task, Working
from nearkin.studies.node import News
from nearkin.studies.parcels import Packer, unpack

if TYPE_CHECKING:
    from nearkin.studies.on_ray import RayExecutor

RETRIES = 3                         # times that a run is begun elsewhere
SIGNS = {                           # what stands in errors of Ray's -> what it means
    "OutOfMemory": "the node ran out of memory", "node has died": "the node died", "NodeDied": "the node died",
    "ActorDied": "it died", "ActorUnavailable": "it no longer answers",
}  # fmt: skip


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


class RayTask(Working):
    """A task on a cluster: a thread that waits for a worker, hands it over, and lays down what comes back."""

    def __init__(self, executor: "RayExecutor", task: Task):
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
                    raise NearkinError(f"{times} workers of run {name} were lost, the last on {node}: {lost}") from None
                self._executor.say(f"run {name} lost its worker on {node}, {lost}; it goes on elsewhere")
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
            raise NearkinError(reason(error)) from None
        except ray.exceptions.RayError as error:
            raise Lost(reason(error)) from None
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
            raise Lost(reason(error)) from None
        finally:
            file.unlink(missing_ok=True)


def reason(error: Exception) -> str:
    """What Ray says, in a few words; of an error that a worker raised, the last line."""
    for sign, words in SIGNS.items():
        if sign in f"{type(error).__name__} {error}":
            return words
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1 if "Traceback" in str(error) or "ray::" in lines[0] else 0][:300]
