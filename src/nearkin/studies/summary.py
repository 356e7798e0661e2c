"""The table of a study: mean and standard deviation over seeds."""

import math
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from nearkin.evaluation.metrics.base import metric_of
from nearkin.statistics.unit import Key, Place
from nearkin.statistics.unit import Row as UnitRow
from nearkin.studies.budgets import budget_of, unequal
from nearkin.studies.cells import Study
from nearkin.studies.export import write_table
from nearkin.studies.joined import joined_metrics
from nearkin.studies.readings import PICKED, READINGS, numbers, read
from nearkin.studies.runner import Job


@dataclass
class Row:
    """One row of the table: a place on the axes, and a reading of its runs."""

    labels: tuple[str, ...]             # as `study.headings` has them
    seeds: int
    failed: int
    mean: dict[str, float] = field(default_factory=dict)
    std: dict[str, float | None] = field(default_factory=dict)
    values: dict[int, dict[str, float]] = field(default_factory=dict)       # seed -> its values, folds averaged
    reading: str = "chosen"
    budget: dict[str, str] = field(default_factory=dict)
    over_folds: bool = False            # of one seed: the deviation is that of its folds


def rows_of(study: Study, jobs: list[Job], folder: Path | None = None) -> list[Row]:
    """The table of a study, best validation first; rows without validation come last, in the order of the file. Joined
    folds are evaluated here; `folder` is where that is kept."""
    rows = []
    for labels in dict.fromkeys(cell.labels for cell in study.cells):
        mine = [job for job in jobs if job.cell.labels == labels]
        for evaluation in study.evaluations:
            if evaluation == "concatenated" and mine[0].cell.baseline is not None:
                continue                                            # one network, not one per fold
            for reading in study.readings if mine[0].cell.spec.train.epochs != 0 else ("chosen",):
                row = _row(study, mine, labels, evaluation, reading, folder)
                if evaluation == "separated" or row.values:
                    rows.append(row)
    sign = -(metric_of(study.select).sign or 1)
    first = study.columns[0]

    def key(row: Row) -> float:
        validated = [each for each in rows if each.labels[: len(study.axes)] == row.labels[: len(study.axes)]]
        found = next((each.mean[first] for each in validated if first in each.mean), None)
        return math.inf if found is None else sign * found

    return sorted(rows, key=key)


def _row(
    study: Study, jobs: list[Job], labels: tuple[str, ...], evaluation: str, reading: str, folder: Path | None
) -> Row:
    """One row: folds are averaged (or joined) first, then seeds, as statistics/unit.py has it."""
    folds = {job.cell.fold for job in jobs}
    done = {(job.cell.seed, job.cell.fold): job for job in jobs if job.run.done}
    single: dict[Key, dict[str, float | None]] = {}                 # every run's own values
    if evaluation == "separated":
        for (seed, fold), job in done.items():
            single[Key(seed, Place((), fold))] = read(job.run, reading, study.select)
    elif reading == "chosen" and folder is not None:
        for seed in dict.fromkeys(seed for seed, _ in done):
            own = [done[seed, fold].run for fold in sorted(folds, key=str) if (seed, fold) in done]
            if len(own) == len(folds):
                single[Key(seed)] = dict(joined_metrics(own, study.asked, folder))
    words = [evaluation] if len(study.evaluations) > 1 else []
    epoch = READINGS[reading][0] if jobs[0].cell.spec.train.epochs != 0 else "untrained"
    words += [epoch] if study.reads else []
    row = Row((*labels, *words), 0, sum(job.state == "failed" for job in jobs), reading=reading)
    for metric in study.columns:
        values = {key: value for key, own in single.items() if (value := own.get(metric)) is not None}
        by_seed = UnitRow(" ".join(labels), values).values
        for seed, value in by_seed.items():
            row.values.setdefault(seed, {})[metric] = value
        row.over_folds = row.over_folds or (len(by_seed) == 1 and len(values) > 1)
        if by_seed:
            spread = list(values.values()) if len(by_seed) == 1 else list(by_seed.values())
            row.mean[metric] = statistics.fmean(by_seed.values())
            row.std[metric] = statistics.stdev(spread) if len(spread) > 1 else None
    row.seeds = len(row.values)
    whole = [job.run for (seed, _), job in done.items() if seed in row.values]
    row.budget = budget_of(whole, row.seeds, len(folds), joined=evaluation == "concatenated",
                           trials=max(job.cell.trials for job in jobs))  # fmt: skip
    return row


def notes_of(study: Study, rows: list[Row]) -> list[str]:
    """What a reader of the table must know: unequal budgets, and how much a reading flatters."""
    chosen = [row for row in rows if row.reading == "chosen"]
    told = chosen or rows
    words = len(study.axes) + (len(study.evaluations) > 1)
    notes = unequal({" ".join(row.labels[:words]) or study.name: row.budget for row in told})
    if any(row.over_folds for row in rows):
        notes.append("with one seed, ± is the standard deviation over folds")
    for reading in study.readings:
        label = READINGS[reading][0]
        if PICKED not in label:
            continue
        gains = []
        for metric in study.asked:
            own = {row.labels[:-1]: row for row in rows if row.reading == reading and metric in row.mean}
            plain = {row.labels[:-1]: row for row in chosen if metric in row.mean}
            flattered = [own[key].mean[metric] - plain[key].mean[metric] for key in own.keys() & plain.keys()
                         if plain[key].budget]  # fmt: skip
            if flattered and metric_of(metric).is_share:
                gains.append(f"{metric} {100 * statistics.fmean(flattered):+.2f}")
        against = f"; against the chosen epoch, in points: {', '.join(gains)}" if gains else ""
        notes.append(f"{label!r} is no result{against}")
    return notes


def cell(row: Row, metric: str) -> str:
    """Mean ± standard deviation as people read it: shares in per cent."""
    mean, std = row.mean.get(metric), row.std.get(metric)
    if mean is None:
        return "–"
    scale, digits = (100, 2) if metric_of(metric).is_share else (1, 3)
    return f"{scale * mean:.{digits}f}" + (f" ± {scale * std:.{digits}f}" if std is not None else "")


def shown(study: Study, rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    """The table as the screen shows it: names of the columns, and one text per cell."""
    header = [*study.headings, "seeds", *(f"{m} %" if metric_of(m).is_share else m for m in study.columns)]
    lines = []
    for row in rows:
        count = f"{row.seeds}" + (f" ({row.failed} failed)" if row.failed else "")
        lines.append([*row.labels, count, *(cell(row, m) for m in study.columns)])
    return header, lines


def write_summary(study: Study, rows: list[Row], jobs: list[Job], path: Path) -> list[Path]:
    """What the screen shows as .csv, .md or .tex, and beside it NAME-seeds.csv: every run's own values."""
    header, lines = shown(study, rows)
    write_table(path, header, lines, numbers=1 + len(study.columns), notes=notes_of(study, rows))
    values = []
    for job in jobs:
        found = numbers(job.run, study.select) if job.run.done else {}
        own = ["" if found.get(m) is None else repr(found[m]) for m in study.columns]
        fold = "" if job.cell.fold is None else str(job.cell.fold)
        values.append([*job.cell.labels, str(job.cell.seed), fold, job.run.hash, *own])
    seeds = path.with_name(f"{path.stem}-seeds.csv")
    names = [*study.axes, "seed", "fold", "run", *study.columns]
    write_table(seeds, names, values, numbers=len(study.columns), notes=notes_of(study, rows))
    return [path, seeds]
