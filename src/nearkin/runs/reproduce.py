"""`nearkin.reproduce`: train a stored run again, and compare."""

import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nearkin.consent import consent, import_paths
from nearkin.errors import NearkinError
from nearkin.evaluation.metrics.base import unit_of
from nearkin.present import Column, Shown, Table
from nearkin.runs.environment import environment
from nearkin.runs.events import Watch
from nearkin.runs.fit import train
from nearkin.runs.names import names_of
from nearkin.runs.prepare import prepare
from nearkin.runs.store import Run, Store
from nearkin.runs.test import test
from nearkin.storage import UNREADABLE
from nearkin.units import POINTS

ROUNDING = 1e-9  # of a metric of the same embeddings
TOLERANCE = 0.01  # of a metric, on another machine: other processors round differently
SAME = ("python", "versions", "platform", "cpu", "threads")


@dataclass(frozen=True)
class Reproduced(Shown):
    """A run, and the same run trained again."""

    run: Run
    again: Run
    differs: dict[str, tuple[Any, Any]]  # of machine and versions: what it was then, what it is now
    same_bits: bool  # every weight and every test embedding
    metrics: dict[str, tuple[float, float]]  # test metric -> stored, again
    lacking: tuple[str, ...] = ()  # stored test metrics that could not be measured again

    @property
    def ok(self) -> bool:
        """Equal bits and equal metrics on the machine that it was trained on; elsewhere metrics that differ by at most
        TOLERANCE. Equal embeddings with different metrics mean that one of the results does not belong to its
        embeddings: that never counts as reproduced."""
        if self.same_bits:
            return self.same_metrics
        return bool(self.differs) and bool(self.metrics) and self.largest <= TOLERANCE

    @property
    def same_metrics(self) -> bool:
        """Is every metric the same, to the last digits? Other versions may add up in another order."""
        return all(
            math.isclose(then, now, rel_tol=0, abs_tol=ROUNDING) or (then != then and now != now)
            for then, now in self.metrics.values()
        )

    @property
    def largest(self) -> float:
        """The largest difference of a metric."""
        differences = [abs(now - then) for then, now in self.metrics.values()]
        return math.inf if any(value != value for value in differences) else max(differences, default=0.0)

    @property
    def verdict(self) -> str:
        """Was it reproduced, and how closely, in words."""
        apart = f"a metric differs by {POINTS.text(self.largest)} points"
        if self.same_bits and not self.same_metrics:
            return (
                f"not reproduced: the same weights and embeddings, but {apart}: the stored result is not that of its "
                "embeddings"
            )
        if self.same_bits:
            return "reproduced: every weight and every test embedding is the same, bit for bit"
        if self.ok:
            return f"reproduced: no metric differs by more than {POINTS.text(TOLERANCE, digits=0)} point"
        if self.differs:
            return f"not reproduced: {apart}, more than {POINTS.text(TOLERANCE, digits=0)}"
        return "not reproduced: same machine and versions, other bits"

    @property
    def tables(self) -> list[Table]:
        """Every metric, as it was stored and as it is now."""
        rows = [[key, then, now, now - then, unit_of(key).name] for key, (then, now) in self.metrics.items()]
        difference = Column("difference", digits=2, signed=True)  # however small it is
        columns = ["metric", Column("stored", unit="unit"), Column("again", unit="unit"), difference, "unit"]
        return [Table("reproduced", columns, rows, f"run {self.run.hash} and the same trained again")]

    @property
    def below(self) -> list[str]:
        """The verdict, what differs between the machines, what could not be compared, where it is stored."""
        lines = [self.verdict, *(f"{key} was {then}, is {now}" for key, (then, now) in self.differs.items())]
        if self.lacking:
            lines.append(f"not compared, because it could not be measured again: {', '.join(self.lacking)}")
        return [*lines, f"stored: {self.again.path}"]


def reproduce(
    run: str | Path | Run, *, runs: Path | str = "runs", watch: Watch = lambda entry: None, trust: bool = False
) -> Reproduced:
    """Train a stored run again from its spec and compare weights, embeddings and metrics.

    It is trained with as many threads as it was, into `RUNS/reproductions`; after an interruption the same call
    continues.

    Parameters:
        run: a run, or its path, its hash or the beginning of its hash.
        runs: the folder of the stored runs.
        watch: called with every entry of the log.
        trust: import what the run names by import paths, which runs the code of those modules.

    Example:
        nearkin.reproduce("3f2a").ok
    """
    stored = run if isinstance(run, Run) else Store(runs).find(str(run))
    if not stored.done:
        raise NearkinError(f"run {stored.hash} is not finished: there is nothing to compare with")
    then = stored.read_json("environment.json")
    if len(sessions := {session.get("threads") for session in then.get("sessions", [])}) > 1:
        turns = ", ".join(str(number) for number in sessions)
        raise NearkinError(
            f"run {stored.hash} was trained with {turns} threads in turn: no single number reproduces it"
        )
    if trust:
        consent(import_paths(stored.stored))
    spec = stored.spec
    names = names_of(prepare(spec))
    if stored.hash not in names:
        raise NearkinError(
            f"run {stored.hash} would be run {names[0]} today: the data, or what its settings mean, have changed since "
            f"commit {then.get('commit') or 'unknown'}"
        )
    store = Store(stored.path.parent / "reproductions")
    if store.root.is_symlink():
        target = os.readlink(store.root)
        raise NearkinError(f"{store.root} is a link to {target}: nearkin does not write through links; remove it")
    for before in (store.run(name) for name in names):
        if before.done:  # by an earlier call: it is trained again
            shutil.rmtree(store.remove(before))
    with threads(then.get("threads")):
        now = environment()
        again = train(spec, runs=store.root, watch=watch)
    differs = {key: (then.get(key), now[key]) for key in SAME if then.get(key) != now[key]}
    then_measured, now_measured = stored.metrics(), _measured_again(stored, again)
    metrics = {key: (value, now_measured[key]) for key, value in then_measured.items() if key in now_measured}
    lacking = tuple(key for key in then_measured if key not in metrics)
    return Reproduced(stored, again, differs, _same_bits(stored, again), metrics, lacking)


def _measured_again(stored: Run, again: Run) -> dict[str, float]:
    """All metrics of the run that was trained again which the stored one has, those of further tests included."""
    if missing := [key for key in stored.metrics() if key not in again.metrics()]:
        with suppress(NearkinError):  # a metric that no longer exists
            test(again, metrics=missing)
    return again.metrics()


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Inside, torch computes with this many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _same_bits(one: Run, other: Run) -> bool:
    import numpy as np

    first, second = one.load("model.pt"), other.load("model.pt")
    if first is None or second is None or first["model"].keys() != second["model"].keys():
        return False
    same = all(torch.equal(first["model"][key], second["model"][key]) for key in first["model"])
    if not (same and one.tested and other.tested):
        return same
    paths = [run.file("embeddings.npz") for run in (one, other)]
    try:
        with np.load(paths[0]) as first_file, np.load(paths[1]) as second_file:
            return np.array_equal(first_file["embeddings"], second_file["embeddings"])
    except UNREADABLE as error:
        raise one.damaged(f"embeddings.npz cannot be read ({type(error).__name__})") from error
