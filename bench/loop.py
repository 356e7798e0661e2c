"""Our training loop against a minimal hand-written one: same model, batches, loss and optimiser, interleaved.

    python bench/loop.py        (make bench-loop)

One thread, process CPU time, minimum over rounds. Ours includes what a run needs: log, progress, checkpoint at the end
of the epoch, seeded generators. The bar: at least 0.95 of the minimal loop's images/s. Both have the memory allocator
tuned, as every run has.
"""

import copy
import tempfile
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from nearkin.config.spec import make_spec
from nearkin.engine.allocator import tune_allocator
from nearkin.engine.loop import fit
from nearkin.engine.objective import build_objective
from nearkin.engine.optimise import make_optimiser
from nearkin.models import build_model
from nearkin.runs.prepare import make_source, prepare
from nearkin.runs.store import Run

SECONDS = 60  # of CPU time for each case: short rounds are repeated more often
EPOCHS = 8  # the default of a run: what comes once a run (first and last weights) weighs as it does there
CASES = {
    "glyphs, convnet": {"dataset": "glyphs", "dim": 64, "loss": "multi_similarity", "miner": "multi_similarity"},
    "cached features, 256 to 64": {"dataset": "glyphs", "dim": 64, "loss": "proxy_anchor", "cut": "all"},
    "cached features, 1280 to 128": {
        "dataset": "glyphs",
        "dim": 128,
        "loss": "proxy_anchor",
        "cut": "all",
        "backbone": "efficientnet_lite0",
        "weights": "imagenet",
        "data.size": 32,
    },
}


def parts(words):
    prepared = prepare(make_spec(words, {"epochs": EPOCHS, "train.device": "cpu"}))
    spec = prepared.spec
    torch.manual_seed(0)
    model = build_model(**spec.model.model_dump(exclude={"views"}))
    rows, labels = prepared.split.train, prepared.labels
    miner = (spec.miner.name, spec.miner.params) if spec.miner else None
    loss = (spec.loss.name, spec.loss.params)
    objective = build_objective(loss=loss, miner=miner, num_classes=int(labels.max()) + 1, dim=model.dim)
    return spec, model, objective, make_source(prepared, model), rows, labels


def ours(spec, model, objective, source, rows, labels):
    sampler = spec.sampler.cls(labels, spec.train.batch, 0, **spec.sampler.params)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder) / "run")
        run.path.mkdir()
        began = time.process_time()
        fit(run, spec.train, model, objective, sampler, source, rows, labels, validate=None, device=torch.device("cpu"))
        return time.process_time() - began, spec.train.epochs * len(sampler) * spec.train.batch


def minimal(spec, model, objective, source, rows, labels):
    sampler = spec.sampler.cls(labels, spec.train.batch, 0, **spec.sampler.params)
    optimiser = make_optimiser(spec.train, model, objective)
    forward = model if model.cut == "none" else model.back
    targets = torch.as_tensor(labels)
    generator = torch.Generator().manual_seed(0)
    model.train()
    steps = spec.train.epochs * len(sampler)
    began = time.process_time()
    for _ in range(steps):
        batch = sampler.next()
        loss = objective(forward(source.train(rows[batch], generator)), targets[batch], generator)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
    return time.process_time() - began, steps * spec.train.batch


def main():
    torch.set_num_threads(1)
    tune_allocator()
    table = Table("case", "ours, images/s", "minimal, images/s", "ratio", "bar")
    for name, words in CASES.items():
        made = parts(words)
        times = {ours: [], minimal: []}
        end = time.process_time() + SECONDS
        while time.process_time() < end:
            for loop in times:
                spec, model, objective, source, rows, labels = made
                seconds, images = loop(spec, copy.deepcopy(model), copy.deepcopy(objective), source, rows, labels)
                times[loop].append(seconds / images)
        mine, theirs = (1 / min(t) for t in times.values())
        table.add_row(name, f"{mine:,.0f}", f"{theirs:,.0f}", f"{mine / theirs:.3f}", "0.95")
    Console().print(table)


if __name__ == "__main__":
    main()
