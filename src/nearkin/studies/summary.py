"""The table of a study: mean and standard deviation over seeds."""

import math
import statistics
from pathlib import Path

from nearkin.errors import and_more
from nearkin.evaluation.metrics.base import metric_of, unit_of
from nearkin.present import Column, Table
from nearkin.statistics.unit import Common, Key, Place, common
from nearkin.statistics.unit import Row as Unit
from nearkin.studies._row import Row, used
from nearkin.studies.budgets import budget_of, unequal
from nearkin.studies.cells import Study
from nearkin.studies.joined import joined_metrics
from nearkin.studies.readings import PICKED, READINGS, numbers, read
from nearkin.studies.runner import Job
from nearkin.studies.twin import twin_words
from nearkin.units import COUNT, POINTS


def rows_of(study: Study, jobs: list[Job], folder: Path | None = None) -> list[Row]:
    """The table of a study, best validation first; rows without validation come last, in the order of the file. Joined
    folds are evaluated here; `folder` is where that is kept."""
    rows = []
    for labels in dict.fromkeys(cell.labels for cell in study.cells):
        mine = [job for job in jobs if job.cell.labels == labels]
        if all(job.state == "elsewhere" for job in mine):  # left to another call, and nothing is stored yet
            continue
        for evaluation in study.evaluations:
            if evaluation == "concatenated" and mine[0].cell.baseline is not None:
                continue  # one network, not one per fold
            for reading in study.readings if mine[0].cell.spec.train.epochs != 0 else ("chosen",):
                row = _row(study, mine, labels, evaluation, reading, folder)
                if evaluation == "separated" or row.values:
                    rows.append(row)
    sign, first, axes = metric_of(study.select).sign or 1, study.columns_on()[0], len(study.axes)
    validation: dict[tuple[str, ...], float] = {}  # of every place on the axes, whatever epochs its rows tell
    for row in rows:
        if first in row.mean:
            validation.setdefault(row.labels[:axes], -sign * row.mean[first])
    return sorted(rows, key=lambda row: validation.get(row.labels[:axes], math.inf))


def _row(
    study: Study, jobs: list[Job], labels: tuple[str, ...], evaluation: str, reading: str, folder: Path | None
) -> Row:
    """One row: folds are averaged (or joined) first, then seeds, as statistics/unit.py has it."""
    folds, data = {job.cell.fold for job in jobs}, jobs[0].cell.spec.data.name
    done = {Key(job.cell.seed, Place((), job.cell.fold)): job for job in jobs if job.run.done}
    sources = {key: [job] for key, job in done.items()}  # of each value: the runs that it stands on
    numbers_of: dict[Key, dict[str, float | None]] = {}
    if evaluation == "separated":
        numbers_of = {key: read(job.run, reading, study.select) for key, job in done.items()}
    elif reading == "chosen" and folder is not None:
        seeds = dict.fromkeys(key.seed for key in done)
        ordered = sorted(done, key=lambda key: str(key.place.fold))  # as `nearkin compare` looks for them
        sources = {Key(seed): [done[key] for key in ordered if key.seed == seed] for seed in seeds}
        for key, joined in sources.items():
            if len(joined) == len(folds):
                numbers_of[key] = dict(joined_metrics([job.run for job in joined], study.asked_on(data), folder))
    words = [evaluation] if len(study.evaluations) > 1 else []
    epoch = READINGS[reading][0] if jobs[0].cell.spec.train.epochs != 0 else "untrained"
    words += [epoch] if study.reads else []
    units = {}
    for metric in study.columns_on(data):
        stored = {key: numbers.get(metric) for key, numbers in numbers_of.items()}
        values = {key: value for key, value in stored.items() if value is not None and math.isfinite(value)}
        if (unit := Unit(" ".join(labels), values)).values:
            units[metric] = unit
    row = Row((*labels, *words), sum(job.state == "failed" for job in jobs), units, reading, data=data)
    averaged = [job for key in used(units) for job in sources[key]]
    present = {job.cell.fold for job in averaged}
    row.budget = budget_of(
        [job.run for job in averaged],
        row.seeds,
        len(present),
        joined=evaluation == "concatenated",
        trials=max(job.cell.trials for job in jobs),
        searched_epochs=max(job.cell.searched_epochs for job in jobs),
    )
    row.lacks = tuple(sorted(fold for fold in folds - present if fold is not None)) if averaged else ()
    return row


