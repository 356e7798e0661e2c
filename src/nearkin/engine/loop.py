"""The training loop: plain PyTorch, read from top to bottom.

All randomness of step t comes from generators seeded by (seed, t), so a checkpoint needs no random state, and a
run that is killed and started again ends with the same bits as one that never stopped (same machine, CPU, same
number of threads). Ctrl-C and SIGTERM wait for the end of the step and cost nothing.
"""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from nearkin.config.settings import TrainSpec
from nearkin.engine.allocator import skip_memory_fill
from nearkin.engine.average import Average
from nearkin.engine.batches import Source, generator_on, load_batches, loaders_for, seed_default, seed_of
from nearkin.engine.distributed import ranks
from nearkin.engine.embed import embed
from nearkin.engine.gradient import batch_loss, check_chunks
from nearkin.engine.norms import measure_statistics
from nearkin.engine.optimise import clip, make_optimiser, schedule
from nearkin.engine.precision import DTYPES, half
from nearkin.engine.stops import Stops
from nearkin.errors import NearkinError
from nearkin.memory import Memory
from nearkin.methods.base import Method
from nearkin.models import Model
from nearkin.numerics import unit
from nearkin.pairs import Embedded
from nearkin.regularisers import Mix
from nearkin.samplers import BankSampler, BatchSampler

VERSION = 1  # raise it when the same settings give different weights
CHECKPOINT_SECONDS = 30.0  # between checkpoints: at most this much is lost by SIGKILL
# There is one at the end of an epoch too, so that a run of a few seconds does not start again after a kill; but not if
# writing the last one took more than this share of the time since then: with short epochs that would slow training.
CHECKPOINT_SHARE = 0.05
COLLAPSE = 0.01  # mean cosine distance of a batch below which all images look alike


class Keeper(Protocol):
    """Where the loop stores its states and its log: a run's directory."""

    path: Path

    def load(self, name: str) -> dict[str, Any] | None:
        """A state that was saved, or None."""

    def save(self, name: str, state: dict[str, Any]) -> None:
        """Write a state, whole or not at all."""

    def keep_models(self, epoch: int) -> None:
        """Remove the weights of all epochs except this one."""

    def log(self, size: int) -> AbstractContextManager[Any]:
        """The log, cut back to `size` bytes: what `nearkin.runs.log.Log` does."""


@dataclass
class Progress:
    """What the loop has done so far: all of it goes into the checkpoint."""

    epoch: int = 0  # epochs finished; below 0 in a warm-up that does not count
    step: int = 0  # steps finished, over all epochs
    best: float = -math.inf  # best validation result; with a minus where low is better
    best_epoch: int = 0
    validation: dict[str, float] = field(default_factory=dict)  # all metrics of the best epoch
    seconds: float = 0.0  # of training, without steps that were repeated after a kill
    spread: float = math.nan  # mean cosine distance in the last batch of an epoch, until the epoch is logged
    described: dict[str, Any] = field(default_factory=dict)  # what the objective says about that batch, likewise


def model_file(epoch: int) -> str:
    """The file with the weights of an epoch that is the best so far on validation."""
    return f"model-{epoch}.pt"


