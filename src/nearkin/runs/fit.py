"""`nearkin.train`: one run, from its spec to a final model; its test comes after that."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nearkin.config.spec import RunSpec, make_spec
from nearkin.engine.allocator import tune_allocator
from nearkin.engine.batches import Source, seed_default, seed_of
from nearkin.engine.device import pick_device
from nearkin.engine.distributed import joined, ranks, synchronise
from nearkin.engine.embed import embed
from nearkin.engine.gradient import check_chunks
from nearkin.engine.loop import fit, model_file
from nearkin.engine.optimise import make_optimiser
from nearkin.engine.precision import half, trap
from nearkin.errors import NearkinError
from nearkin.evaluation.metrics.base import metric_of
from nearkin.evaluation.retrieval import evaluate
from nearkin.memory import Memory
from nearkin.models import FittedHead, Model, build_model
from nearkin.progress import Screen
from nearkin.runs import events
from nearkin.runs.begin import begin_head
from nearkin.runs.blended import blend, first_weights
from nearkin.runs.embed import load_model
from nearkin.runs.events import Watch
from nearkin.runs.names import run_of
from nearkin.runs.prepare import Prepared, make_objective, make_source, prepare
from nearkin.runs.store import Run, Store
from nearkin.runs.test import measure
from nearkin.runs.training_bar import training_bar
from nearkin.storage import check_folder

SPACE = ("rho", "pi_intra", "pi_inter", "pi_ratio")  # of the training embeddings, as Roth et al. 2020 have them


def train(
    spec: RunSpec | Prepared | Mapping[str, Any] | str | None = None,
    *,
    runs: Path | str | Store = "runs",
    test: bool = True,
    watch: Watch | None = None,
    tensorboard: bool = False,
    until: int | None = None,
    **words: Any,
) -> Run:
    """Train, select on validation classes, store the final model; then test it, once.

    A finished run is returned as it is; an interrupted one continues from its last checkpoint. The caller's random
    state and torch's settings are restored afterwards.

    Parameters:
        spec: words, as one string or a mapping, or a tree, as in YAML; a `RunSpec`; or a prepared run.
        runs: the folder of the stored runs, or the store itself.
        test: test the final model; `nearkin.test` does it later.
        watch: called with every entry of the log; None: progress is shown on stderr. `nearkin.runs.events.silent` is
            quiet.
        tensorboard: write TensorBoard events too.
        until: the epoch after which it pauses, with a checkpoint; the same call without it continues from there.
        words: further settings, over those of `spec`: `train(spec, seed=1)`; not for a prepared run.

    Example:
        run = nearkin.train({"dataset": "glyphs", "loss": "multi_similarity", "miner": "multi_similarity"})
        run = nearkin.train("dataset=glyphs loss=multi_similarity miner=multi_similarity")      # the same
        run.result["test"]["recall@1"]
    """
    tune_allocator()
    prepared = spec if isinstance(spec, Prepared) else prepare(make_spec(spec, words))
    test = test and prepared.spec.purpose == "final" and len(prepared.split.test.images) > 0
    with joined(pick_device(prepared.spec.train.device)) as device, deterministic_torch(device):
        here = ranks()
        here.check(prepared.spec.train.batch or 0)
        store = runs if isinstance(runs, Store) else Store(runs)
        run = run_of(store, prepared, writes=here.first)
        if here.share(lambda: run.final and (run.tested or not test)):
            if here.first:
                _finish(run)
            return run
        check_folder(store.root)
        with run.lock():
            if not here.share(lambda: run.final):
                with _watched(run, watch if here.first else events.silent, tensorboard and here.first) as watching:
                    _fit(run, prepared, watching, device, until)
            here.wait()  # rank 0 has written final.json
            spec = prepared.spec
            del prepared  # the test reads the data again
            if test and run.final:  # not if it paused
                measure(store, run, device=device, spec=spec)
        here.wait()
    return run


@contextmanager
def _watched(run: Run, watch: Watch | None, tensorboard: bool) -> Iterator[Watch]:
    """What is told every entry of the log: the given watcher or else a progress bar, and TensorBoard."""
    bar = training_bar(Screen(stderr=True), quiet=False) if watch is None else nullcontext(watch)
    with bar as shown:
        yield events.both(shown, events.tensorboard(run.path / "tensorboard")) if tensorboard else shown


def _finish(run: Run) -> None:
    """Finish what a kill interrupted after the last result was stored, if anything. A store without write permission,
    or a run that another process holds, can be shown all the same."""
    if run.untidy:
        with suppress(NearkinError, OSError), run.lock():
            run.tidy()


@contextmanager
def deterministic_torch(device: torch.device) -> Iterator[None]:
    """Inside, torch is deterministic; afterwards its settings and its random state, on the CPU and on the device, are
    restored."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)


