"""`nearkin study`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer
from rich.live import Live

from nearkin.cli import tables
from nearkin.cli.options import Ray, Runs, Workers, executor_of
from nearkin.cli.train import resumable
from nearkin.config.parse import parse_words
from nearkin.errors import NearkinError
from nearkin.runs.store import Store
from nearkin.storage import check_writable
from nearkin.studies.export import check_ending
from nearkin.units import SECONDS

if TYPE_CHECKING:
    from nearkin.runs.prepare import Data
    from nearkin.studies.cells import Study
    from nearkin.studies.runner import Job
    from nearkin.studies.scheduler import Executor


def study_command(
    file: Annotated[Path, typer.Argument(help="A study: base, axes, seeds in YAML.")],
    words: Annotated[list[str] | None, typer.Argument(help="key=value words over its base, as root=DIR.")] = None,
    workers: Workers = None,
    ray: Ray = None,
    runs: Runs = Path("runs"),
    part: Annotated[str | None, typer.Option("--part", help="Only a part of the runs, as 3/16.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs and their time; run nothing.")] = False,
    csv: Annotated[
        Path | None, typer.Option("--csv", "--table", help="The table: .csv, .md or .tex; default RUNS/NAME.csv.")
    ] = None,
    storage: Annotated[
        str | None, typer.Option("--storage", help="With tune: the searches' database URL; see nearkin tune.")
    ] = None,
) -> None:
    """Run what is not stored yet of a grid of runs; print mean and standard deviation over seeds."""
    from nearkin.studies import grid

    study = grid.read_study(file, parse_words(words or []))
    target = csv or runs / f"{study.name}.csv"
    check_ending(target)
    check_writable(target)
    store, known = Store(runs), dict[str, "Data"]()  # data that were read
    if dry_run:
        plan(planned(study, store, part, known), store, workers or 1)
        if study.tune is not None:
            plan_search(study, known)
        return
    with resumable(), executor_of(workers, ray) as executor:  # it gets ready while the data are read
        if study.tune is not None:
            if part is not None:
                raise NearkinError(f"--part {part}: a study with tune searches first; --ray spreads all of it")
            from nearkin.cli.tune import tuned_study

            study = tuned_study(study, store, executor, storage, known)
        carry_out(study, planned(study, store, part, known), store, executor, target)


def carry_out(study: "Study", jobs: "list[Job]", store: Store, executor: "Executor", target: Path) -> None:
    """Run what is not stored of a study, print its table and write it; exit code 1 when runs have failed."""
    from nearkin.studies import runner, summary
    from nearkin.studies.scheduler import schedule

    runs = store.root
    runner.write_study(study, jobs, store)
    with Following(jobs, executor.workers) as following:
        for look in schedule(executor, runner.tasks_of(jobs)):
            runner.note(jobs, look)
            following.show()
    runner.write_study(study, jobs, store)  # with what has failed, and why
    rows = summary.rows_of(study, jobs, store.root / "studies" / study.name / "joined")
    files = summary.write_summary(study, rows, jobs, target)
    tables.out.print(tables.study_table(study, rows))
    if study.tune is not None:
        from nearkin.cli.tune import say_gains

        say_gains(study, store)
    tables.out.print(f"table: {', '.join(map(str, files))}; runs: {runs}/", highlight=False, soft_wrap=True)
    where = "" if runs == Path("runs") else f" --runs {runs}"
    tables.out.print(f"verdicts: nearkin compare {study.name}{where}", highlight=False, soft_wrap=True)
    failed = say_failed(jobs, "failed")
    if elsewhere := sum(job.state == "elsewhere" for job in jobs):
        said = f"{elsewhere} runs were left to another call; the table has what is stored"
        tables.out.print(said, highlight=False, soft_wrap=True)
    if failed:
        raise typer.Exit(1)


def plan_search(study: "Study", known: "dict[str, Data]") -> None:
    """Print what would be searched."""
    from nearkin.studies.search import searches_of
    from nearkin.tuning.tables import plan_table

    tables.sheet(plan_table(searches_of(study, known)))


def planned(
    study: "Study", store: Store, part: str | None = None, known: "dict[str, Data] | None" = None
) -> "list[Job]":
    """The runs of a study. When none of them can begin, that is the error."""
    from nearkin.studies import runner

    jobs = runner.jobs_of(study, store, known)
    reasons = {job.error for job in jobs}
    if len(reasons) == 1 and (only := reasons.pop()) is not None:  # one line says it all
        raise NearkinError(only)
    if part is not None:
        runner.take_part(jobs, part)
    return jobs


class Following:
    """Shows how far the runs of a study are: a table on a terminal, elsewhere a line for each run that ends."""

    def __init__(self, jobs: "list[Job]", workers: int):
        from nearkin.studies.pace import Pace

        self.jobs, self.pace = jobs, Pace(workers)
        self.live = Live(console=tables.err, refresh_per_second=4, transient=True)
        self.said: set[str] = set()

    def show(self) -> None:
        """How far they are now."""
        if tables.err.is_terminal:
            self.live.update(tables.jobs_table(self.jobs, self.pace))
            return
        for job in self.jobs:
            name = name_of(job)
            if name not in self.said and job.state in ("done", "failed"):
                self.said.add(name)
                tables.err.print(f"{job.state}: {name}", highlight=False)

    def __enter__(self) -> Self:
        self.live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.live.__exit__(*error)


def name_of(job: "Job") -> str:
    """A run of a study in words: its labels, seed and fold."""
    fold = "" if job.cell.fold is None else f" fold {job.cell.fold}"
    return f"{' '.join(job.cell.labels)} seed {job.cell.seed}{fold}"


def plan(jobs: "list[Job]", store: Store, workers: int) -> None:
    """Print the runs of a study, what is stored of each, and the time that the rest takes."""
    from nearkin.studies import pace

    costs: dict[str, float] = {}
    rows, total = [], 0.0
    for job in jobs:
        seconds = None
        if job.state == "waiting":
            spec = job.spec
            assert spec is not None  # else it was refused
            key = f"{spec.model.backbone} {spec.model.cut} {spec.data} {spec.train.batch}"
            if key not in costs:
                tables.err.print(f"trying a few steps of {name_of(job)} ...", highlight=False)
                costs[key] = pace.seconds_per_batch(spec, job.data_hash, store)
            seconds = job.work * costs[key]
            total += seconds
        state = "begun" if job.state == "waiting" and job.run.begun else job.state
        same = "same run as above" if job.same is not None else state
        rows.append([name_of(job), job.run.hash, same, SECONDS.text(seconds)])
    tables.out.print(tables.table(None, {"run": "left", "hash": "left", "state": "left", "time": "right"}, rows))
    wait = f"{SECONDS.text(total / workers)} with {workers} worker{'s' * (workers > 1)}"
    said = f"{len(jobs)} runs; about {SECONDS.text(total)} of work, {wait}"
    tables.out.print(said, highlight=False, soft_wrap=True)
    if say_failed(jobs, "refused"):
        raise typer.Exit(1)


def say_failed(jobs: "list[Job]", word: str) -> int:
    """Print why runs have failed, each reason once; how many they are."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        if job.error is not None:
            groups.setdefault(job.error, []).append(job)
    for reason, group in groups.items():
        note = group[0].run.path / "error.txt"
        more = f" (all of it: {note})" if note.exists() else ""
        also = f" and {len(group) - 1} more" if len(group) > 1 else ""
        tables.err.print(f"{word}: {name_of(group[0])}{also}: {reason}{more}", highlight=False, soft_wrap=True)
    return sum(len(group) for group in groups.values())
