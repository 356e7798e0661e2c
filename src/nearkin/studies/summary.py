"""The table of a study: mean and standard deviation over seeds."""

import math
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from nearkin.registry import METRICS
from nearkin.runs.store import Run
from nearkin.studies.export import write_table
from nearkin.studies.grid import Study
from nearkin.studies.runner import Job

SHARES = {"query", "clusters"}      # kinds of metrics that lie between 0 and 1


@dataclass
class Row:
    """Mean and sample standard deviation over seeds of one place on the axes."""

    labels: tuple[str, ...]
    seeds: int
    failed: int
    mean: dict[str, float] = field(default_factory=dict)
    std: dict[str, float | None] = field(default_factory=dict)


def rows_of(study: Study, jobs: list[Job]) -> list[Row]:
    """The table of a study, best validation first; rows without validation come last, in the order of the file."""
    rows = []
    for labels in dict.fromkeys(cell.labels for cell in study.cells):
        mine = [job for job in jobs if job.cell.labels == labels]
        results = [numbers(job.run, study.select) for job in mine if job.run.done]
        row = Row(labels, len(results), sum(job.state == "failed" for job in mine))
        for metric in study.columns:
            values = [r[metric] for r in results if r.get(metric) is not None]
            if values:
                row.mean[metric] = statistics.fmean(values)
                row.std[metric] = statistics.stdev(values) if len(values) > 1 else None
        rows.append(row)
    sign = 1 if METRICS[study.select.partition("@")[0]].better == "low" else -1
    first = study.columns[0]
    return sorted(rows, key=lambda row: sign * row.mean[first] if first in row.mean else math.inf)


def numbers(run: Run, select: str) -> dict[str, float]:
    """The test metrics of a run, as train.* those of its training embeddings, and its validation."""
    final = run.read_json("final.json")
    space = final.get("train") or (run.result["train"] if run.tested else {})
    validation = {f"validation {select}": final["validation"].get(select)}
    return run.metrics() | {f"train.{name}": value for name, value in space.items()} | validation


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
    header = [*study.axes, "seeds", *(f"{m} %" if is_share(m) else m for m in study.columns)]
    lines = []
    for row in rows:
        count = f"{row.seeds}" + (f" ({row.failed} failed)" if row.failed else "")
        lines.append([*row.labels, count, *(cell(row, m) for m in study.columns)])
    return header, lines


def write_summary(study: Study, rows: list[Row], jobs: list[Job], path: Path) -> list[Path]:
    """What the screen shows as .csv, .md or .tex, and beside it NAME-seeds.csv: every run's own values."""
    header, lines = shown(study, rows)
    write_table(path, header, lines, numbers=1 + len(study.columns))
    values = []
    for job in jobs:
        found = numbers(job.run, study.select) if job.run.done else {}
        own = ["" if found.get(m) is None else repr(found[m]) for m in study.columns]
        values.append([*job.cell.labels, str(job.cell.seed), job.run.hash, *own])
    seeds = path.with_name(f"{path.stem}-seeds.csv")
    write_table(seeds, [*study.axes, "seed", "run", *study.columns], values, numbers=len(study.columns))
    return [path, seeds]
