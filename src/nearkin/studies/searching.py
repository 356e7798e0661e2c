"""Searches on their way: the runs of their trials, as the scheduler asks for them, and what became of these."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from nearkin.errors import NearkinError
from nearkin.evaluation.metrics.base import metric_of
from nearkin.runs.log import read_log
from nearkin.runs.names import run_of
from nearkin.runs.prepare import Data, prepare
from nearkin.runs.store import Run, Store
from nearkin.studies.pace import Pace
from nearkin.studies.propose import RUNNING, planned
from nearkin.studies.scheduler import Ended, Look, Task
from nearkin.studies.search import Search
from nearkin.studies.trials import Claim, Ledger, open_storage


@dataclass
class Open:
    """A trial that this process has claimed: the runs of its folds, and what became of them."""

    claim: Claim
    ledger: Ledger
    runs: list[Run]
    tasks: list[Task]
    ended: list[Ended] = field(default_factory=list)


class Searching:
    """The searches of a study while they are carried out: `tasks` for the scheduler, `note` for what it saw.

    Parameters:
        ledgers: one for each search.
        store: where the runs of trials are.
        known: remembers data that were read.
        workers: runs at a time, for the time that is left.
    """

    def __init__(self, ledgers: list[Ledger], store: Store, known: dict[str, Data] | None = None, workers: int = 1):
        self.ledgers, self.store = ledgers, store
        self.known: dict[str, Data] = {} if known is None else known
        self.open: list[Open] = []
        self.passing: dict[str, str] = {}  # ledgers with a trial that failed, but not for good
        self._pace = Pace(workers)

    def tasks(self) -> Iterator[Task | None]:
        """Runs of claimed trials; None while all that is left is with other processes, or waits for what is under
        way. Ends when all trials have."""
        waiting: list[Task] = []
        while True:
            if waiting:
                yield waiting.pop(0)
            elif (tasks := self._claimed()) is not None:
                waiting += tasks
            elif not self.open and all(self._over(ledger) for ledger in self.ledgers):
                return
            else:
                yield None

    def _over(self, ledger: Ledger) -> bool:
        """Is there nothing more that this process can do for a search?"""
        return ledger.name in self.passing or ledger.over()

    def _claimed(self) -> list[Task] | None:
        """The runs of a newly claimed trial, of the search that has the fewest; None where there is none."""
        for ledger in sorted(self.ledgers, key=lambda ledger: len(ledger.trials())):
            claim = None if ledger.name in self.passing else ledger.claim()
            if claim is None:
                continue
            search = ledger.search
            try:
                specs = search.specs_with(claim.values)
                runs = [run_of(self.store, prepare(spec, self.known)) for spec in specs]
            except NearkinError as error:  # values that do not go together
                ledger.fail(claim, str(error))
                return []
            until = search.rungs[claim.rung] if claim.rung + 1 < len(search.rungs) else None
            tasks = [Task(spec.whole(), run.path, until=until) for spec, run in zip(specs, runs, strict=True)]
            self.open.append(Open(claim, ledger, runs, tasks))
            return list(tasks)
        return None

    def note(self, look: Look) -> None:
        """Take down what ended; a trial all of whose runs have ended is told to its ledger."""
        for ended in look.ended:
            (trial,) = [trial for trial in self.open if any(task is ended.task for task in trial.tasks)]
            trial.ended.append(ended)
            if len(trial.ended) == len(trial.tasks):
                self.open.remove(trial)
                self._close(trial)

    def _close(self, trial: Open) -> None:
        ledger, claim, search = trial.ledger, trial.claim, trial.ledger.search
        failures = [ended.failure for ended in trial.ended if ended.failure is not None]
        passing = [failure.why for failure in failures if failure.passing and not failure.killed]
        if passing:  # nothing is wrong with its settings
            self.passing[ledger.name] = passing[0]
            claim.lock.release()
            return
        if failures:
            ledger.fail(claim, failures[0].why)
            return
        scores = [score_at(run, search.select, search.rungs[claim.rung]) for run in trial.runs]
        known = [score for score in scores if score is not None]
        if len(known) < len(scores):
            ledger.fail(claim, "its runs have no validation result")
        else:
            ledger.report(claim, sum(known) / len(known), [run.hash for run in trial.runs])

    def release(self) -> None:
        """Leave open trials to the next process."""
        for trial in self.open:
            trial.claim.lock.release()
        self.open = []

    def check_all_carried_out(self) -> None:
        """An error where a search could not come to its end now."""
        for name, why in self.passing.items():
            raise NearkinError(f"search {name} stopped: {why}; the same command continues it")

    def left(self) -> float | None:
        """Seconds until all is done, from what was done since it began; None while nothing can be said."""
        ended = sum(t.state != RUNNING for ledger in self.ledgers for t in ledger.trials())
        return self._pace.left(ended, sum(planned(ledger.search) for ledger in self.ledgers))


def searching(
    searches: list[Search],
    store: Store,
    storage: str | None = None,
    *,
    known: dict[str, Data] | None = None,
    workers: int = 1,
) -> Searching:
    """The searches of a study in their storage: by default tune.db in the study's folder."""
    folder = store.root / "studies" / searches[0].study
    (folder / "trials").mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "trials" / "storage.lock"):  # two that begin at once would both make its tables
        opened = open_storage(storage or f"sqlite:///{(folder / 'tune.db').resolve()}")
    return Searching([Ledger(search, opened, folder / "trials") for search in searches], store, known, workers)


def score_at(run: Run, select: str, epoch: int) -> float | None:
    """The best validation result of a run up to an epoch; None where it has none."""
    if run.final and run.read_json("final.json")["epochs_trained"] <= epoch:
        return run.read_json("final.json")["validation"].get(select)
    lines = [line for line in read_log(Path(run.path) / "log.jsonl") if line.get("epoch_end", epoch + 1) <= epoch]
    values = [line["validation"][select] for line in lines if select in line.get("validation", {})]
    best = min if metric_of(select).sign < 0 else max
    return best(values, default=None)
