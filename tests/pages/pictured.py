"""Stored runs written by hand, so that tests of pictures need no training."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from PIL import Image

import nearkin
from nearkin.config.spec import make_spec
from nearkin.pages._tested import Tested
from nearkin.runs.store import Run

SIDE = 32


def clusters(classes=6, each=10, dim=8, noise=0.35, seed=0, names=None):
    """Embeddings around one direction per class, and labels."""
    rng = np.random.default_rng(seed)
    middle = rng.normal(size=(classes, dim))
    index = np.repeat(np.arange(classes), each)
    z = (middle[index] + noise * rng.normal(size=(len(index), dim))).astype(np.float32)
    names = np.array(names or [f"class {c}" for c in range(classes)])
    return z, names[index]


def write_run(folder, z, labels, *, roles=None, rows=None, root=None, paths=None, precision=None, name="r" * 12):
    """A tested run in folder/NAME with what the pictures read; precision=False: without values per query."""
    run = Run(folder / name)
    run.path.mkdir(parents=True)
    n = len(z)
    roles = np.full(n, "both", "<U7") if roles is None else np.asarray(roles)
    rows = np.arange(n) if rows is None else np.asarray(rows)
    paths = [f"image {row}" for row in rows] if paths is None else paths
    data = {"name": "folder", "root": None if root is None else str(root), "size": SIDE, "resize": SIDE, "crop": SIDE}
    spec = make_spec({"dataset": "folder", "backbone": "convnet", "epochs": 2}).whole()
    head = {"schema": 2, "spec": spec | {"data": data}, "data_hash": "d" * 16, "split_hash": "5" * 12}
    (run.path / "spec.yaml").write_text(yaml.safe_dump(head))
    np.savez(run.path / "embeddings.npz", embeddings=z, labels=labels, rows=rows, roles=roles)
    listed = {"row": rows, "path": paths, "class": labels.tolist(), "role": roles.tolist()}
    pq.write_table(pa.table(listed), run.path / "test.parquet")
    if precision is None:
        sides = {} if (roles == "both").all() else {"query": roles != "gallery", "gallery": roles != "query"}
        precision = nearkin.evaluate(z, labels, metrics=["map_at_r"], **sides).per_query["map_at_r"]
    if precision is not False:
        columns = {"label": labels[roles != "gallery"].tolist(), "map_at_r": np.asarray(precision, float)}
        pq.write_table(pa.table(columns), run.path / "per_query.parquet")
    (run.path / "result.json").write_text(json.dumps({"test_n": n}))
    return run


def write_images(root, labels, folders=None):
    """One small PNG per label, each of its own colour; the paths below the root, in the order of a folder's table."""
    paths = []
    for i, label in enumerate(labels):
        path = root / (folders or {}).get(label, str(label)) / f"{i:04d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (SIDE, SIDE), colour_of(i)).save(path)
        paths.append(path.relative_to(root).as_posix())
    return paths


def colour_of(i):
    return (i * 7 % 256, 255 - i * 5 % 256, i * 13 % 256)


def pictured(tmp_path, name="best", **options):
    """Clusters whose images are files."""
    z, labels = clusters(**options)
    root = tmp_path / "images"
    paths = write_images(root, labels)
    return Tested.of(write_run(tmp_path / "runs", z, labels, root=root, paths=paths), name), root
