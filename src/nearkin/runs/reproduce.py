"""`nearkin.reproduce`: train a stored run again, and compare."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nearkin.errors import NearkinError
from nearkin.runs.environment import environment
from nearkin.runs.events import Watch
from nearkin.runs.fit import train
from nearkin.runs.prepare import prepare
from nearkin.runs.store import Run, Store

TOLERANCE = 0.01                    # of a metric, on another machine: other processors round otherwise
SAME = ("python", "versions", "platform", "cpu", "threads")


@dataclass(frozen=True)
class Reproduced:
    """A run, and the same run trained again."""

    run: Run
    again: Run
    differs: dict[str, tuple[Any, Any]]     # of machine and versions: what it was then, what it is now
    same_bits: bool                         # every weight and every test embedding
    metrics: dict[str, tuple[float, float]]     # test metric -> stored, again

    @property
    def ok(self) -> bool:
        """Equal bits on the machine that it was trained on; elsewhere metrics that differ by at most TOLERANCE."""
        return self.same_bits or (bool(self.differs) and bool(self.metrics) and self.largest <= TOLERANCE)

    @property
    def largest(self) -> float:
        """The largest difference of a metric."""
        return max((abs(now - then) for then, now in self.metrics.values()), default=0.0)


def reproduce(run: str | Path | Run, *, runs: Path | str = "runs", watch: Watch = lambda entry: None) -> Reproduced:
    """Train a stored run again from its spec and compare weights, embeddings and metrics.

    It is trained with as many threads as it was, into `RUNS/reproductions`; interrupted, the same call goes on.

    Parameters:
        run: a run, or its path, its hash or the beginning of its hash.
        runs: the folder of the stored runs.
        watch: called with every entry of the log.

    Example:
        nearkin.reproduce("3f2a").ok
    """
    stored = run if isinstance(run, Run) else Store(runs).find(str(run))
    if not stored.done:
        raise NearkinError(f"run {stored.hash} is not finished: there is nothing to compare with")
    then = stored.read_json("environment.json")
    if len(sessions := {session.get("threads") for session in then.get("sessions", [])}) > 1:
        turns = ", ".join(str(number) for number in sessions)
        raise NearkinError(f"run {stored.hash} was trained with {turns} threads in turn: no one number repeats it")
    spec = stored.spec
    if (name := prepare(spec).hash) != stored.hash:
        raise NearkinError(
            f"run {stored.hash} would be run {name} today: the data, or what its settings mean, have changed since "
            f"commit {then.get('commit') or 'unknown'}"
        )
    store = Store(stored.path.parent / "reproductions")
    if store.run(stored.hash).done:                                 # of an earlier call: what it proved, it proved then
        store.remove(store.run(stored.hash))
    with threads(then.get("threads")):
        now = environment()
        again = train(spec, runs=store.root, watch=watch)
    differs = {key: (then.get(key), now[key]) for key in SAME if then.get(key) != now[key]}
    metrics = {key: (value, again.metrics()[key]) for key, value in stored.metrics().items() if key in again.metrics()}
    return Reproduced(stored, again, differs, _same_bits(stored, again), metrics)


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
    with np.load(one.path / "embeddings.npz") as a, np.load(other.path / "embeddings.npz") as b:
        return np.array_equal(a["embeddings"], b["embeddings"])
