"""Stores made by hand: runs with given results, and studies over them, without any training."""

import json
import os
import traceback
from multiprocessing import forkserver
from pathlib import Path

import numpy as np
import yaml
from typer.testing import CliRunner

from nearkin.cli.app import app
from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError
from nearkin.runs.run import SCHEMA
from nearkin.runs.store import Store
from nearkin.studies._local import carry_out, warm_up
from nearkin.studies.runner import note, tasks_of
from nearkin.studies.scheduler import Executor, Working, schedule

SPACE = {"rho": 0.5, "pi_intra": 0.3, "pi_inter": 0.6, "pi_ratio": 0.5}


def add_run(
    root,
    name,
    words,
    metrics,
    *,
    seed=0,
    data_hash="d0",
    validation=None,
    curve=None,
    steps=100,
    queries=None,
    per_query=None,
):
    """runs/NAME: final and tested, with these test metrics (shares) and, epoch by epoch, this test curve. `per_query`
    is metric -> class -> values of its queries."""
    path = Path(root) / name
    path.mkdir(parents=True)
    words = {"dataset": "glyphs", "backbone": "convnet", "dim": 64, "epochs": 4} | words
    spec = make_spec(words | {"train.seed": seed}).whole()
    spec["train"]["batch"] = spec["train"]["batch"] or 32
    epochs = spec["train"]["epochs"]
    head = {"schema": SCHEMA, "spec": spec, "data_hash": data_hash, "split_hash": "s0"}
    (path / "spec.yaml").write_text(yaml.safe_dump(head))
    final = {
        "rule": "best epoch on held-out training classes",
        "select": "map_at_r",
        "epoch": epochs,
        "epochs_trained": epochs,
        "steps": steps if epochs else 0,
        "validation": validation or {"recall@1": 0.5, "map_at_r": 0.4},
        "train": SPACE,
        "split": "train 90 classes",
        "skipped_images": 0,
        "seconds": 10.0,
    }
    (path / "final.json").write_text(json.dumps(final))
    noted = {} if queries is None else {"test_n": queries}
    (path / "result.json").write_text(json.dumps(final | {"hash": name, "test": metrics} | noted))
    if per_query is not None:
        _write_per_query(path, per_query)
    if curve is not None:
        points = [{"epoch": i + 1, "metrics": each} for i, each in enumerate(curve)]
        (path / "curve.json").write_text(
            json.dumps({"epochs": points, "validated": points[-1]["epoch"], "best_on_test": {}})
        )
    return path


def _write_per_query(path, per_query):
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = next(iter(per_query.values()))
    labels = [label for label, values in first.items() for _ in values]
    columns = {
        metric: [float(v) for values in classes.values() for v in values] for metric, classes in per_query.items()
    }
    pq.write_table(pa.table({"query": range(len(labels)), "label": labels} | columns), path / "per_query.parquet")


def add_study(root, name, axes, cells, **more):
    """runs/studies/NAME/study.json over cells (labels, seed, run[, fold, baseline, error])."""
    told = {
        "name": name,
        "twin": "",
        "axes": list(axes),
        "metrics": ["recall@1", "map_at_r"],
        "select": "map_at_r",
        "readings": ["chosen"],
        "evaluations": ["separated"],
        "file": f"name: {name}\n",
        "cells": [{"fold": None, "baseline": None, "error": None} | cell for cell in cells],
    } | more
    path = Path(root) / "studies" / name / "study.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(told))
    return path


def losses_study(root, values, name="toy", metric="map_at_r", **more):
    """A study with an axis `loss`: loss -> seed -> value of one metric. What begins with `untrained` is not trained."""
    cells = []
    for loss, own in values.items():
        for seed, value in own.items():
            run = f"{loss}{seed}".replace("_", "").ljust(12, "0")
            untrained = loss.startswith("untrained")
            words = {"epochs": 0} if untrained else {"loss": loss}
            add_run(root, run, words, {"recall@1": value, "map_at_r": value} | {metric: value}, seed=seed)
            cells.append({"labels": [loss], "seed": seed, "run": run, "baseline": "pooled" if untrained else None})
    add_study(root, name, ["loss"], cells, **more)
    return root


def contents(runs):
    """Weights, embeddings and results of all runs, without clocks; of paused ones the last checkpoint."""
    found = {}
    for run in Store(runs).runs():
        state = run.load("model.pt" if run.final else "checkpoint.pt")
        weights = {key: value.numpy().tobytes() for key, value in state["model"].items()}
        arrays = {}
        for name in ("embeddings.npz", "validation.npz"):
            if (run.path / name).exists():
                with np.load(run.path / name) as held:
                    arrays |= {f"{name} {key}": held[key].tobytes() for key in held.files}
        result = run.result if run.tested else run.read_json("final.json") if run.final else {}
        result = {k: v for k, v in result.items() if k not in ("seconds", "tested")}
        found[run.hash] = (weights, arrays, result, run.metrics() if run.tested else {})
    return found


def said(*words):
    """Exit code and all words; an exception other than ours fails the test."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    error = done.exception
    assert error is None or isinstance(error, NearkinError | SystemExit), (words, repr(error))
    told = done.output + (str(error) if isinstance(error, NearkinError) else "")
    return done.exit_code, " ".join(told.split())


def carried_out(jobs, executor):
    """Run the jobs of a study, as its command does."""
    with executor:
        for look in schedule(executor, tasks_of(jobs)):
            note(jobs, look)


def beside(work):
    """A process forked from this one, which does `work`; the caller waits for it. Its workers are forked from the
    process that those of this one are forked from: what that has imported is not imported again."""
    warm_up()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            for known in (forkserver, forkserver._forkserver):
                known.ensure_running = lambda: None  # it runs, but not as a child of this process
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


class Done(Working):
    """A task that is over when it is started."""

    alive = False

    def __init__(self, failure):
        self.failure = failure

    def ended(self):
        return self.failure

    def stop(self): ...


class Here(Executor):
    """Carries tasks out at once, in this process; Ctrl-C comes before task number `stop_at`."""

    def __init__(self, workers=1, stop_at=None):
        super().__init__(workers)
        self.tasks, self.stop_at = [], stop_at

    def start(self, task, worker):
        if self.stop_at == len(self.tasks):
            raise KeyboardInterrupt
        self.tasks.append(task)
        return Done(carry_out(task))

    def wait(self, working, seconds): ...
    def close(self): ...
