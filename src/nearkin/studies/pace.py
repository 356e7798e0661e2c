"""How long a study takes: before it begins, and while it runs.

Work is counted in batches: a step is one, an image that is only embedded a third of what it costs in a step.
"""

import statistics
import tempfile
import time
from contextlib import suppress
from typing import Any

from nearkin.config.spec import RunSpec, make_spec
from nearkin.runs.fit import train
from nearkin.runs.prepare import Prepared
from nearkin.runs.store import Run, Store

EMBEDDED = 0.35  # cost of embedding an image, of which training has the backward pass too
TRIED = 4  # steps that are tried where no stored run tells


def work_of(prepared: Prepared) -> float:
    """What a run costs, in batches."""
    spec, split = prepared.spec.train, prepared.split
    batch, epochs = spec.batch or 1, spec.epochs or 0
    per_epoch = spec.batches_per_epoch or max(1, len(split.train) // batch)
    warmup = 0 if spec.warmup_counts else spec.warmup or 0
    validated = len(split.val) * (epochs // spec.eval_every)
    curve = len(split.test.images) * epochs if spec.curve else 0
    embedded = validated + curve + len(split.train) + len(split.val) + len(split.test.images)
    return (epochs + warmup) * per_epoch + EMBEDDED * embedded / batch


class Pace:
    """The time left of a study, from what was done since it began.

    Parameters:
        workers: how many runs go at a time.
    """

    def __init__(self, workers: int):
        self.workers = workers
        self.began = time.monotonic()
        self.first: float | None = None  # work that was done when it began

    def left(self, done: float, all_of_it: float) -> float | None:
        """Seconds until all of it is done; None while nothing can be said."""
        if self.first is None:
            self.first = done
        gained, elapsed = done - self.first, time.monotonic() - self.began
        return (all_of_it - done) * elapsed / gained if gained > 0 and elapsed > 2 else None


def seconds_per_batch(spec: RunSpec, data_hash: str, store: Store) -> float:
    """What a batch of this network costs: the median of stored runs of the same network, data and batch, else a few
    steps that are tried."""
    costs = [cost for run in store.runs() if (cost := _stored_cost(run, spec, data_hash)) is not None]
    return statistics.median(costs) if costs else _tried(spec)


def _stored_cost(run: Run, spec: RunSpec, data_hash: str) -> float | None:
    try:
        head, final = run.head(), run.read_json("final.json") if run.final else None
    except Exception:  # a damaged run tells nothing
        return None
    if final is None or not final["steps"] or head.get("data_hash") != data_hash:
        return None
    stored, asked = head["spec"], spec.whole()
    alike = (("model", "backbone"), ("model", "cut"), ("train", "batch"), ("data", "crop"), ("data", "size"))
    same = all(stored[room].get(key) == asked[room].get(key) for room, key in alike)
    return final["seconds"] / final["steps"] if same else None


class _Enough(Exception):
    """The steps that were to be tried are done."""


def _tried(spec: RunSpec) -> float:
    short: dict[str, Any] = {
        "purpose": "trial",
        "model.init": "kaiming",  # how a head begins, and what is stored at the end, cost nothing in a step
        "train.epochs": 1,
        "train.batches_per_epoch": TRIED,
        "train.warmup": 0,
        "train.average": 0.0,
        "train.blend": 1.0,
        "train.curve": False,
    }
    if spec.train.epochs == 0:  # heads that are not trained, or not at all
        short |= {"model.head": "linear", "model.dim": 8}
    speeds: list[float] = []

    def watch(entry: dict[str, Any]) -> None:
        speeds.extend([entry["images_per_s"]] if "images_per_s" in entry else [])
        if len(speeds) == TRIED:  # before anything is validated, embedded or stored
            raise _Enough

    with tempfile.TemporaryDirectory() as folder, suppress(_Enough):
        train(make_spec(spec, short), runs=folder, test=False, watch=watch)
    return (spec.train.batch or 1) / max(speeds)
