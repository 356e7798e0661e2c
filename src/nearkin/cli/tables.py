"""Tables for the terminal: what the commands print."""

from collections.abc import Mapping

import numpy as np
from rich.console import Console
from rich.table import Table

from nearkin.data import Report
from nearkin.evaluation.retrieval import Evaluation
from nearkin.registry import METRICS
from nearkin.runs.store import Run
from nearkin.studies.grid import Study
from nearkin.studies.runner import Job
from nearkin.studies.summary import Row

SHARES = {"query", "clusters"}      # kinds of metrics that lie between 0 and 1 and are told in per cent

out = Console()
err = Console(stderr=True)


def table(title: str | None, columns: Mapping[str, str], rows: list[list[str]]) -> Table:
    """Columns are name -> justification."""
    made = Table(title=title, title_justify="left", header_style="bold")
    for name, justify in columns.items():
        made.add_column(name, justify=justify, no_wrap=justify == "right")  # type: ignore[arg-type]
    for row in rows:
        made.add_row(*row)
    return made


def percent(value: float | None) -> str:
    """0.1234 as 12.34; a dash for nothing."""
    return "–" if value is None or value != value else f"{100 * value:.2f}"


def result_table(run: Run) -> Table:
    """Validation and test metrics of a finished run."""
    result = run.result
    validation = result["validation"]
    rows = [[m, percent(validation.get(m)), percent(v)] for m, v in result["test"].items()]
    return table(None, {"metric": "left", "validation %": "right", "test %": "right"}, rows)


def result(run: Run) -> None:
    """Print a finished run: what it was, its metrics, how its epoch was chosen, where it is stored."""
    out.print(f"run:    {method_of(run)}", highlight=False, markup=False, soft_wrap=True)
    out.print(result_table(run))
    for line in result_words(run):
        out.print(line, highlight=False, markup=False, soft_wrap=True)
    out.print(f"stored: {run.path}", highlight=False, markup=False, soft_wrap=True)


def result_words(run: Run) -> list[str]:
    """The lines below the metrics: chosen epoch and rule, data, what was left out."""
    result = run.result
    chosen = f"epoch {result['epoch']} of {result['epochs_trained']}" if result["epochs_trained"] else "untrained"
    by = f" by {result['select']}" if result["select"] else ""
    words = [f"chosen: {chosen}; rule: {result['rule']}{by}", f"data:   {result['split']}, data {result['data_hash']}"]
    if result["skipped_images"]:
        words.append(f"skipped: {result['skipped_images']} unreadable images")
    words += [f"excluded: {what}: {why}" for what, why in result["excluded"].items()]
    return words


def method_of(run: Run) -> str:
    """A run in a few words."""
    spec = run.spec
    shown = {"data.name": spec.data.name, "model.backbone": spec.model.backbone, "loss.name": spec.loss.name}
    hidden = {"data.size", "data.crop", "data.resize", "model.freeze_bn", "model.pool", "sampler.name", "train.batch",
              "train.lr"}  # fmt: skip  # what recipes fill in, mostly
    shown |= {k: v for k, v in spec.changes().items() if k not in hidden}
    return " ".join(f"{k.removesuffix('.name')}={v}" for k, v in shown.items())


def runs_table(runs: list[Run]) -> Table:
    """One row per run."""
    rows = []
    for run in runs:
        if run.done:
            test = run.result["test"]
            state, recall, map_at_r = "done", percent(test.get("recall@1")), percent(test.get("map_at_r"))
        else:
            lines = run.log_lines()
            at = f" {lines[-1].get('epoch', lines[-1].get('epoch_end'))}/{lines[-1]['epochs']}" if lines else ""
            state, recall, map_at_r = f"begun{at}", "–", "–"
        rows.append([run.hash, state, recall, map_at_r, method_of(run)])
    right = {"recall@1 %": "right", "map_at_r %": "right"}
    return table(None, {"run": "left", "state": "left", **right, "what": "left"}, rows)