def _fit(run: Run, prepared: Prepared, watch: Watch, device: torch.device, until: int | None) -> None:
    """Train and store a final model. No label of a test row is known here."""
    spec, split, here = prepared.spec, prepared.split, ranks()
    if (kind := half(spec.train.amp)) and device.type == "cpu" and (why := trap(kind)):
        raise NearkinError(f"train.amp={kind}: {why}")
    seed_default(seed_of(spec.train.seed, 0, 3), device)
    model = build_model(**spec.model.model_dump(exclude={"views"}))
    classes = int(prepared.labels.max()) + 1
    objective = make_objective(spec, model, num_classes=classes if spec.train.epochs else max(2, classes))
    memory = None
    if spec.memory.size:
        objective.check_memory()
        memory = Memory(spec.memory.size, model.dim, warmup=spec.memory.warmup, device=device)
    if here.world > 1 and objective.mixes:
        raise NearkinError("mixup would mix images of different processes: train with one process")
    if spec.train.epochs:  # refused before features are computed
        make_optimiser(spec.train, model, objective)
        if spec.train.chunk is not None:
            check_chunks(spec.train.chunk, model, objective)
    again = (run.path / "spec.yaml").exists() and not run.begun  # started before, but nothing was saved
    run.start(spec, split=split.to_dict(), processes=here.world, data_hash=prepared.data_hash, split_hash=split.hash())
    source = make_source(prepared, model.to(device))
    synchronise(model)
    fit_head(model, source, split.train, prepared.labels, device)
    if not here.share(lambda: run.begun):
        begin_head(model, source, split.train, spec.train.seed, device)
    first = None if spec.train.blend == 1 else first_weights(run, model)
    sampler = _sampler(run, prepared, model, source, device)
    watch({"plan": _plan(run, prepared, sampler, again=again)})
    validate = _validation(prepared, source, device) if len(split.val) else None
    progress = fit(
        run,
        spec.train,
        model,
        objective,
        sampler,
        source,
        split.train,
        prepared.labels,
        validate=validate,
        device=device,
        memory=memory,
        watch=watch,
        until=until,
        lower=metric_of(spec.train.select).sign < 0,
        **({"after_epoch": _store_test_embeddings(run, prepared, model, source, device)} if spec.train.curve else {}),
    )
    if progress is None:  # paused
        return
    chosen = model_file(progress.best_epoch)
    blended = {} if first is None else blend(run, prepared, model, first, chosen, source, validate, device)
    run.promote(
        chosen,
        seen=[{"run": run.hash, **record} for record in prepared.seen],
        model=model.state_dict() if blended else None,
    )
    here.wait()
    load_model(model, run)
    z_train, z_val = (embed(model, source, rows, device) for rows in (split.train, split.val))
    if here.first:
        with run.put("validation.npz") as file:
            np.savez(file, embeddings=z_val.numpy(), labels=prepared.val_labels, rows=split.val)
        run.write_json(
            "final.json",
            {
                "epoch": progress.best_epoch,
                "epochs_trained": progress.epoch,
                "steps": progress.step,
                "rule": spec.protocol.cls(**spec.protocol.params).rule,
                "select": spec.train.select if progress.validation else None,
                "validation": progress.validation or _measured(z_val, prepared.val_labels, spec.train.select),
                **blended,
                "train": space(z_train, prepared.labels),
                "seconds": round(progress.seconds, 1),
                **prepared.about,
            },
        )
        run.tidy()


