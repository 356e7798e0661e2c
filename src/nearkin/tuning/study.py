"""A study from its plan to its table: rows searched where it asks for that, its runs carried out, tuned rows judged."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

from nearkin.comparison.gather import gather
from nearkin.config.parse import parse_words
from nearkin.errors import NearkinError
from nearkin.present import Shown, Table, check_ending
from nearkin.runs.prepare import Data
from nearkin.runs.store import Store
from nearkin.storage import check_writable
from nearkin.studies import summary
from nearkin.studies.carry_out import Estimate, RunsProgress, carry_out, planned
from nearkin.studies.cells import Study
from nearkin.studies.executors import executor_of, following
from nearkin.studies.grid import read_study
from nearkin.studies.runner import Job
from nearkin.studies.scheduler import Executor
from nearkin.studies.search import searches_of
from nearkin.studies.search_rows import SearchProgress, search_rows
from nearkin.studies.searching import searching
from nearkin.studies.trials import Ledger
from nearkin.tuning import _tables, _tuned
from nearkin.units import counted

Watch = Callable[[RunsProgress | SearchProgress | Table], Any]


class Studied(Shown):
    """A study that was carried out: its table, what tuning was worth, and the files that have the table.

    Parameters:
        study: the study, with its tuned rows.
        jobs: its runs.
        store: where they are.
        target: the file of the table; every run's values are beside it.
    """

    def __init__(self, study: Study, jobs: list[Job], store: Store, target: Path):
        self.study, self.jobs, self.store = study, jobs, store
        self.rows = summary.rows_of(study, jobs, store.root / "studies" / study.name / "joined")
        self.files = summary.write_summary(study, self.rows, jobs, target)

    @cached_property
    def tables(self) -> list[Table]:
        """One row per place on the axes, best validation first, one table per data set; and tuned less default on the
        test."""
        shown = summary.tables_of(self.study, self.rows)
        if self.study.tune is not None:
            gains = _tuned.gains_of(gather([self.study.name], self.store.root), self.study.asked_on())
            shown += [_tables.gains_table(gains)] if gains else []
        return shown

    @property
    def below(self) -> list[str]:
        """Where table and runs are, and how many runs were left to another call."""
        lines = [f"table: {', '.join(map(str, self.files))}; runs: {self.store.root}/"]
        if elsewhere := sum(job.state == "elsewhere" for job in self.jobs):
            lines.append(f"{counted(elsewhere, 'run')} left to another call; the table has what is stored")
        return lines


def study(
    file: Path | str | Mapping[str, Any],
    words: str | Mapping[str, Any] = "",
    *,
    runs: Path | str = "runs",
    workers: int | None = None,
    ray: str | None = None,
    table: Path | str | None = None,
    part: str | None = None,
    tune_only: bool = False,
    trials: int | None = None,
    storage: str | None = None,
    watch: Watch | None = None,
) -> Studied:
    """Run what is not stored yet of a grid of runs; the result is a table of means and deviations over seeds.

    With `tune` in the file, or with `trials`, the settings of every row are searched first, on validation classes;
    tuned rows stand beside the default ones, with fresh seeds, tested once.

    Parameters:
        file: the YAML file of a study (base, axes, seeds), or the same as a tree with a `name`.
        words: settings over its base: one string, as "root=DIR epochs=2", or a mapping.
        runs: the folder of the stored runs.
        workers: runs at a time, one thread each; None: 1, or all that Ray has.
        ray: the address of a Ray cluster, HOST:PORT, or auto for the local one; None: without Ray.
        table: the file of the table: .csv, .md or .tex; None: NAME.csv in the store.
        part: as 3/16: all other runs are left to other processes.
        tune_only: only the search and its tuned rows, not the default ones.
        trials: how many trials every row is searched with; None: as the file says.
        storage: URL of the database of trials; None: tune.db in the study's folder.
        watch: called again and again with how far it is; None: progress is shown on stderr.

    Example:
        grid = {"name": "mine", "base": {"dataset": "glyphs"}, "axes": {"loss": ["margin", "triplet"]}}
        print(nearkin.study(grid, workers=2))
    """
    asked = {} if trials is None else {"trials": trials}
    settings = parse_words(shlex.split(words)) if isinstance(words, str) else words
    made = read_study(file, settings, asked if asked or tune_only else None)
    with nullcontext(watch) if watch else following() as shown:
        return run_study(
            made,
            Store(runs),
            lambda: executor_of(workers, ray),
            target=None if table is None else Path(table),
            part=part,
            tune_only=tune_only,
            storage=storage,
            watch=shown,
        )


def run_study(
    study: Study,
    store: Store,
    executor: Callable[[], Executor],
    *,
    target: Path | None = None,
    part: str | None = None,
    tune_only: bool = False,
    storage: str | None = None,
    watch: Watch = lambda progress: None,
) -> Studied:
    """Run what is not stored yet of a study. With `tune`, its rows are searched first, and tuned rows stand beside the
    default ones.

    Parameters:
        study: the study.
        store: where its runs are.
        executor: makes who carries them out, once everything is known to be in order.
        target: the file of the table; None: NAME.csv in the store, NAME-tuned.csv of tuned rows alone.
        part: as 3/16: all other runs are left to other processes.
        tune_only: only the search and its tuned rows, not the default ones.
        storage: URL of the database of trials; None: tune.db in the study's folder.
        watch: called again and again with how far it is, and once with the table of what the search found.
    """
    target = target or store.root / f"{study.name}{'-tuned' if tune_only else ''}.csv"
    check_ending(target)
    check_writable(target)
    if study.tune is not None and part is not None:
        raise NearkinError(f"part {part}: a study with tune searches first; a Ray cluster spreads all of it")
    known: dict[str, Data] = {}  # data that were read
    with executor() as workers:  # it gets ready while the data are read
        if study.tune is not None:
            ledgers = search_rows(study, store, workers, storage, known, watch)
            watch(_tables.found_table(ledgers))
            study = tuned_study(study, ledgers)
        jobs = planned(study, store, part, known)
        if tune_only:
            leave_default_rows(jobs)
        carry_out(study, jobs, store, workers, watch)
    return Studied(study, jobs, store, target)


def tuned_study(study: Study, ledgers: Sequence[Ledger]) -> Study:
    """The study with its tuned rows beside the default ones."""
    bests = _tuned.bests_of(ledgers)
    if not any(best.trial for best in bests):
        errors = [trial.error for ledger in ledgers for trial in ledger.trials() if trial.error]
        raise NearkinError(f"no trial could be trained: {errors[0] if errors else 'none has a validation result'}")
    return _tuned.with_tuned(study, bests)


def leave_default_rows(jobs: Sequence[Job]) -> None:
    """Leave rows that are neither tuned nor baselines to another call."""
    for job in jobs:
        job.part = False
    for job in jobs:
        if job.cell.baseline is not None or job.cell.trials > 0:
            (job.same or job).part = True  # the best settings may be the default ones


class Plan(Estimate):
    """What a study would run and search, and how long its runs take.

    Parameters:
        study: the study.
        store: where its runs are.
        workers: how many would go at a time.
        part: as 3/16: all other runs are left to other processes.
        watch: called with a line before steps are tried, which takes its time.
    """

    def __init__(self, study: Study, store: Store, workers: int, part: str | None, watch: Callable[[str], None]):
        known: dict[str, Data] = {}
        super().__init__(planned(study, store, part, known), store, workers, watch)
        self.searches = [] if study.tune is None else searches_of(study, known)

    @property
    def tables(self) -> list[Table]:
        """One row per run; and the settings that would be searched."""
        return [*super().tables, *([_tables.plan_table(self.searches)] if self.searches else [])]


class Searched(Shown):
    """What is stored of a study's searches.

    Parameters:
        study: the study.
        store: where it is.
        storage: URL of the database of trials; None: tune.db in the study's folder.
    """

    def __init__(self, study: Study, store: Store, storage: str | None = None):
        self.folder = store.root / "studies" / study.name
        if storage is None and not (self.folder / "tune.db").exists():
            raise NearkinError(f"study {study.name} was not searched in {store.root}: `nearkin study` begins it")
        self.ledgers = searching(searches_of(study), store, storage).ledgers

    @property
    def tables(self) -> list[Table]:
        """The best values of every row, every trial, and which settings mattered."""
        importance = _tables.importance_table(self.ledgers)
        trials = [_tables.trials_table(ledger) for ledger in self.ledgers]
        return [_tables.found_table(self.ledgers), *trials, *([] if importance is None else [importance])]

    def draw(self, path: Path | None = None) -> Path:
        """Draw every trial and the best so far into a PNG; by default tune.png in the study's folder."""
        path = path or self.folder / "tune.png"
        _tables.history_chart(self.ledgers).save(path.with_suffix(""), (path.suffix,))
        return path
