"""The values of every query, as a Parquet file."""

from pathlib import Path

import numpy as np

from nearkin.errors import NearkinError
from nearkin.evaluation.retrieval import Evaluation
from nearkin.storage import atomic


def check_per_query(path: Path) -> None:
    """Refuse a file name that does not end in .parquet."""
    if path.suffix.lower() != ".parquet":
        raise NearkinError(f"{path}: values per query are written as .parquet, such as {path.with_suffix('.parquet')}")


def write_per_query(evaluation: Evaluation, path: str | Path) -> None:
    """Write a Parquet file with one row per query: its row in the input, its label, its value of every metric.

    A value is empty where the metric is not defined for the query. If writing fails, no file is left behind.

    Parameters:
        evaluation: what `evaluate` returned.
        path: the file; its folder must exist.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    check_per_query(path)
    if not path.parent.is_dir():
        raise NearkinError(f"{path} cannot be written: there is no folder {path.parent}")
    rows = np.arange(evaluation.n) if evaluation.rows is None else evaluation.rows
    columns = {"query": rows, "label": evaluation.labels}
    table = pa.table(columns | {key: pa.array(value, from_pandas=True) for key, value in evaluation.per_query.items()})
    with atomic(path) as scratch:
        pq.write_table(table, scratch / path.name)
