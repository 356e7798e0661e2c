"""Tables and progress for the terminal: what the command line prints."""

import time
from collections.abc import Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from nearkin.data import Report
from nearkin.runs.store import Run
from nearkin.studies.grid import Job, Row, Study

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
    return "–" if value is None or value != value else f"{100 * value:.2f}"


def result_table(run: Run) -> Table:
    result = run.result
    validation = result["validation"]
    rows = [[m, percent(validation.get(m)), percent(v)] for m, v in result["test"].items()]
    return table(None, {"metric": "left", "validation %": "right", "test %": "right"}, rows)


def result(run: Run) -> None:
    out.print(f"run:    {method_of(run)}", highlight=False, markup=False, soft_wrap=True)
    out.print(result_table(run))
    for line in result_words(run):
        out.print(line, highlight=False, markup=False, soft_wrap=True)
    out.print(f"stored: {run.path}", highlight=False, markup=False, soft_wrap=True)


def result_words(run: Run) -> list[str]:
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


@contextmanager
def training_bar(console: Console, quiet: bool):
    """A progress bar fed by the training loop; epochs are printed above it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
               TextColumn("{task.fields[note]}"))  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task("training", total=None, note="")
        drawn = 0.0

        def watch(entry: dict[str, Any]) -> None:
            nonlocal drawn
            if "epoch_end" in entry:
                if quiet:
                    return
                scores = " ".join(f"{m} {percent(v)}" for m, v in entry.get("validation", {}).items())
                shown = f"validation {scores}" if scores else "no validation"
                console.print(f"epoch {entry['epoch_end']:>3}/{entry['epochs']}  {shown}", highlight=False)
                if "warning" in entry:
                    console.print(f"[yellow]warning:[/] {entry['warning']}", highlight=False)
            elif time.monotonic() - drawn > 0.1:
                drawn = time.monotonic()
                total = entry["steps_per_epoch"] * entry["epochs"]
                active = "" if entry["active"] is None else f", active {100 * entry['active']:.0f} %"
                note = f"loss {entry['loss']:.4g}{active}, {entry['images_per_s']:.0f} images/s"
                progress.update(task, completed=entry["step"], total=total, note=note)

        yield watch