def notes_of(study: Study, rows: list[Row]) -> list[str]:
    """What a reader of the table must know: unequal budgets, missing folds, how much a reading flatters, and which data
    sets were left out."""
    chosen = [row for row in rows if row.reading == "chosen"] or rows
    words = len(study.axes) + (len(study.evaluations) > 1)
    names = {" ".join(row.labels[:words]) or study.name: row for row in chosen}
    notes = unequal({name: row.budget for name, row in names.items()})
    for folds in dict.fromkeys(row.lacks for row in names.values() if row.lacks):
        without = [name for name, row in names.items() if row.lacks == folds]
        notes.append(f"means without fold{'s' * (len(folds) > 1)} {and_more(folds, 4)}: {and_more(without, 3)}")
    if any(row.over_folds for row in rows):
        notes.append("with one seed, ± is the standard deviation over folds")
    for reading in study.readings:
        label = READINGS[reading][0]
        if PICKED in label:
            gains = _flattery(study, rows, reading)
            against = f"; against the chosen epoch, in points: {', '.join(gains)}" if gains else ""
            notes.append(f"{label!r} is no result{against}")
    return [*notes, *(f"without root.{name}=DIR there is nothing on {name}" for name in study.without)]


def _flattery(study: Study, rows: list[Row], reading: str) -> list[str]:
    """By how much a reading lies above the chosen epoch, for each metric: the mean over rows of the difference on the
    seeds and folds that both have."""
    chosen = {row.labels[:-1]: row.units for row in rows if row.reading == "chosen"}
    pairs = [(row.units, chosen.get(row.labels[:-1], {})) for row in rows if row.reading == reading]
    gains = []
    for metric in study.asked_on():
        overlaps = [common([a[metric], b[metric]]) for a, b in pairs if metric in a and metric in b]
        differences = [float((o.values[0] - o.values[1]).mean()) for o in overlaps if isinstance(o, Common)]
        if differences and metric_of(metric).is_share:
            gains.append(f"{metric} {POINTS.text(statistics.fmean(differences), signed=True)}")
    return gains


def tables_of(study: Study, rows: list[Row]) -> list[Table]:
    """One row per place on the axes, best validation first: mean ± standard deviation over seeds. Every data set has a
    table of its own."""
    several = len(study.data_sets) > 1 or study.without
    return [_table(study, [row for row in rows if row.data == data], data, bool(several)) for data in study.data_sets]


def _table(study: Study, rows: list[Row], data: str, several: bool) -> Table:
    columns = [*map(Column, study.headings), Column("seeds", unit=COUNT)]
    failed = any(row.failed for row in rows)
    columns += [Column("failed", unit=COUNT)] if failed else []
    for metric in study.columns_on(data):
        columns += [Column(metric, unit=unit_of(metric), plus_minus=f"{metric} std"), Column(f"{metric} std")]
    values = []
    for row in rows:
        numbers = [
            number for metric in study.columns_on(data) for number in (row.mean.get(metric), row.std.get(metric))
        ]
        values.append([*row.labels, row.seeds, *([row.failed] if failed else []), *numbers])
    twin = f" (twin of {twin_words(study.twin)})" if study.twin else ""
    folds = " after the mean over folds" if any(cell.fold is not None for cell in study.cells) else ""
    spread = f"mean ± std over seeds{folds}"
    name, on = (f"{study.name}-{data}", f" on {data}") if several else (study.name, "")
    title = f"study {study.name}{on}{twin}: classes never seen in training; {spread}; best validation first"
    return Table(name, columns, values, title, notes_of(study, rows))


def seeds_table(study: Study, jobs: list[Job], notes: list[str]) -> Table:
    """The values of every run."""
    columns = [*map(Column, study.axes), Column("seed"), Column("fold"), Column("run")]
    columns += [Column(metric, unit=unit_of(metric)) for metric in study.columns_on()]
    values = []
    for job in jobs:
        measured = numbers(job.run, study.select) if job.run.done else {}
        place = [*job.cell.labels, job.cell.seed, job.cell.fold, job.run.hash]
        values.append([*place, *(measured.get(metric) for metric in study.columns_on())])
    return Table(f"{study.name}-seeds", columns, values, f"study {study.name}: every run", notes)


def write_summary(study: Study, rows: list[Row], jobs: list[Job], path: Path) -> list[Path]:
    """The tables of the study by the ending of the path, NAME-cub.csv where it has several data sets; beside them
    NAME-seeds.csv: the values of every run."""
    tables = tables_of(study, rows)
    notes = list(dict.fromkeys(note for table in tables for note in table.notes))
    seeds = seeds_table(study, jobs, notes)
    written = [table.write(path.with_stem(path.stem + table.name.removeprefix(study.name))) for table in tables]
    return [*written, seeds.write(path.with_name(f"{path.stem}-seeds.csv"))]
