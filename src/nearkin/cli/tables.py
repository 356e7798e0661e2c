"""Tables for the terminal: what the commands print."""

import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from nearkin.data import Report
from nearkin.evaluation.metrics.base import metric_of
from nearkin.evaluation.retrieval import Evaluation
from nearkin.present import Table as Shown
from nearkin.progress import Screen
from nearkin.runs import listing
from nearkin.runs.store import Run
from nearkin.studies import summary
from nearkin.studies.cells import Study
from nearkin.studies.pace import Pace
from nearkin.studies.runner import Job
from nearkin.studies.summary import Row
from nearkin.units import AGE, SECONDS

if TYPE_CHECKING:
    from nearkin.comparison.pages import Sheet
    from nearkin.studies.scheduler import Look
    from nearkin.studies.searching import Searching

TERMINAL = sys.stdout is not None and sys.stdout.isatty()  # None: the caller closed it
WIDTH = None if TERMINAL or "COLUMNS" in os.environ else 160  # a file has no right edge
out = Screen(width=WIDTH)
err = Screen(stderr=True)


def table(
    title: str | None, columns: Mapping[str, str], rows: Sequence[Sequence[str | Text]], below: str = ""
) -> Group:
    """Columns are name -> justification. Numbers never wrap, their headings do; words wrap where the terminal ends."""
    made = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for i, (name, justify) in enumerate(columns.items()):
        if justify == "right":
            widest = max((len(row[i]) for row in rows), default=0)
            heading = textwrap.fill(name.replace(" %", "\u00a0%"), max(widest, 12), break_long_words=False)
            made.add_column(heading, justify="right", no_wrap=True)
        else:
            longest = max((len(word) for row in rows for word in str(row[i]).split()), default=0)
            made.add_column(name, min_width=min(longest, 12), overflow="fold")
    for row in rows:
        made.add_row(*row)
    return Group(*([Text(title, "bold")] if title else []), made, *([Text(below)] if below else []))


def sheet(found: "Sheet | Shown") -> None:
    """Print a table of a comparison and the notes below it; of one without rows, the notes alone."""
    if isinstance(found, Shown):
        out.print(found.rich())
        return
    if not found.rows:
        out.print(Group(Text(found.title, "bold"), Text("\n".join(found.notes))))
        return
    words = len(found.header) - found.numbers
    columns = {name: "left" if i < words else "right" for i, name in enumerate(found.header)}
    out.print(table(found.title, columns, found.rows, below="\n".join(found.notes)))


def percent(value: float | None) -> str:
    """0.1234 as 12.34; a dash for nothing."""
    return "–" if value is None or value != value else f"{100 * value:.2f}"


def number(metric: str, value: float | None) -> str:
    """A metric's value: shares in per cent, with their sign; others as they are."""
    if value is None or value != value:
        return "–"
    return f"{100 * value:.2f} %" if metric_of(metric).is_share else f"{value:.4f}"


def result_table(run: Run, untrained: Run | None = None) -> Group:
    """Validation and test metrics of a final run, beside those of the untrained network where they are given."""
    validation, test = run.read_json("final.json")["validation"], run.metrics()
    rows = [[m, percent(validation.get(m)), number(m, test.get(m)).removesuffix(" %")] for m in test or validation]
    columns = {"metric": "left", "validation %": "right", "test %": "right"}
    if untrained is not None:
        before = untrained.metrics()
        columns["untrained test %"] = "right"
        rows = [[*row, number(row[0], before.get(row[0])).removesuffix(" %")] for row in rows]
    return table(None, columns, rows)


def result(run: Run, untrained: Run | None = None) -> None:
    """Print a final run: what it was, its metrics, how its epoch was chosen, where it is stored."""
    out.print(f"run:    {listing.describe(run.stored)}", highlight=False, soft_wrap=True)
    out.print(result_table(run, untrained))
    for line in result_words(run):
        out.print(line, highlight=False, soft_wrap=True)
    out.print(f"stored: {run.path}", highlight=False, soft_wrap=True)


def result_words(run: Run) -> list[str]:
    """The lines below the metrics: chosen epoch and rule, data, what was left out."""
    found = run.result if run.tested else run.read_json("final.json")
    chosen = f"epoch {found['epoch']} of {found['epochs_trained']}" if found["epochs_trained"] else "untrained"
    by = f" by {found['select']}" if found["select"] else ""
    data = f"data:   {found['split']}, data {run.head()['data_hash']}"
    words = [f"chosen: {chosen}; rule: {found['rule']}{by}", data]
    if "recipe" in found:
        changed = [f"{key} {theirs} -> {ours}" for key, (theirs, ours) in found["recipe"]["overridden"].items()]
        words.append(f"recipe: {found['recipe']['name']}" + (f"; otherwise: {', '.join(changed)}" if changed else ""))
    if found["skipped_images"]:
        count = found["skipped_images"]
        words.append(f"skipped: {count} unreadable image{'s' if count > 1 else ''}")
    words += [f"excluded: {what}: {why}" for what, why in found.get("excluded", {}).items()]
    if (run.path / "curve.json").exists():
        best = run.read_json("curve.json")["best_on_test"].get("map_at_r")
        if best:
            words.append(
                f"curve:  epoch {best['epoch']} has the best test map_at_r, {percent(best['value'])} %: "
                "chosen on the test set, so not a result"
            )
    if not run.tested:
        words.append("not tested" + (": trials never are" if run.purpose == "trial" else f": nearkin test {run.hash}"))
    return words


