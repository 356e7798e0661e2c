"""Searches on their way: trials are claimed, their runs carried out by an executor, their results told."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from nearkin.errors import NearkinError
from nearkin.evaluation.metrics.base import metric_of
from nearkin.runs.log import read_log
from nearkin.runs.prepare import Data, prepare
from nearkin.runs.store import Run, Store
from nearkin.studies.executors import Executor, Task, Working
from nearkin.tuning.ledger import RUNNING, Claim, Ledger, open_storage
from nearkin.tuning.plan import Search
from nearkin.tuning.propose import planned

POLL = 0.2
AGAIN = 2                                       # times that a trial is carried on with after its worker has died


@dataclass
class Piece:
    """One run of a trial: that of one fold."""

    claim: Claim
    ledger: Ledger
    run: Run
    task: Task
    working: Working | None = None
    worker: int = 0
    error: str | None = None
    over: bool = False


@dataclass
class Searching:
    """The searches of a study while they are carried out.

    Parameters:
        ledgers: one for each search.
        store: where the runs of trials are.
    """

    ledgers: list[Ledger]
    store: Store
    pieces: list[Piece] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    ended_here: int = 0                                             # trials, since it began
    known: dict[str, Data] = field(default_factory=dict)            # data that were read
    again: dict[str, int] = field(default_factory=dict)             # trials whose worker died, and how often

    def run(self, executor: Executor) -> Iterable["Searching"]:
        """Carry out all trials that are left; yields after every look at what is under way."""
        try:
            while True:
                self._collect()
                self._fill(executor)
                yield self
                working = [piece.working for piece in self.pieces if piece.working is not None]
                if not self.pieces and all(ledger.over() for ledger in self.ledgers):
                    return
                if working:
                    executor.wait(working, POLL)
                else:                                               # others have what is left
                    time.sleep(POLL)
        finally:
            for piece in self.pieces:
                if piece.working is not None:
                    piece.working.stop()
                piece.claim.lock.release()

    def _fill(self, executor: Executor) -> None:
        """Give every free worker a run: of a claimed trial, else of a newly claimed one."""
        while True:
            busy = {piece.worker for piece in self.pieces if piece.working is not None}
            if len(busy) >= executor.workers:
                return
            waiting = [piece for piece in self.pieces if piece.working is None and not piece.over]
            if not waiting:
                if not self._claim():
                    return
                continue
            piece = waiting[0]
            piece.worker = min(set(range(executor.workers)) - busy)
            piece.working = executor.start(piece.task, piece.worker)

    def _claim(self) -> bool:
        """A trial of the search that has the fewest."""
        for ledger in sorted(self.ledgers, key=lambda each: len(each.trials())):
            claim = ledger.claim()
            if claim is None:
                continue
            try:
                specs = ledger.search.specs_with(claim.values)
                prepared = [prepare(spec, self.known) for spec in specs]
            except NearkinError as error:
                ledger.fail(claim, str(error))
                return True
            until = ledger.search.rungs[claim.rung]
            for spec, each in zip(specs, prepared, strict=True):
                run = self.store.run(each.hash)
                last = until == ledger.search.rungs[-1]
                task = Task(spec.whole(), run.path, until=None if last else until)
                self.pieces.append(Piece(claim, ledger, run, task))
            return True
        return False

    def _collect(self) -> None:
        """What became of the runs; a trial whose runs are all over is told."""
        for piece in self.pieces:
            if piece.working is not None and not piece.working.alive:
                piece.error, piece.working, piece.over = piece.working.ended(), None, True
        for claim in {id(p.claim): p.claim for p in self.pieces}.values():
            own = [piece for piece in self.pieces if piece.claim is claim]
            if not all(piece.over for piece in own):
                continue
            ledger = own[0].ledger
            errors = [piece.error for piece in own if piece.error]
            if any(died(error) for error in errors) and self.again.get(claim.values_key, 0) < AGAIN:
                self.again[claim.values_key] = self.again.get(claim.values_key, 0) + 1
                claim.lock.release()                                # nothing was wrong with its settings: once more
                self.pieces = [piece for piece in self.pieces if piece.claim is not claim]
                continue
            scores = [score_at(p.run, ledger.search.select, ledger.search.rungs[claim.rung]) for p in own]
            if errors or None in scores:
                ledger.fail(claim, errors[0] if errors else "its runs have no validation result")
            else:
                ledger.report(claim, sum(scores) / len(scores), [piece.run.hash for piece in own])  # type: ignore[arg-type]
            self.pieces = [piece for piece in self.pieces if piece.claim is not claim]
            self.ended_here += 1

    def left(self) -> float | None:
        """Seconds until all is done, from what was done since it began; None while nothing can be said."""
        done, elapsed = self.ended_here, time.monotonic() - self.began
        trials = [ledger.trials() for ledger in self.ledgers]
        ended = sum(t.state != RUNNING for each in trials for t in each)
        all_of_it = sum(planned(ledger.search) for ledger in self.ledgers)
        return (all_of_it - ended) * elapsed / done if done else None


def died(error: str) -> bool:
    """Did a worker die, as by the system's want of memory? Then its run said nothing."""
    return error.startswith("the worker ended with exit code")


def searching(searches: list[Search], store: Store, storage: str | None = None) -> Searching:
    """The searches of a study in their storage: by default tune.db in the study's folder."""
    folder = store.root / "studies" / searches[0].study
    (folder / "trials").mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "trials" / "storage.lock"):              # two that begin at once would both make its tables
        opened = open_storage(storage or default_storage(store, searches[0].study))
    ledgers = [Ledger(search, opened, folder / "trials", lower=lower(search.select)) for search in searches]
    return Searching(ledgers, store)


def default_storage(store: Store, study: str) -> str:
    """The URL of the SQLite file of a study's searches."""
    file = (store.root / "studies" / study / "tune.db").resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{file}"


def lower(select: str) -> bool:
    """Is a metric better when it is low?"""
    return metric_of(select).sign < 0


def score_at(run: Run, select: str, epoch: int) -> float | None:
    """The best validation result of a run up to an epoch; None where it has none."""
    if run.final and run.read_json("final.json")["epochs_trained"] <= epoch:
        return run.read_json("final.json")["validation"].get(select)
    lines = [line for line in read_log(Path(run.path) / "log.jsonl") if line.get("epoch_end", epoch + 1) <= epoch]
    found = [line["validation"][select] for line in lines if select in line.get("validation", {})]
    return None if not found else min(found) if lower(select) else max(found)


def epochs_saved(ledger: Ledger) -> tuple[int, int]:
    """Epochs that were trained of one search's trials, and those that all of them would have taken."""
    search = ledger.search
    reached = [search.rungs[len(t.scores) - 1] if t.scores else 0 for t in ledger.trials()]
    return sum(reached) * len(search.specs), len(reached) * search.rungs[-1] * len(search.specs)

