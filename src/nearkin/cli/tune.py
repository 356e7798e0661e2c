"""`nearkin tune`: search the settings of a study's rows, and look at what was found."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live

from nearkin.cli import tables
from nearkin.cli.options import Ray, Runs, Workers, executor_of
from nearkin.cli.train import resumable
from nearkin.config.parse import parse_words
from nearkin.errors import NearkinError
from nearkin.runs.store import Store

if TYPE_CHECKING:
    from nearkin.runs.prepare import Data
    from nearkin.studies.cells import Study
    from nearkin.studies.scheduler import Executor
    from nearkin.studies.searching import Searching


def tune_command(
    file: Annotated[str, typer.Argument(help="A study's file; or `show`, and then a file: what was found so far.")],
    words: Annotated[list[str] | None, typer.Argument(help="key=value words over its base, as root=DIR.")] = None,
    trials: Annotated[int | None, typer.Option("--trials", help="For every row; else tune.trials of the file.")] = None,
    workers: Workers = None,
    ray: Ray = None,
    storage: Annotated[
        str | None, typer.Option("--storage", help="Database URL; default: tune.db in the study's folder.")
    ] = None,
    runs: Runs = Path("runs"),
    figure: Annotated[Path | None, typer.Option("--figure", help="With show: history and importance as PNG.")] = None,
) -> None:
    """Search the settings of every row on validation classes; train fresh seeds with the best, test them once."""
    from nearkin.cli.study import carry_out, planned

    if file == "show":
        if not words:
            raise NearkinError("tune show: which study? nearkin tune show FILE.yaml")
        show(_read(words[0], words[1:], trials), Store(runs), storage, figure)
        return
    study, store = _read(file, words or [], trials), Store(runs)
    with resumable(), executor_of(workers, ray) as executor:
        known: dict[str, Data] = {}
        study = tuned_study(study, store, executor, storage, known)
        jobs = planned(study, store, known=known)
        wanted = [job for job in jobs if job.cell.baseline is not None or job.cell.trials > 0]
        for job in jobs:  # `nearkin study` trains the default rows
            job.part = False
        for job in wanted:
            (job.same or job).part = True  # the best settings may be the default ones
        carry_out(study, jobs, store, executor, runs / f"{study.name}-tuned.csv")
    where = "" if runs == Path("runs") else f" --runs {runs}"
    tables.out.print(f"all trials: nearkin tune show {file}{where}", highlight=False, soft_wrap=True)
    tables.out.print(f"beside the default settings: nearkin study {file}{where}", highlight=False, soft_wrap=True)


def tuned_study(
    study: "Study", store: Store, executor: "Executor", storage: str | None, known: "dict[str, Data]"
) -> "Study":
    """Search, say what was found, and give the study with its tuned rows beside the default ones."""
    from nearkin.tuning import tuned
    from nearkin.tuning.tables import found_table

    ledgers = search_rows(study, store, executor, storage, known).ledgers
    tables.sheet(found_table(ledgers))
    bests = tuned.bests_of(ledgers)
    if not any(best.trial for best in bests):
        errors = [t.error for ledger in ledgers for t in ledger.trials() if t.error]
        raise NearkinError(f"no trial could be trained: {errors[0] if errors else 'none has a validation result'}")
    return tuned.with_tuned(study, bests)


def say_gains(study: "Study", store: Store) -> None:
    """Print what tuning was worth on the test, where default and tuned rows are tested."""
    from nearkin.comparison.gather import gather
    from nearkin.tuning.tables import gains_table
    from nearkin.tuning.tuned import gains_of

    gains = gains_of(gather([study.name], store.root), study.asked)
    if gains:
        tables.sheet(gains_table(gains))


def _read(file: str, words: Sequence[str], trials: int | None) -> "Study":
    """A study with a search, be it that its file says nothing about one."""
    from nearkin.studies.grid import read_study

    study = read_study(Path(file), parse_words(list(words)), tune={} if trials is None else {"trials": trials})
    assert study.tune is not None
    return study


def search_rows(
    study: "Study", store: Store, executor: "Executor", storage: str | None, known: "dict[str, Data]"
) -> "Searching":
    """Carry out the searches of a study's rows, with a table of what is best so far."""
    from nearkin.studies.scheduler import schedule
    from nearkin.studies.search import searches_of
    from nearkin.studies.searching import searching

    searches = searches_of(study, known)
    found = searching(searches, store, storage, known=known, workers=executor.workers)
    said = {ledger.name: -1 for ledger in found.ledgers}
    try:
        with Live(console=tables.err, refresh_per_second=4, transient=True) as live:
            for look in schedule(executor, found.tasks()):
                found.note(look)
                if tables.err.is_terminal:
                    live.update(tables.searching_table(found, look))
                else:
                    _say_ended(found, said)
    finally:
        found.release()
    found.check_all_carried_out()
    return found


def _say_ended(found: "Searching", said: dict[str, int]) -> None:
    """A line for each search in which a trial has ended; `said` has how many had."""
    for ledger in found.ledgers:
        ended = sum(t.state != "running" for t in ledger.trials())
        if ended > said[ledger.name]:
            said[ledger.name] = ended
            best = ledger.best()
            so_far = "" if best is None else f", best {tables.percent(best.score)} %"
            tables.err.print(f"{ledger.search.name}: {ended} trials{so_far}", highlight=False, soft_wrap=True)


def show(study: "Study", store: Store, storage: str | None, figure: Path | None) -> None:
    """Print what is stored of a study's searches."""
    from nearkin.studies.search import searches_of
    from nearkin.studies.searching import searching
    from nearkin.tuning import tables as made

    folder = store.root / "studies" / study.name
    if storage is None and not (folder / "tune.db").exists():
        raise NearkinError(f"study {study.name} was not searched in {store.root}: nearkin tune FILE.yaml begins it")
    ledgers = searching(searches_of(study), store, storage).ledgers
    tables.sheet(made.found_table(ledgers))
    for ledger in ledgers:
        tables.sheet(made.trials_table(ledger))
    if (sheet := made.importance_table(ledgers)) is not None:
        tables.sheet(sheet)
    target = figure or folder / "tune.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    made.history_chart(ledgers).save(target.with_suffix(""), (target.suffix,))
    tables.out.print(f"figure: {target}", highlight=False, soft_wrap=True)