def runs_table(rows: list[dict[str, Any]]) -> Group:
    """One row per run, as `nearkin.runs.listing.row` tells it. What is the same in all of them stands above."""
    common = [key for key in ("data", "backbone", "dim", "seed") if len(rows) > 1 and len({r[key] for r in rows}) == 1]
    title = "all: " + " ".join(f"{key}={rows[0][key]}" for key in common) if common else None
    words = [key for key in ("data", "loss", "backbone") if key not in common]
    whole = [key for key in ("dim", "seed") if key not in common]
    columns = dict.fromkeys(("run", "state", *words), "left") | dict.fromkeys(whole, "right")
    columns |= dict.fromkeys(("validation map_at_r %", "map_at_r %", "recall@1 %", "age"), "right")
    lines = []
    for row in rows:
        figures = [percent(row[key]) for key in ("validation map_at_r", "map_at_r", "recall@1")]
        texts = ["–" if row[key] is None else str(row[key]) for key in (*words, *whole)]
        lines.append([row["run"], row["state"], *texts, *figures, AGE.text(row["age"])])
    return table(title, columns, lines)


def study_table(study: Study, rows: list[Row]) -> Group:
    """One row per place on the axes, best validation first; validation beside test."""
    return summary.table_of(study, rows).rich()


def jobs_table(jobs: list[Job], pace: Pace) -> Group:
    """What runs now, how far everything is, and the time left."""
    rows = []
    for job in jobs:
        if not job.running:
            continue
        last = job.watched()
        at = listing.place(last.get("epoch", last.get("epoch_end", "?")), last.get("epochs", "?"))
        loss = f"{last['loss']:.4g}" if "loss" in last else "–"
        fold = [] if job.cell.fold is None else [f"fold {job.cell.fold}"]
        rows.append([" ".join([*job.cell.labels, *fold]), str(job.cell.seed), at, loss, percent(job.best)])
    done, failed = (sum(job.state == s for job in jobs) for s in ("done", "failed"))
    own = [job for job in jobs if job.same is None and job.part and job.error is None]
    left = pace.left(sum(job.worked for job in own), sum(job.work for job in own))
    title = f"{done} of {len(jobs)} runs done" + (f", {failed} failed" if failed else "")
    title += f"; about {SECONDS.text(left)} left" if left is not None else ""
    right = {"seed": "right", "epoch": "right", "loss": "right", "best validation recall@1 %": "right"}
    return table(title, {"running": "left", **right}, rows)


def searching_table(found: "Searching", look: "Look") -> Group:
    """How far every search is, what is best so far, and the time left."""
    rows = []
    for ledger in found.ledgers:
        trials, best = ledger.trials(), ledger.best()
        ended = sum(trial.state != "running" for trial in trials)
        running = {task.path for task in look.running}
        here = sum(run.path in running for trial in found.open if trial.ledger is ledger for run in trial.runs)
        rows.append([ledger.search.name, f"{ended}", f"{here}", percent(best.score if best else None)])
    left = found.left()
    title = f"searching; about {SECONDS.text(left)} left" if left is not None else "searching"
    right = {"trials done": "right", "running here": "right", "best validation %": "right"}
    return table(title, {"row": "left", **right}, rows)


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
            out.print(f"{kind}: {line}", highlight=False, soft_wrap=True)
    out.print("everything is in order" if report.ok else "something is wrong", highlight=False)


def evaluation_table(evaluation: Evaluation) -> Group:
    """What was measured, over how many queries, and what was left out."""
    title = f"{evaluation.n:,} queries, gallery of {evaluation.gallery:,}, {evaluation.distance}"
    columns = {"metric": "left", "value": "right"}
    if evaluation.intervals:
        columns["95 % over test classes (not\u00a0seeds)"] = "right"
    columns["queries"] = "right"
    rows = []
    for key, value in evaluation.metrics.items():
        share = metric_of(key).is_share
        row = [key, _number(value, share)]
        if evaluation.intervals:
            interval = evaluation.intervals.get(key)
            row.append(" to ".join(_number(end, share) for end in interval) if interval else "")
        row.append(f"{np.isfinite(evaluation.per_query[key]).sum():,}" if key in evaluation.per_query else "")
        rows.append(row)
    return table(title, columns, rows, below=str(evaluation.excluded.get("reason", "")))


def _number(value: float, share: bool) -> str:
    return f"{100 * value:.2f} %" if share else f"{value:.4f}"
