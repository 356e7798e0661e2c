"""An evaluation for people: a table, a progress bar, one row a query in a parquet file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from nearkin.errors import NearkinError
from nearkin.evaluation.retrieval import Evaluation
from nearkin.evaluation.search import Progress as Callback
from nearkin.registry import METRICS

SHARES = {"query", "clusters"}      # kinds that lie between 0 and 1 and are told in per cent


def render(evaluation: Evaluation) -> Table:
    """What was measured, over how many queries, and what was left out."""
    title = f"{evaluation.n:,} queries, gallery of {evaluation.gallery:,}, {evaluation.metric}"
    table = Table(title=title, caption=str(evaluation.excluded.get("reason", "")) or None, caption_justify="left")
    table.add_column("metric")
    table.add_column("value", justify="right")
    if evaluation.intervals:
        table.add_column("95 % over test classes (not seeds)", justify="right")
    table.add_column("queries", justify="right")
    for key, value in evaluation.metrics.items():
        share = METRICS[key.partition("@")[0]].kind in SHARES
        row = [key, _number(value, share)]
        if evaluation.intervals:
            interval = evaluation.intervals.get(key)
            row.append(" to ".join(_number(end, share) for end in interval) if interval else "")
        row.append(f"{np.isfinite(evaluation.per_query[key]).sum():,}" if key in evaluation.per_query else "")
        table.add_row(*row)
    return table


def _number(value: float, share: bool) -> str:
    return f"{100 * value:.2f} %" if share else f"{value:.4f}"


@contextmanager
def progress_bar(console: Console | None = None) -> Iterator[Callback]:
    """A callback for `evaluate(progress=...)` that draws a bar with the time left."""
    time = (TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(TextColumn("{task.description}"), BarColumn(), *time, console=console, transient=True) as bar:
        task = bar.add_task("evaluating", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def write_per_query(evaluation: Evaluation, path: str | Path) -> None:
    """One row a query: its position, its label, each metric (empty where undefined). Whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    columns = {"query": np.arange(evaluation.n), "label": evaluation.labels}
    table = pa.table(columns | {key: pa.array(value, from_pandas=True) for key, value in evaluation.per_query.items()})
    draft = path.with_name(path.name + ".part")
    try:
        pq.write_table(table, draft)
        os.replace(draft, path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise NearkinError(f"{path} cannot be written: {error.strerror or error}") from error
