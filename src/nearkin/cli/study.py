"""`nearkin study`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearkin.cli.options import Ray, Runs, Workers, runs_option
from nearkin.cli.screen import say
from nearkin.cli.train import resumable
from nearkin.config.parse import parse_words
from nearkin.runs.store import Store

if TYPE_CHECKING:
    from nearkin.tuning.study import Studied


def study_command(
    file: Annotated[Path, typer.Argument(help="A study: base, axes, seeds in YAML.")],
    words: Annotated[
        list[str] | None, typer.Argument(help="key=value words laid over its base, such as root=DIR.")
    ] = None,
    workers: Workers = None,
    ray: Ray = None,
    runs: Runs = Path("runs"),
    part: Annotated[str | None, typer.Option("--part", help="Only a part of the runs, such as 3/16.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the runs and the time they take; run nothing.")
    ] = False,
    csv: Annotated[
        Path | None, typer.Option("--csv", "--table", help="The table: .csv, .md or .tex; default: RUNS/NAME.csv.")
    ] = None,
    tune_only: Annotated[
        bool, typer.Option("--tune-only", help="Search the settings of every row; run only the tuned rows.")
    ] = False,
    trials: Annotated[
        int | None, typer.Option("--trials", help="Trials to search every row with; default: tune.trials of the file.")
    ] = None,
    show_trials: Annotated[
        bool, typer.Option("--show-trials", help="Print and draw the stored trials; run nothing.")
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="With --show-trials: the PNG; default: tune.png in the study's folder."),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option("--storage", help="Database URL for the trials; default: tune.db in the study's folder."),
    ] = None,
) -> None:
    """Run what is not stored yet of a grid of runs; print mean and standard deviation over seeds.

    With `tune:` in the file, or --trials, the settings of every row are searched first, on validation classes; tuned
    rows stand beside the default ones, with fresh seeds, tested once.
    """
    from nearkin.studies.carry_out import failures
    from nearkin.studies.executors import following
    from nearkin.studies.grid import read_study
    from nearkin.tuning.study import Plan, Searched, study

    settings = parse_words(words or [])
    search = {} if trials is None else {"trials": trials}
    if show_trials:
        searched = Searched(read_study(file, settings, search), Store(runs), storage)
        say(searched, f"figure: {searched.draw(figure)}")
        return
    if dry_run:
        grid = read_study(file, settings, search if search or tune_only else None)
        plan = Plan(grid, Store(runs), workers or 1, part, lambda line: say(line, error=True))
        jobs, word = plan.jobs, "refused"
        say(plan)
    else:
        with resumable(), following(say) as watch:
            done = study(
                file,
                settings,
                runs=runs,
                workers=workers,
                ray=ray,
                table=csv,
                part=part,
                tune_only=tune_only,
                trials=trials,
                storage=storage,
                watch=watch,
            )
        jobs, word = done.jobs, "failed"
        say(done, f"verdicts: nearkin compare {done.study.name}{runs_option(runs)}")
        if done.study.tune is not None:
            asked = "" if trials is None else f" --trials {trials}"
            say(f"all trials: nearkin study {file} --show-trials{asked}{runs_option(runs)}")
        if done.study.analyses:
            _analyse(done)
        if tune_only:
            say(f"beside the default settings: nearkin study {file}{runs_option(runs)}")
    if reasons := failures(jobs, word):
        say(*reasons, error=True)
        raise typer.Exit(1)


def _analyse(done: "Studied") -> None:
    """Write the analyses that the file names, unless another call still has runs of it."""
    from nearkin.analysis import analyse_study

    if any(job.state == "elsewhere" for job in done.jobs):
        say(f"analyses ({', '.join(done.study.analyses)}): the same command writes them once all parts are done")
        return
    for analysed in analyse_study(done.study, done.store.root):
        say(analysed)
