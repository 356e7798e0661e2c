"""The table of a study: mean and standard deviation over seeds."""

import csv
import math
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from nearkin.registry import METRICS
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


def write_csv(study: Study, rows: list[Row], path: Path) -> None:
    """The table as CSV, one row per place on the axes."""
    with atomic(path) as scratch, open(scratch / path.name, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*study.axes, "seeds", *(f"{m} {what}" for m in study.columns for what in ("mean", "std"))])
        for row in rows:
            cells = [value for m in study.columns for value in (row.mean.get(m), row.std.get(m))]
            writer.writerow([*row.labels, row.seeds, *("" if c is None else f"{c:.6f}" for c in cells)])
