"""`nearkin study`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live

from nearkin.cli import tables
from nearkin.cli.options import Runs
from nearkin.cli.train import resumable
from nearkin.config.parse import parse_words
from nearkin.runs.store import Store
from nearkin.storage import check_writable
from nearkin.studies.export import check_ending


def study_command(
    file: Annotated[Path, typer.Argument(help="A study: base, axes, seeds in YAML.")],
    words: Annotated[list[str] | None, typer.Argument(help="key=value words over its base, as root=DIR.")] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Runs at a time, one thread each.")] = 1,
    runs: Runs = Path("runs"),
    csv: Annotated[
        Path | None, typer.Option("--csv", "--table", help="The table: .csv, .md or .tex; default RUNS/NAME.csv.")
    ] = None,
) -> None:
    """Run what is not stored yet of a grid of runs; print mean and standard deviation over seeds."""
    from nearkin.studies import grid, runner, summary

    study = grid.read_study(file, parse_words(words or []))
    target = csv or runs / f"{study.name}.csv"
    check_ending(target)
    check_writable(target)
    store = Store(runs)
    jobs = runner.jobs_of(study, store)
    runner.write_study(study, jobs, store)
    told: set[str] = set()
    with resumable(), Live(console=tables.err, refresh_per_second=4, transient=True) as live:
        for _ in runner.run_jobs(jobs, runs=runs, workers=workers):
            if tables.err.is_terminal:
                live.update(tables.jobs_table(jobs))
                continue
            for job in jobs:
                name = f"{job.cell.labels} {job.cell.seed}"
                if job.state in ("done", "failed") and name not in told:
                    told.add(name)
                    tables.err.print(f"{job.state}: {' '.join(job.cell.labels)} seed {job.cell.seed}", highlight=False)
    rows = summary.rows_of(study, jobs)
    files = summary.write_summary(study, rows, jobs, target)
    tables.out.print(tables.study_table(study, rows))
    tables.out.print(f"table: {', '.join(map(str, files))}; runs: {runs}/", highlight=False, soft_wrap=True)
    failed = [job for job in jobs if job.error is not None]
    for job in failed:
        where = f"{' '.join(job.cell.labels)} seed {job.cell.seed}"
        note = job.run.path / "error.txt"
        more = f" (all of it: {note})" if note.exists() else ""
        tables.err.print(f"failed: {where}: {job.error}{more}", highlight=False, soft_wrap=True)
    if failed:
        raise typer.Exit(1)
