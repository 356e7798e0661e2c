"""Stores made up for tests of the report: files as runs leave them, numbers drawn at random, nothing trained."""

import json
from zlib import crc32

import numpy as np
import yaml

from nearkin.config.spec import make_spec
from nearkin.runs.defaults import resolve

METRICS = ("recall@1", "recall@2", "recall@4", "recall@8", "r_precision", "map_at_r")
ROOT = "/home/zork99/My Photos/birds"  # a folder that is not here
CLASSES = ("wren", "<script>alert(1)</script>", "=1+1", 'O\'Brien & "sons"', "tit\u2028mouse")
CURVES = 3  # epochs of a learning curve


def write_run(
    root,
    words,
    level,
    *,
    seed=0,
    fold=None,
    queries=20,
    dim=4,
    curve=False,
    validated=True,
    data="d" * 16,
    excluded=0,
    classes=CLASSES,
    name=None,
    per_query=True,
):
    """One tested run around a level of quality; its hash."""
    rng = np.random.default_rng(crc32(json.dumps([words, seed, fold, data], sort_keys=True).encode()))
    base = {"dataset": "folder", "root": ROOT, "backbone": "convnet", "dim": 16, "epochs": CURVES, "seed": seed}
    spec = resolve(make_spec(base | words))
    trained = spec.train.epochs > 0
    name = name or f"{rng.integers(16**12):012x}"
    path = root / name
    path.mkdir(parents=True)
    head = {"schema": 2, "spec": spec.whole(), "data_hash": data, "split_hash": f"{data[:10]}{fold or 0:02d}"}
    (path / "spec.yaml").write_text(yaml.safe_dump(head, sort_keys=False, allow_unicode=True))

    def values(at):
        return {m: float(np.clip(at + 0.02 * rng.normal() + 0.03 * i, 0, 1)) for i, m in enumerate(METRICS)}

    test, validation = values(level), {"map_at_r": float(level + 0.05 * rng.normal())} if validated and trained else {}
    final = {
        "epoch": CURVES - 1 if trained else 0,
        "epochs_trained": CURVES if trained else 0,
        "steps": 30 if trained else 0,
        "rule": "untrained"
        if not trained
        else "best epoch on held-out training classes"
        if validated
        else "last epoch",
        "select": "map_at_r" if validated and trained else None,
        "validation": validation,
        "seconds": 10.0 + 90 * rng.random(),
        "train": {"rho": float(rng.random())},
        "split": "train 8 images of 4 classes; split x",
        "skipped_images": 0,
    }
    result = {
        **final,
        "hash": name,
        "test": test,
        "test_n": queries,
        "evaluation": 1,
        "data_hash": data,
        "excluded": {"lone_queries": excluded, "reason": "alone"} if excluded else {},
    }
    (path / "final.json").write_text(json.dumps(final))
    (path / "result.json").write_text(json.dumps(result))
    (path / "split.json").write_text(json.dumps({"train": [0], "query": list(range(queries)), "gallery": None}))
    told = {
        "python": "3.11.7",
        "versions": {"nearkin": "0.1.0", "torch": "2.6"},
        "commit": "c" * 40,
        "cpu": "a CPU",
        "platform": "Linux-zork99-laptop",
        "threads": 1,
    }
    (path / "environment.json").write_text(json.dumps(told))
    lines = []
    for epoch in range(1, CURVES + 1) if trained else ():
        lines.append({"step": epoch, "epoch": epoch, "epochs": CURVES, "loss": 1 / epoch})
        own = {"map_at_r": float(level * epoch / CURVES)} if validated else {}
        lines.append({"epoch_end": epoch, "epochs": CURVES, "validation": own})
    (path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if curve:
        points = [{"epoch": e, "metrics": values(level * e / CURVES)} for e in range(1, CURVES)]
        points.append({"epoch": CURVES, "metrics": {m: v + 0.01 for m, v in test.items()}})
        (path / "curve.json").write_text(json.dumps({"epochs": points, "validated": CURVES - 1}))
    if per_query:
        _write_test_set(path, rng, queries, dim, classes)
    return name


def _write_test_set(path, rng, queries, dim, classes):
    import pyarrow as pa
    import pyarrow.parquet as pq

    labels = np.array([classes[i % len(classes)] for i in range(queries)])
    z = rng.normal(size=(queries, dim)).astype(np.float32)
    np.savez(
        path / "embeddings.npz", embeddings=z, labels=labels, rows=np.arange(queries), roles=np.full(queries, "both")
    )
    paths = [f"{label}/{i}.jpg" for i, label in enumerate(labels.tolist())]
    table = {"row": np.arange(queries), "path": paths, "class": labels.tolist(), "role": ["both"] * queries}
    pq.write_table(pa.table(table), path / "test.parquet")
    columns = {"query": np.arange(queries), "label": labels.tolist()} | {m: rng.random(queries) for m in METRICS}
    pq.write_table(pa.table(columns), path / "per_query.parquet")


def write_study(root, name, cells, *, axes=("loss",), file="", **told):
    """studies/NAME/study.json; a cell is (labels, seed, run hash or None, error) and may have a fold and a baseline."""
    path = root / "studies" / name / "study.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    known = [
        {
            "labels": list(labels),
            "seed": seed,
            "fold": None,
            "run": run or "refused",
            "baseline": None,
            "error": error,
            **more,
        }
        for labels, seed, run, error, *rest in cells
        for more in [rest[0] if rest else {}]
    ]
    study = {
        "name": name,
        "twin": "",
        "axes": list(axes),
        "metrics": ["recall@1", "map_at_r"],
        "select": "map_at_r",
        "readings": ["chosen"],
        "evaluations": ["separated"],
        "cells": known,
        "file": file or f"name: {name}\n",
        **told,
    }
    path.write_text(json.dumps(study))
    openings = [
        {"split": yaml.safe_load((root / run / "spec.yaml").read_text())["split_hash"], "run": run}
        for _, _, run, *_ in cells
        if run and (root / run / "spec.yaml").exists()
    ]
    with open(root / "openings.jsonl", "a") as out:
        out.writelines(json.dumps(line) + "\n" for line in openings)
    return name


LOSSES = {"triplet": 0.4, "<b>margin</b>": 0.5, "multi_similarity": 0.6, "proxy_anchor": 0.55, "=cmd|x": 0.45}
WORDS = {"<b>margin</b>": "margin", "=cmd|x": "contrastive"}


def plain_study(root, name="plain", seeds=(0, 1, 2), failed=True, **options):
    """Five losses with hostile labels, an untrained row, and a run that failed."""
    cells = []
    for label, level in LOSSES.items():
        for seed in seeds:
            words = {"loss": WORDS.get(label, label)}
            cells.append(((label,), seed, write_run(root, words, level, seed=seed, **options), None))
    for seed in seeds:
        run = write_run(root, {"epochs": 0}, 0.1, seed=seed, **options)
        cells.append((("random_head (untrained)",), seed, run, None, {"baseline": "random_head"}))
    if failed:
        cells.append(
            (("histogram",), 0, None, f"RuntimeError: out of memory in {ROOT}/wren/1.jpg, /opt/secret/x.py line 3")
        )
    return write_study(
        root, name, cells, file=f"# {name}\nbase: {{dataset: folder, root: {ROOT}}}\naxes: {{loss: [triplet]}}\n"
    )