def study_table(study: Study, rows: list[Row]) -> Table:
    """One row per place on the axes."""
    def share(metric: str) -> bool:
        return not metric.startswith("train.")                      # spectra and densities are no percentages

    def cell(row: Row, metric: str) -> str:
        mean, std = row.mean.get(metric), row.std.get(metric)
        if mean is None:
            return "–"
        scale, digits = (100, 2) if share(metric) else (1, 3)
        return f"{scale * mean:.{digits}f}" + (f" ± {scale * std:.{digits}f}" if std is not None else "")

    numbers = {f"{m} %" if share(m) else m: "right" for m in study.metrics}
    columns = {**dict.fromkeys(study.axes, "left"), "seeds": "right", **numbers}
    lines = []
    for row in rows:
        count = f"{row.seeds}" + (f" ({row.failed} failed)" if row.failed else "")
        lines.append([*row.labels, count, *(cell(row, m) for m in study.metrics)])
    return table(f"study {study.name}: classes never seen in training; mean ± std over seeds",
                 columns, lines)  # fmt: skip


def jobs_table(jobs: list[Job]) -> Table:
    """What runs now, and how far everything is."""
    rows = []
    for job in jobs:
        if job.state != "running":
            continue
        lines = job.run.log_lines()
        last = lines[-1] if lines else {}
        ends = [line for line in lines if "validation" in line]
        best = max((max(line["validation"].get("recall@1", 0), 0) for line in ends), default=None)
        at = f"{last.get('epoch', last.get('epoch_end', 0))}/{last.get('epochs', '?')}"
        loss = f"{last['loss']:.4g}" if "loss" in last else "–"
        rows.append([" ".join(job.cell.labels), str(job.cell.seed), at, loss, percent(best)])
    done, failed = (sum(job.state == s for job in jobs) for s in ("done", "failed"))
    title = f"{done} of {len(jobs)} runs done" + (f", {failed} failed" if failed else "")
    right = {"seed": "right", "epoch": "right", "loss": "right", "best validation recall@1 %": "right"}
    return table(title, {"running": "left", **right}, rows)


def verified(report: Report) -> None:
    """What `data verify` found: counts, then every problem and warning in words."""
    official = report.official or {}
    rows = []
    for split, (images, classes) in report.counts.items():
        wanted = official.get(split)
        said = "–" if wanted is None else f"{wanted[0]:,} of {wanted[1]:,}"
        rows.append([split, f"{images:,}", f"{classes:,}", said])
    right = {"images": "right", "classes": "right", "official": "right"}
    title = f"{report.name}: {report.images:,} images, data {report.data_hash}"
    out.print(table(title, {"split": "left", **right}, rows))
    for kind, lines in (("problem", report.problems), ("warning", report.warnings)):
        for line in lines:
            out.print(f"{kind}: {line}", highlight=False, markup=False, soft_wrap=True)
    out.print("everything is in order" if report.ok else "something is wrong", highlight=False)


def evaluation_table(evaluation: Evaluation) -> Table:
    """What was measured, over how many queries, and what was left out."""
    title = f"{evaluation.n:,} queries, gallery of {evaluation.gallery:,}, {evaluation.metric}"
    made = Table(title=title, caption=str(evaluation.excluded.get("reason", "")) or None, caption_justify="left")
    made.add_column("metric")
    made.add_column("value", justify="right")
    if evaluation.intervals:
        made.add_column("95 % over test classes (not seeds)", justify="right")
    made.add_column("queries", justify="right")
    for key, value in evaluation.metrics.items():
        share = METRICS[key.partition("@")[0]].kind in SHARES
        row = [key, _number(value, share)]
        if evaluation.intervals:
            interval = evaluation.intervals.get(key)
            row.append(" to ".join(_number(end, share) for end in interval) if interval else "")
        row.append(f"{np.isfinite(evaluation.per_query[key]).sum():,}" if key in evaluation.per_query else "")
        made.add_row(*row)
    return made


def _number(value: float, share: bool) -> str:
    return f"{100 * value:.2f} %" if share else f"{value:.4f}"