def fit(
    run: Keeper,
    spec: TrainSpec,
    model: Model,
    objective: Method,
    sampler: BatchSampler,
    source: Source,
    rows: np.ndarray,  # (N,) rows of the training images
    labels: np.ndarray,  # (N,) 0..C-1
    *,
    validate: Callable[[Model], dict[str, float]] | None,
    device: torch.device,
    memory: Memory | None = None,
    lower: bool = False,
    until: int | None = None,
    watch: Callable[[dict[str, Any]], None] = lambda entry: None,
    after_epoch: Callable[[int, Model], None] = lambda epoch, model: None,
) -> Progress | None:
    """Train, checkpoint, select. Returns None if it pauses before the last epoch.

    The chosen weights are in `model_file(best_epoch)` afterwards. A checkpoint names the epoch that is best so far, and
    the weights of that epoch stay until a later checkpoint names another: whenever the process is killed, checkpoint
    and weights belong together. On Ctrl-C and SIGTERM, and when `watch` or `validate` raises KeyboardInterrupt or
    SystemExit, a checkpoint of the last finished step is written first.

    Parameters:
        run: where states and log are stored.
        spec: the settings of training.
        model, objective: what is trained.
        sampler: chooses the training rows of each batch, by their positions 0..N-1.
        source: where the inputs of rows come from.
        rows: (N,) the training rows of the source.
        labels: (N,) their classes, 0..C-1.
        validate: the metrics of a model on validation rows; None: the last epoch is chosen.
        device: where it is computed.
        memory: cross-batch memory.
        lower: is the metric that selects better when it is low?
        until: the epoch after which it pauses, with a checkpoint.
        watch: called with every entry of the log; if the run continues from a checkpoint, first with
            {"resumed": {"epoch": the current epoch, "step": steps finished}}, which is not in the log.
        after_epoch: called with the number of every finished epoch, and the model that would be stored.
    """
    here = ranks()
    model.to(device)
    objective.to(device)
    if spec.epochs == 0:  # the untrained network
        run.save(model_file(0), {"model": model.state_dict(), "objective": objective.state_dict()})
        return Progress()
    optimiser = make_optimiser(spec, model, objective)
    average = Average(spec.average or 0.0, model, objective)
    network = model if model.cut == "none" else model.back  # behind a cut the source gives features
    kind = half(spec.amp)
    scaler = torch.amp.GradScaler(device.type, enabled=kind == "fp16")  # else it does nothing
    warmup = spec.warmup or 0
    ahead_of_count = 0 if spec.warmup_counts else warmup  # epochs before epoch 1
    progress = Progress(epoch=-ahead_of_count)
    sampler_state = sampler.state_dict()
    log_size = 0
    if (state := here.share(lambda: run.load("checkpoint.pt"))) is not None:
        try:
            model.load_state_dict(state["model"])
            objective.load_state_dict(state["objective"])
            optimiser.load_state_dict(state["optimiser"])
            average.load_state_dict(state.get("average", []))
            if memory is not None:
                memory.load_state_dict(state["memory"])
            if scaler.is_enabled():
                scaler.load_state_dict(state["scaler"])
            progress, sampler_state, log_size = Progress(**state["progress"]), state["sampler"], state["log_size"]
        except (KeyError, RuntimeError, ValueError, TypeError) as error:
            raise NearkinError(f"{run.path}/checkpoint.pt belongs to another model: {_one_line(error)}") from error
    sampler.load_state_dict(sampler_state)
    if spec.chunk is not None:
        check_chunks(spec.chunk, model, objective)
    epochs = spec.epochs or 0
    per_epoch = spec.batches_per_epoch or len(sampler)
    targets = torch.as_tensor(labels, device=device)  # (N,)
    generator = generator_on(device)  # of miner and loss
    host = generator if generator.device.type == "cpu" else torch.Generator()  # for what the CPU must know: mixup
    scale = scaler.get_scale()
    of_model, of_objective = list(model.parameters()), list(objective.parameters())
    trained = [p for group in optimiser.param_groups for p in group["params"]]
    step_finished = True  # is the state that of a finished step?
    saved = began_at = time.monotonic()
    writing = 0.0  # seconds that the last checkpoint took
    seconds_before = progress.seconds
    if state is not None:
        watch({"resumed": {"epoch": min(progress.epoch + 1, epochs), "step": progress.step}})

    def in_half_precision(x: Tensor, mix: Mix | None) -> Embedded:
        with torch.autocast(device.type, DTYPES[kind or "bf16"]):
            return network(x, mix)

    def reseed(chunk: int) -> None:
        seed_default(here.seed(seed_of(spec.seed, progress.step, 1) + chunk), device)

    def checkpoint() -> None:
        nonlocal saved, writing
        begun = time.monotonic()
        progress.seconds = seconds_before + begun - began_at
        run.save(
            "checkpoint.pt",
            {
                "model": model.state_dict(),
                "objective": objective.state_dict(),
                "optimiser": optimiser.state_dict(),
                "average": average.state_dict(),
                "progress": vars(progress),
                "sampler": sampler_state,
                "log_size": log.sync(),
                "memory": memory.state_dict() if memory is not None else None,
                "scaler": scaler.state_dict(),
            },
        )
        run.keep_models(progress.best_epoch)
        saved = time.monotonic()
        writing = saved - begun

    def checkpoint_if_step_finished() -> None:
        nonlocal step_finished
        if step_finished:
            step_finished = False  # once is enough, even if it is interrupted
            checkpoint()

    def save_model(epoch: int) -> None:
        run.save(model_file(epoch), {"model": average.model.state_dict(), "objective": average.objective.state_dict()})

    stops = Stops(checkpoint_if_step_finished, patience=0 if here.first else 2)
    loaders = loaders_for(spec.loaders, device)
    batches = load_batches(sampler, source, rows, spec.seed, progress.step, loaders=loaders, device=device)
    with run.log(log_size) as log, skip_memory_fill(), stops, closing(batches):
        model.train()
        objective.train()
        try:
            for epoch in range(progress.epoch, epochs):
                if until is not None and 0 < until <= epoch:  # it was paused here before
                    return None
                if spec.patience and progress.validation and epoch - progress.best_epoch >= spec.patience:
                    break
                if not model.training:  # after validation
                    model.train()
                warm = epoch + ahead_of_count < warmup
                end = (epoch + ahead_of_count + 1) * per_epoch  # steps finished when the epoch is
                for group in optimiser.param_groups:
                    for p in group["params"]:
                        p.requires_grad_(group["new"] or not warm)
                while progress.step < end:  # a resumed epoch starts in the middle
                    if isinstance(sampler, BankSampler) and sampler.due:
                        with stops.quiet():
                            sampler.fill(embed(model, source, rows, device))
                    step_finished = False
                    began = time.perf_counter()
                    batch = next(batches)
                    factor = schedule(spec, max(0, progress.step - ahead_of_count * per_epoch) / per_epoch, epochs)
                    for group in optimiser.param_groups:
                        group["lr"] = group["base_lr"] * factor
                    for random in {generator, host}:
                        random.manual_seed(seed_of(spec.seed, progress.step, 2))
                    y = targets[batch.rows]  # (B,)
                    mix = objective.mix(len(batch.rows), model.depths, host)
                    loss, embedded, finish = batch_loss(
                        in_half_precision if kind else network,
                        objective,
                        batch.x.to(device, non_blocking=True),
                        y,
                        chunk=spec.chunk,
                        mix=mix,
                        generator=generator,
                        reseed=reseed,
                        memory=memory if memory is not None and epoch + ahead_of_count >= memory.warmup else None,
                    )
                    value, active = numbers(loss, objective.active)
                    if not math.isfinite(value):
                        raise NearkinError(
                            f"the loss became {value} at step {progress.step} (epoch {epoch + 1}): lower train.lr "
                            f"(now {spec.lr:g}), or set train.clip=10"
                            + (", or use train.amp=bf16 or false" if kind == "fp16" else "")
                        )
                    for p in trained:  # optimiser.zero_grad() takes twenty times as long
                        p.grad = None
                    scaler.scale(loss).backward()
                    finish()
                    here.reduce(of_model, of_objective)  # what is infinite on one rank is then infinite on all
                    scaler.unscale_(optimiser)
                    if spec.clip is not None:
                        clip(spec, trained)
                    scaler.step(optimiser)  # not with infinite gradients
                    scaler.update()
                    progress.step += 1
                    average.update(progress.step)
                    z = embedded.z.detach()  # (B, D), of all processes
                    if mix is None:
                        sampler.update(batch.rows, z)
                    if memory is not None:
                        memory.add(z, y, progress.step)
                    sampler_state = batch.sampler_state
                    if progress.step == end:
                        progress.spread, progress.described = mean_cosine_distance(z), objective.describe()
                    entry: dict[str, Any] = {
                        "step": progress.step,
                        "steps_per_epoch": per_epoch,
                        "epoch": epoch + 1,
                        "epochs": epochs,
                        "loss": value,
                        "active": None if active is None else round(active, 4),
                        "images_per_s": round(len(batch.rows) / (time.perf_counter() - began), 1),
                    }
                    if scaler.is_enabled():
                        before_step, scale = scale, scaler.get_scale()
                        entry |= {"scale": scale, "skipped": scale < before_step}
                        if scale < 1:
                            raise NearkinError(
                                f"train.amp=fp16: gradients are infinite at every scale down to 1 "
                                f"(step {progress.step}): lower train.lr, or use train.amp=bf16 or false"
                            )
                    log.write(**entry)
                    step_finished = True
                    watch(entry)
                    if time.monotonic() - saved >= CHECKPOINT_SECONDS:
                        checkpoint()
                    stops.deliver_noted()
                log.flush()  # validation may take long
                entry = {"epoch_end": epoch + 1, "epochs": epochs, "lr": optimiser.param_groups[0]["lr"]}
                if not math.isnan(progress.spread):  # it is after a checkpoint of an older nearkin
                    entry["spread"] = round(progress.spread, 4)
                entry.update(progress.described or objective.describe())
                if memory is not None:
                    entry["memory"] = memory.describe(progress.step)
                if progress.spread < COLLAPSE:
                    entry["warning"] = (
                        f"the embeddings have collapsed: the mean cosine distance in the batch is "
                        f"{progress.spread:.4f}; lower train.lr, or use another miner or a larger batch"
                    )
                elif model.dim == 1:
                    entry["warning"] = (
                        "model.dim=1: a unit vector of one dimension is +1 or -1, so all images lie on two points; "
                        "use at least 2; the literature uses 64 to 1024"
                    )
                last = epoch + 1 == epochs
                if spec.average and epoch >= 0:
                    average.take_buffers()
                    measure_statistics(average.model, source, rows, device)
                if epoch < 0:  # a warm-up that does not count cannot be chosen
                    pass
                elif validate is None:
                    if last:
                        save_model(epoch + 1)
                    progress.best_epoch = epoch + 1
                elif (epoch + 1) % spec.eval_every == 0 or last:
                    with stops.quiet():
                        entry["validation"] = validate(average.model)
                    score = entry["validation"][spec.select] * (-1 if lower else 1)
                    if score > progress.best or not progress.validation:
                        save_model(epoch + 1)
                        progress.best, progress.best_epoch, progress.validation = score, epoch + 1, entry["validation"]
                if epoch >= 0:
                    with stops.quiet():
                        after_epoch(epoch + 1, average.model)
                progress.epoch = epoch + 1
                log.write(**entry)
                log.flush()
                watch(entry)
                if until is not None and until <= epoch + 1 < epochs:
                    checkpoint()
                    return None
                since = time.monotonic() - saved
                if since >= CHECKPOINT_SECONDS or writing < CHECKPOINT_SHARE * since:
                    checkpoint()
                stops.deliver_noted()
        except (KeyboardInterrupt, SystemExit):
            checkpoint_if_step_finished()
            raise
        finally:
            log.flush()
    progress.seconds = seconds_before + time.monotonic() - began_at
    return progress


def numbers(loss: Tensor, active: Tensor | None) -> tuple[float, float | None]:
    """The loss and its share of active terms as numbers, both in one wait for the device."""
    if active is None or loss.device.type == "cpu":  # two reads are faster where there is nothing to wait for
        return loss.item(), None if active is None else float(active)
    value, share = torch.stack((loss.detach(), active.detach())).tolist()
    return value, share


def mean_cosine_distance(z: Tensor) -> float:
    """1 - mean cosine of a batch, from the length of the mean direction: 0 when all images look alike."""
    return 1 - float(unit(z.float()).mean(0).square().sum())


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
