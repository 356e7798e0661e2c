"""One run, from its spec to its stored result: data, split, model, training, then the test, once.

    run = nearkin.train({"dataset": "glyphs", "loss": "multi_similarity", "miner": "multi_similarity"})
    run.result["test"]["recall@1"]
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nearkin.config.spec import RunSpec, make_spec
from nearkin.engine.batches import seed_of
from nearkin.engine.device import pick_device
from nearkin.engine.distributed import joined, ranks, synchronise
from nearkin.engine.embed import embed
from nearkin.engine.loop import fit
from nearkin.engine.precision import bf16_trap
from nearkin.errors import NearkinError
from nearkin.evaluation.retrieval import evaluate
from nearkin.memory import Memory
from nearkin.models import Model, build_model
from nearkin.runs import events
from nearkin.runs.embed import load_model
from nearkin.runs.events import Watch
from nearkin.runs.prepare import Prepared, make_objective, make_source, prepare
from nearkin.runs.store import Run, Store
from nearkin.runs.test import test

SPACE = ("rho", "pi_intra", "pi_inter", "pi_ratio")     # of the training embeddings, as Roth et al. 2020 have them


def train(
    spec: RunSpec | Mapping[str, Any] | None = None,
    *,
    runs: Path | str = "runs",
    watch: Watch = lambda entry: None,
    tensorboard: bool = False,
    **words: Any,
) -> Run:
    """Train, select on validation classes, test once, store.

    A finished run is returned as it is; an interrupted one goes on where its last checkpoint was. The caller's random
    state and torch's settings are afterwards what they were.

    Parameters:
        spec: words or a tree, as on the command line or in YAML; or a `RunSpec`.
        runs: the folder of the stored runs.
        watch: called with every entry of the log.
        tensorboard: write TensorBoard events too.
        words: further settings, over those of `spec`: `train(spec, seed=1)`.
    """
    prepared = prepare(make_spec(spec, words))
    with joined(pick_device(prepared.spec.train.device)) as device, untouched():
        here = ranks()
        here.check(prepared.spec.train.batch or 0)
        run = Store(runs).run(prepared.hash, writes=here.first)
        if here.share(lambda: run.done):
            return run
        with run.lock():
            if tensorboard and here.first:
                watch = events.both(watch, events.tensorboard(run.path / "tensorboard"))
            _train(run, prepared, watch if here.first else lambda entry: None, device)
        here.wait()
    return run


@contextmanager
def untouched() -> Iterator[None]:
    """Inside, torch is deterministic; afterwards its settings and its random state are the caller's again."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    with torch.random.fork_rng():
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)


def _train(run: Run, prepared: Prepared, watch: Watch, device: torch.device) -> None:
    spec, split, table, here = prepared.spec, prepared.split, prepared.table, ranks()
    began = time.time()
    if spec.train.amp and device.type == "cpu" and (trap := bf16_trap()):
        raise NearkinError(f"train.amp=true: {trap}")
    run.start(spec, processes=here.world, data_hash=prepared.data_hash, split_hash=split.hash())
    torch.manual_seed(seed_of(spec.train.seed, 0, 3))
    model = build_model(**spec.model.model_dump(exclude={"views"}))
    classes, labels = np.unique(table.labels[split.train], return_inverse=True)
    objective = make_objective(spec, model, num_classes=len(classes))
    memory = None
    if spec.memory.size:
        objective.check_memory()
        memory = Memory(spec.memory.size, model.dim, warmup=spec.memory.warmup, device=device)
    if here.world > 1 and objective.mixes:
        raise NearkinError("mixup mixes images of different processes: train it with one")
    source = make_source(prepared, model.to(device))
    synchronise(model)

    def validate(model: Model) -> dict[str, float]:
        z = embed(model, source, split.val, device)
        metrics = ["recall@1", spec.train.select]
        return here.share(lambda: evaluate(z, table.labels[split.val], k=(1,), metrics=metrics).metrics)

    if not here.share(lambda: run.final):
        assert spec.sampler is not None                 # resolved
        sampler = spec.sampler.cls(labels, spec.train.batch, spec.train.seed, **spec.sampler.params)
        if sampler.needs_bank and not here.share(lambda: run.begun):
            sampler.reserve(model.dim)
            sampler.fill(embed(model, source, split.train, device, title="Filling the sampler's bank"))
        done = fit(
            run, spec.train, model, objective, sampler, source, split.train, labels,
            validate=validate if len(split.val) else None, device=device, memory=memory, watch=watch,
        )  # fmt: skip
        run.write_json("final.json", {
            "epoch": done.best_epoch, "epochs_trained": done.epoch, "steps": done.step,
            "rule": spec.protocol.cls.rule, "select": spec.train.select if done.validation else None,
            "validation": done.validation, "seconds": round(time.time() - began, 1),
        })  # fmt: skip
    load_model(model, run)
    trained = embed(model, source, split.train, device)
    tested = embed(model, source, split.test.images, device)
    if here.first:
        test(run, prepared, tested, evaluate(trained, labels, metrics=SPACE).metrics)
        (run.path / "checkpoint.pt").unlink(missing_ok=True)
