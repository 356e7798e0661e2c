"""The table of a study: mean and standard deviation over seeds."""

import csv
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from nearkin.errors import NearkinError, choices
from nearkin.runs.store import Run
from nearkin.storage import atomic
from nearkin.studies.grid import Study
from nearkin.studies.runner import Job


@dataclass
class Row:
    """Mean and sample standard deviation over seeds of one place on the axes."""

    labels: tuple[str, ...]
    seeds: int
    failed: int
    mean: dict[str, float] = field(default_factory=dict)
    std: dict[str, float | None] = field(default_factory=dict)


def rows_of(study: Study, jobs: list[Job]) -> list[Row]:
    """The table of a study, in the order of its file."""
    rows = []
    for labels in dict.fromkeys(cell.labels for cell in study.cells):
        mine = [job for job in jobs if job.cell.labels == labels]
        results = [_numbers(job.run) for job in mine if job.run.done]
        row = Row(labels, len(results), sum(job.error is not None for job in mine))
        for metric in study.metrics:
            values = [r[metric] for r in results if metric in r]
            if results and not values:
                raise NearkinError(f"metric {metric!r} is not stored: {choices(metric, results[0])}")
            if values:
                row.mean[metric] = statistics.fmean(values)
                row.std[metric] = statistics.stdev(values) if len(values) > 1 else None
        rows.append(row)
    return rows


def _numbers(run: Run) -> dict[str, float]:
    """The test metrics, and as train.* those of the training embeddings."""
    result = run.result
    return result["test"] | {f"train.{name}": value for name, value in result["train"].items()}


def write_csv(study: Study, rows: list[Row], path: Path) -> None:
    """The table as CSV, one row per place on the axes."""
    with atomic(path) as scratch, open(scratch / path.name, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*study.axes, "seeds", *(f"{m} {what}" for m in study.metrics for what in ("mean", "std"))])
        for row in rows:
            cells = [value for m in study.metrics for value in (row.mean.get(m), row.std.get(m))]
            writer.writerow([*row.labels, row.seeds, *("" if c is None else f"{c:.6f}" for c in cells)])
