"""A study on its way: its runs planned, carried out and followed."""

from collections.abc import Callable, Sequence
from typing import Any

from nearkin.errors import NearkinError
from nearkin.present import Column, Shown, Table
from nearkin.runs import listing
from nearkin.runs.prepare import Data
from nearkin.runs.store import Store
from nearkin.studies import runner
from nearkin.studies.cells import Study
from nearkin.studies.pace import Pace, seconds_per_batch
from nearkin.studies.runner import Job
from nearkin.studies.scheduler import Executor, schedule
from nearkin.units import SECONDS, SHARE, counted


def planned(study: Study, store: Store, part: str | None = None, known: dict[str, Data] | None = None) -> list[Job]:
    """The runs of a study. When none of them can begin, that is the error.

    Parameters:
        study: the study.
        store: where its runs are.
        part: as 3/16: all others are left to other processes.
        known: remembers data that were read.
    """
    jobs = runner.jobs_of(study, store, known)
    reasons = {job.error for job in jobs}
    if len(reasons) == 1 and (reason := reasons.pop()) is not None:  # one line says it all
        raise NearkinError(reason)
    if part is not None:
        runner.take_part(jobs, part)
    return jobs


def carry_out(
    study: Study, jobs: list[Job], store: Store, executor: Executor, watch: Callable[["RunsProgress"], Any]
) -> None:
    """Run what is not stored of a study, and note in its study.json what became of it.

    Parameters:
        study: the study.
        jobs: its runs, as `planned` gives them.
        store: where they are.
        executor: who carries them out.
        watch: called again and again with how far they are.
    """
    runner.write_study(study, jobs, store)
    progress = RunsProgress(jobs, executor.workers)
    for look in schedule(executor, runner.tasks_of(jobs)):
        runner.note(jobs, look)
        watch(progress)
    runner.write_study(study, jobs, store)  # with what has failed, and why


class RunsProgress:
    """How far the runs of a study are.

    Parameters:
        jobs: the runs.
        workers: how many go at a time.
        after: work that comes after them, in batches.
    """

    def __init__(self, jobs: Sequence[Job], workers: int, after: float = 0.0):
        self.jobs, self.pace, self.after = jobs, Pace(workers), after
        self._one_seed = len({job.cell.seed for job in jobs}) == 1
        self._reported: set[str] = set()

    def table(self) -> Table:
        """What runs now, how far everything is, and the time left."""
        rows = []
        for job in self.jobs:
            if job.running:
                last = job.watched()
                at = listing.place(last.get("epoch", last.get("epoch_end", "?")), last.get("epochs", "?"))
                rows.append([name_of(job, seed=False), job.cell.seed, at, last.get("loss"), job.best])
        seed = Column("seed", hidden=self._one_seed)
        best = Column("best", "best validation recall@1", SHARE)
        return Table("runs", ["running", seed, "epoch", "loss", best], rows, self.place())

    def place(self) -> str:
        """How many runs are done, and the time left."""
        done, failed = (sum(job.state == state for job in self.jobs) for state in ("done", "failed"))
        alone = [job for job in self.jobs if job.same is None and job.part and job.error is None]
        worked, work = (sum(getattr(job, what) for job in alone) for what in ("worked", "work"))
        left = self.pace.left(worked, work + self.after) if worked < work else None
        words = f"{done} of {counted(len(self.jobs), 'run')} done" + (f", {failed} failed" if failed else "")
        return words + ("" if left is None else f"; about {SECONDS.text(left)} left")

    def ended(self) -> list[str]:
        """The runs that have ended since the last call."""
        news = {
            name_of(job, seed=not self._one_seed): job.state for job in self.jobs if job.state in ("done", "failed")
        }
        lines = [f"{state}: {name}" for name, state in news.items() if name not in self._reported]
        self._reported |= news.keys()
        return lines


def name_of(job: Job, *, seed: bool = True) -> str:
    """A run of a study in words: its labels, seed and fold."""
    fold = [] if job.cell.fold is None else [f"fold {job.cell.fold}"]
    return " ".join([*job.cell.labels, *([f"seed {job.cell.seed}"] if seed else []), *fold])


def failures(jobs: Sequence[Job], word: str = "failed") -> list[str]:
    """Why runs have failed, each reason once."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        if job.error is not None:
            groups.setdefault(job.error, []).append(job)
    lines = []
    for reason, group in groups.items():
        note = group[0].run.path / "error.txt"
        more = f" (all of it: {note})" if note.exists() else ""
        also = f" and {len(group) - 1} more" if len(group) > 1 else ""
        lines.append(f"{word}: {name_of(group[0])}{also}: {reason}{more}")
    return lines


class Estimate(Shown):
    """The runs of a study, what is stored of each, and the time that the rest takes.

    Parameters:
        jobs: its runs.
        store: where they are.
        workers: how many would go at a time.
        watch: called with a line before steps are tried, which takes its time.
    """

    def __init__(self, jobs: list[Job], store: Store, workers: int, watch: Callable[[str], None]):
        self.jobs, self.workers = jobs, workers
        costs: dict[str, float] = {}
        self.seconds: list[float | None] = []
        for job in jobs:
            seconds = None
            if job.state == "waiting":
                spec = job.spec
                assert spec is not None  # else it was refused
                key = f"{spec.model.backbone} {spec.model.cut} {spec.data} {spec.train.batch}"
                if key not in costs:
                    watch(f"trying a few steps of {name_of(job)} ...")
                    costs[key] = seconds_per_batch(spec, job.data_hash, store)
                seconds = job.work * costs[key]
            self.seconds.append(seconds)

    @property
    def tables(self) -> list[Table]:
        """One row per run."""
        rows = []
        for job, seconds in zip(self.jobs, self.seconds, strict=True):
            state = "begun" if job.state == "waiting" and job.run.begun else job.state
            rows.append([name_of(job), job.run.hash, "same run as above" if job.same else state, seconds])
        return [Table("plan", ["run", "hash", "state", Column("seconds", "time", SECONDS)], rows)]

    @property
    def below(self) -> list[str]:
        """The time of all runs together."""
        total = sum(seconds for seconds in self.seconds if seconds is not None)
        wait = f"{SECONDS.text(total / self.workers)} with {counted(self.workers, 'worker')}"
        return [f"{counted(len(self.jobs), 'run')}; about {SECONDS.text(total)} of work, {wait}"]
