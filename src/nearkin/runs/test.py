"""The test of a final run: labels opened once, metrics of every query stored."""

from typing import Any

import numpy as np
import torch

from nearkin.evaluation.per_query import write_per_query
from nearkin.evaluation.retrieval import Evaluation, evaluate
from nearkin.numerics import unit
from nearkin.runs.prepare import Prepared
from nearkin.runs.store import Run
from nearkin.storage import atomic


def test(run: Run, prepared: Prepared, z: torch.Tensor, space: dict[str, float]) -> None:
    """Open the test labels of a final run, measure, store."""
    split = prepared.split
    labels = split.test.open(run)
    if split.test.gallery is None:
        evaluation = evaluate(z, labels)
    else:
        q = len(split.test.query)
        evaluation = evaluate(z[:q], labels[:q], gallery=(z[q:], labels[q:]))
    with atomic(run.path / "embeddings.npz") as scratch:
        np.savez(scratch / "embeddings.npz", embeddings=unit(z).numpy(), labels=labels, rows=split.test.images)
    write_per_query(evaluation, run.path / "per_query.parquet")
    run.write_json("result.json", summary(run, prepared, evaluation, space))


def summary(run: Run, prepared: Prepared, evaluation: Evaluation, space: dict[str, float]) -> dict[str, Any]:
    """What result.json holds."""
    final = run.read_json("final.json")
    return {
        "hash": run.hash,
        "rule": final["rule"],
        "select": final["select"],
        "epoch": final["epoch"],
        "epochs_trained": final["epochs_trained"],
        "seconds": final["seconds"],
        "validation": final["validation"],
        "train": space,
        "test": evaluation.metrics,
        "test_n": evaluation.n,
        "excluded": evaluation.excluded,
        "skipped_images": len(prepared.skipped),
        "split": prepared.split.describe(prepared.table),
        "data_hash": prepared.data_hash,
    }