def fit_head(model: Model, source: Source, rows: np.ndarray, labels: np.ndarray, device: torch.device) -> None:
    """A head that is computed, not trained (pca): from the pooled features of the training images, not augmented. Every
    process has all of them and computes the same head."""
    if isinstance(model.head, FittedHead):
        with model.headless():
            features = embed(model, source, rows, device, title="Features of the training images")  # (N, F)
        model.head.fit(features, torch.from_numpy(labels))


def _sampler(run: Run, prepared: Prepared, model: Model, source: Source, device: torch.device) -> Any:
    """The sampler of a run; its bank, if it has one, is filled unless a checkpoint will do so."""
    part = prepared.spec.sampler
    assert part is not None  # resolved
    train = prepared.spec.train
    sampler = part.cls(prepared.labels, train.batch, train.seed, **part.params)
    if sampler.needs_bank and not ranks().share(lambda: run.begun):
        sampler.reserve(model.dim)
        sampler.fill(embed(model, source, prepared.split.train, device, title="Filling the sampler's bank"))
    return sampler


def _plan(run: Run, prepared: Prepared, sampler: Any, *, again: bool) -> dict[str, Any]:
    """What will be done, for the user."""
    train = prepared.spec.train
    per_epoch = train.batches_per_epoch or len(sampler)
    warmup = 0 if train.warmup_counts else train.warmup or 0
    return {
        "split": prepared.about["split"],
        "epochs": train.epochs,
        "batch": train.batch,
        "again": again,
        "steps_per_epoch": per_epoch,
        "warmup": warmup,
        "steps": (warmup + (train.epochs or 0)) * per_epoch,
        "path": str(run.path),
    }


def _validation(prepared: Prepared, source: Source, device: torch.device) -> Callable[[Model], dict[str, float]]:
    """Model -> its metrics on the validation images."""
    train = prepared.spec.train

    def validate(model: Model) -> dict[str, float]:
        z = embed(model, source, prepared.split.val, device)
        if not z.isfinite().all():
            raise NearkinError(
                f"the network gives NaN or infinity after training with train.lr={train.lr:g}: the learning rate "
                "is too high; lower it, or set train.clip=10"
            )
        metrics = ["recall@1", train.select]
        return ranks().share(lambda: evaluate(z, prepared.val_labels, k=(1,), metrics=metrics).metrics)

    return validate


def _store_test_embeddings(
    run: Run, prepared: Prepared, trained: Model, source: Source, device: torch.device
) -> Callable[[int, Model], None]:
    """A function that stores the test embeddings of an epoch, without labels: of the model that would be stored, and,
    where that is an average, of the one that trains."""

    def store(epoch: int, model: Model) -> None:
        readings = {"epoch": model} if model is trained else {"trained": trained, "epoch": model}
        for name, network in readings.items():
            z = embed(network, source, prepared.split.test.images, device).numpy()  # raw, float32: as the test has them
            if ranks().first:
                with run.put(f"curve/{name}-{epoch:04d}.npy") as file:
                    np.save(file, z)

    return store


def _measured(z: torch.Tensor, labels: np.ndarray, select: str) -> dict[str, float]:
    """Validation metrics of a model that was not selected: the untrained one."""
    return evaluate(z, labels, k=(1,), metrics=["recall@1", select]).metrics if len(z) else {}


def space(z: torch.Tensor, labels: np.ndarray) -> dict[str, float | None]:
    """Spectrum and densities of the training embeddings; None where they are undefined (ρ of two dimensions)."""
    values: dict[str, float | None] = {}
    for name in SPACE:
        try:
            values |= evaluate(z, labels, metrics=[name]).metrics
        except NearkinError:
            values[name] = None
    return values
