"""The table of a study: mean and standard deviation over seeds."""

import math
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from nearkin.registry import METRICS
from nearkin.studies.budgets import budget_of, unequal
from nearkin.studies.cells import Study
from nearkin.studies.export import write_table
from nearkin.studies.joined import joined_metrics
from nearkin.studies.readings import PICKED, READINGS, numbers, read
from nearkin.studies.runner import Job

SHARES = {"query", "clusters"}      # kinds of metrics that lie between 0 and 1


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
    sign = 1 if METRICS[study.select.partition("@")[0]].better == "low" else -1
    first = study.columns[0]

    def key(row: Row) -> float:
        validated = [each for each in rows if each.labels[: len(study.axes)] == row.labels[: len(study.axes)]]
        found = next((each.mean[first] for each in validated if first in each.mean), None)
        return math.inf if found is None else sign * found

    return sorted(rows, key=key)


def _row(
    study: Study, jobs: list[Job], labels: tuple[str, ...], evaluation: str, reading: str, folder: Path | None
) -> Row:
    """One row: folds are averaged (or joined) first, then seeds."""
    values: dict[int, dict[str, float]] = {}
    single: list[dict[str, float | None]] = []                      # every fold's own values
    for seed in dict.fromkeys(job.cell.seed for job in jobs):
        folds = [job for job in jobs if job.cell.seed == seed]
        if not all(job.run.done for job in folds):                  # some folds are no result of a seed
            continue
        if evaluation == "separated":
            own = [read(job.run, reading, study.select) for job in folds]
            values[seed] = _averaged(own)
            single += own
        elif reading == "chosen" and folder is not None:
            values[seed] = dict(joined_metrics([job.run for job in folds], study.asked, folder))
    words = [evaluation] if len(study.evaluations) > 1 else []
    epoch = READINGS[reading][0] if jobs[0].cell.spec.train.epochs != 0 else "untrained"
    words += [epoch] if study.reads else []
    done = [job.run for job in jobs if job.cell.seed in values]
    failed = sum(job.state == "failed" for job in jobs)
    row = Row((*labels, *words), len(values), failed, values=values, reading=reading)
    row.budget = budget_of(done, len(values), len({job.cell.fold for job in jobs}), joined=evaluation == "concatenated",
                           trials=max(job.cell.trials for job in jobs))  # fmt: skip
    row.over_folds = len(values) == 1 and len(single) > 1
    for metric in study.columns:
        found = [own[metric] for own in values.values() if own.get(metric) is not None]
        if found:
            row.mean[metric] = statistics.fmean(found)
            if row.over_folds:
                found = [own[metric] for own in single if own.get(metric) is not None]  # type: ignore[misc]
            row.std[metric] = statistics.stdev(found) if len(found) > 1 else None
    return row


def _averaged(folds: list[dict[str, float | None]]) -> dict[str, float]:
    """The mean over folds of every metric that all of them have."""
    keys = [key for key in folds[0] if all(fold.get(key) is not None for fold in folds)]
    return {key: statistics.fmean(fold[key] for fold in folds) for key in keys}  # type: ignore[misc]


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
            if flattered and is_share(metric):
                gains.append(f"{metric} {100 * statistics.fmean(flattered):+.2f}")
        against = f"; against the chosen epoch, in points: {', '.join(gains)}" if gains else ""
        notes.append(f"{label!r} is no result{against}")
    return notes


def cell(row: Row, metric: str) -> str:
    """Mean ± standard deviation as people read it: shares in per cent."""
    mean, std = row.mean.get(metric), row.std.get(metric)
    if mean is None:
        return "–"
    scale, digits = (100, 2) if is_share(metric) else (1, 3)
    return f"{scale * mean:.{digits}f}" + (f" ± {scale * std:.{digits}f}" if std is not None else "")


def is_share(metric: str) -> bool:
    """Is it told in per cent? Retrieval and clustering are; spectra, densities and hubness are not."""
    name = metric.removeprefix("validation ").removeprefix("train.").partition("@")[0]
    return METRICS[name].kind in SHARES


def shown(study: Study, rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    """The table as the screen shows it: names of the columns, and one text per cell."""
    header = [*study.headings, "seeds", *(f"{m} %" if is_share(m) else m for m in study.columns)]
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
