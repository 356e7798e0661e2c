"""One run, from its spec to its stored result: data, split, model, training, then the test, once.

    run = nearkin.train({"dataset": "glyphs", "loss": "multi_similarity", "miner": "multi_similarity"})
    run.result["test"]["recall@1"]
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nearkin.config.spec import DataSpec, RunSpec, make_spec
from nearkin.data import Decoded, PixelSource, Table, load_table
from nearkin.data.cache import data_hash, decoded
from nearkin.engine.batches import Source, seed_of
from nearkin.engine.distributed import Ranks, join, partners, synchronise
from nearkin.engine.loop import fit
from nearkin.engine.precision import bf16_trap
from nearkin.errors import NearkinError
from nearkin.evaluation.render import write_per_query
from nearkin.evaluation.retrieval import Evaluation, evaluate
from nearkin.memory import Memory
from nearkin.methods.build import build
from nearkin.models import Model, build_model
from nearkin.models.cut import FeatureSource
from nearkin.pairs import unit
from nearkin.protocols.split import Split
from nearkin.registry import hyperparameters
from nearkin.runs import events
from nearkin.runs.defaults import fit_batch, resolve
from nearkin.runs.embed import embed, load_model, pick_device
from nearkin.runs.events import Watch
from nearkin.runs.store import Run, Store
from nearkin.storage import atomic

SPACE = ("rho", "pi_intra", "pi_inter", "pi_ratio")     # of the training embeddings, as Roth et al. 2020 have them


@dataclass
class Prepared:
    """All that is decided before the first step."""

    spec: RunSpec
    table: Table
    split: Split
    pixels: PixelSource
    data_hash: str
    skipped: list[tuple[str, str]]

    @property
    def hash(self) -> str:
        return self.spec.hash(self.data_hash, self.split.hash())


def prepare(spec: RunSpec, known: dict[str, Any] | None = None) -> Prepared:
    """`known` remembers tables from call to call, for studies."""
    asked, spec = spec, resolve(spec)
    data = spec.data
    key = repr(data)
    known = {} if known is None else known
    if key not in known:
        known[key] = _load(data)
    table, images, fingerprint, skipped = known[key]
    split = spec.protocol.cls(**spec.protocol.params).split(table)
    pixels = PixelSource(images, size=data.size or 0, crop=data.crop or 0, augment=table.augment)
    spec = fit_batch(asked, spec, table.labels[split.train])
    return Prepared(spec, table, split, pixels, fingerprint, skipped)


def _load(data: DataSpec) -> tuple[Table, Table | Decoded, str, list[tuple[str, str]]]:
    """The table without unreadable images, its pixels, its hash, what was skipped."""
    drawn = {"size": data.resize} if "size" in hyperparameters(data.cls) else {}     # images made to measure
    table = load_table(data.name, data.root, **data.params, **drawn)
    if table.images is not None:
        return table, table, data_hash(table), []
    images = decoded(table, resize=data.resize or 0, on_error=data.on_error)
    if images.skipped:
        table = table.take(images.kept)
    return table, images, data_hash(table), images.skipped


def train(
    spec: RunSpec | Mapping[str, Any] | None = None,
    *,
    runs: Path | str = "runs",
    watch: Watch = lambda entry: None,
    tensorboard: bool = False,
    **words: Any,
) -> Run:
    """Train, select on validation classes, test once, store. A finished run is returned as it is; an interrupted one
    goes on where its last checkpoint was."""
    prepared = prepare(make_spec(spec, words))
    with partners():
        ranks, device = join(pick_device(prepared.spec.train.device))
        ranks.check(prepared.spec.train.batch or 0)
        run = Store(runs).run(prepared.hash, writes=ranks.first)
        if ranks.share(lambda: run.done):
            return run
        with run.lock():
            if tensorboard and ranks.first:
                watch = events.both(watch, events.tensorboard(run.path / "tensorboard"))
            _train(run, prepared, watch if ranks.first else lambda entry: None, ranks, device)
        ranks.wait()
    return run


def _train(run: Run, prepared: Prepared, watch: Watch, ranks: Ranks, device: torch.device) -> None:
    spec, split, table = prepared.spec, prepared.split, prepared.table
    began = time.time()
    torch.use_deterministic_algorithms(True, warn_only=True)
    if spec.train.amp and device.type == "cpu" and (trap := bf16_trap()):
        raise NearkinError(f"train.amp=true: {trap}")
    run.start(spec, processes=ranks.world, data_hash=prepared.data_hash, split_hash=split.hash())
    torch.manual_seed(seed_of(spec.train.seed, 0, 3))
    model = build_model(**spec.model.model_dump(exclude={"views"}))
    classes, labels = np.unique(table.labels[split.train], return_inverse=True)
    objective = build(spec, model, num_classes=len(classes))
    memory = None
    if spec.memory.size:
        objective.check_memory()
        memory = Memory(spec.memory.size, model.dim, warmup=spec.memory.warmup, device=device)
    if ranks.world > 1 and objective.mixes:
        raise NearkinError("mixup mixes images of different processes: train it with one")
    source = make_source(prepared, model.to(device))
    synchronise(model, ranks)

    def validate(model: Model) -> dict[str, float]:
        z = embed(model, source, split.val, device, ranks=ranks)
        metrics = ["recall@1", spec.train.select]
        return ranks.share(lambda: evaluate(z, table.labels[split.val], k=(1,), metrics=metrics).metrics)

    if not ranks.share(lambda: run.final):
        assert spec.sampler is not None                 # resolved
        sampler = spec.sampler.cls(labels, spec.train.batch, spec.train.seed, **spec.sampler.params)
        if sampler.needs_bank and not ranks.share(lambda: run.begun):
            sampler.reserve(model.dim)
            sampler.fill(embed(model, source, split.train, device, ranks=ranks, title="Filling the sampler's bank"))
        done = fit(
            run, spec.train, model, objective, sampler, source, split.train, labels,
            validate=validate if len(split.val) else None, device=device, memory=memory, ranks=ranks, watch=watch,
        )  # fmt: skip
        run.write_json("final.json", {
            "epoch": done.best_epoch, "epochs_trained": done.epoch, "steps": done.step,
            "rule": spec.protocol.cls.rule, "select": spec.train.select if done.validation else None,
            "validation": done.validation, "seconds": round(time.time() - began, 1),
        })  # fmt: skip
    load_model(model, run, ranks)
    trained = embed(model, source, split.train, device, ranks=ranks)
    tested = embed(model, source, split.test.images, device, ranks=ranks)
    if ranks.first:
        test(run, prepared, tested, evaluate(trained, labels, metrics=SPACE).metrics)
        (run.path / "checkpoint.pt").unlink(missing_ok=True)


def make_source(prepared: Prepared, model: Model) -> Source:
    """Pixels, or the cached features of the frozen front."""
    if model.cut == "none":
        return prepared.pixels
    return FeatureSource(
        prepared.pixels, model, data_hash=prepared.data_hash, views=prepared.spec.model.views,
        flip=prepared.table.augment.flip, augmented=prepared.split.train,
    )  # fmt: skip


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
