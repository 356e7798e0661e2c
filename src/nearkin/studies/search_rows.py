"""The searches of a study carried out and followed."""

from collections.abc import Callable
from typing import Any

from nearkin.evaluation.metrics.base import unit_of
from nearkin.present import Column, Table
from nearkin.runs.prepare import Data
from nearkin.runs.store import Store
from nearkin.studies.cells import Study
from nearkin.studies.propose import RUNNING
from nearkin.studies.scheduler import Executor, Look, schedule
from nearkin.studies.search import searches_of
from nearkin.studies.searching import Searching, searching
from nearkin.studies.trials import Ledger
from nearkin.units import COUNT, SECONDS, counted


def search_rows(
    study: Study,
    store: Store,
    executor: Executor,
    storage: str | None,
    known: dict[str, Data],
    watch: Callable[["SearchProgress"], Any],
) -> list[Ledger]:
    """Carry out the searches of a study's rows; one ledger of trials for each.

    Parameters:
        study: the study.
        store: where the runs of trials are.
        executor: who carries them out.
        storage: URL of the database of trials; None: tune.db in the study's folder.
        known: remembers data that were read.
        watch: called again and again with how far they are.
    """
    under_way = searching(searches_of(study, known), store, storage, known=known, workers=executor.workers)
    progress = SearchProgress(under_way)
    try:
        for look in schedule(executor, under_way.tasks()):
            under_way.note(look)
            progress.look = look
            watch(progress)
    finally:
        under_way.release()
    under_way.check_all_carried_out()
    return under_way.ledgers


class SearchProgress:
    """How far the searches of a study are.

    Parameters:
        searching: the searches.
    """

    def __init__(self, searching: Searching):
        self.searching, self.look = searching, Look()
        self._reported = {ledger.name: -1 for ledger in searching.ledgers}

    def table(self) -> Table:
        """How far every search is, what is best so far, and the time left."""
        running = {task.path for task in self.look.running}
        rows = []
        for ledger in self.searching.ledgers:
            trials = [trial for trial in self.searching.open if trial.ledger is ledger]
            here = sum(run.path in running for trial in trials for run in trial.runs)
            first = ledger.best()
            rows.append([ledger.search.name, _ended(ledger), here, None if first is None else first.score])
        left = self.searching.left()
        title = "searching" if left is None else f"searching; about {SECONDS.text(left)} left"
        numbers = [Column("trials done", unit=COUNT), Column("running here", unit=COUNT)]
        best = Column("best validation", unit=unit_of(self.searching.ledgers[0].search.select))
        return Table("searching", ["row", *numbers, best], rows, title)

    def ended(self) -> list[str]:
        """A line for each search in which a trial has ended since the last call."""
        lines = []
        for ledger in self.searching.ledgers:
            count = _ended(ledger)
            if count > self._reported[ledger.name]:
                self._reported[ledger.name] = count
                best, unit = ledger.best(), unit_of(ledger.search.select)
                so_far = "" if best is None else f", best {unit.text(best.score)} {unit.mark}".rstrip()
                lines.append(f"{ledger.search.name}: {counted(count, 'trial')}{so_far}")
        return lines


def _ended(ledger: Ledger) -> int:
    return sum(trial.state != RUNNING for trial in ledger.trials())
