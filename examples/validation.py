"""What predicts the test? Every way of validating, over runs that differ in loss, settings and epoch.

    python examples/validation.py draw contrastive 15                       settings at random, for the file of a study
    python examples/validation.py measure studies/validation_glyphs.yaml    trains; what is measured: runs/NAME.jsonl

examples/validation_tables.py makes the tables of docs/validation.md from that file.

A study has two axes: settings, and the division of the training classes. `all` trains on all of them: its test, epoch
by epoch, is what the others should predict. A name like `4 folds: 2` is one fold of a way that is the mean over folds,
`20 classes` a way of one division. Nothing is chosen here, and test labels are read for every point: that is what is
asked. A measurement that is interrupted goes on.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nearkin.config.parse import parse_words
from nearkin.config.search import declared
from nearkin.engine.allocator import tune_allocator
from nearkin.engine.batches import Source, seed_default, seed_of
from nearkin.engine.embed import embed
from nearkin.engine.loop import fit
from nearkin.evaluation import evaluate
from nearkin.models import Model, build_model
from nearkin.registry import LOSSES, MINERS
from nearkin.runs.data import Data, read_table
from nearkin.runs.prepare import Prepared, make_objective, make_source, prepare
from nearkin.runs.store import Run
from nearkin.spaces import Space
from nearkin.studies.grid import read_study

EPOCHS = (1, 2, 4)  # at which every run is measured
METRICS = ("recall@1", "map_at_r")
SIZES = (5, 10, 20)  # of the parts of the validation classes
DEVICE = torch.device("cpu")


def draw(loss: str, count: int) -> list[dict[str, Any]]:
    """The default settings of a loss, then settings at random from the spaces that it and its miner declare."""
    spaces = {f"loss.{key}" if "." not in key else key: space for key, space in declared(LOSSES[loss]).items()}
    words = {"loss": loss}
    if loss in MINERS:  # the miner of the same source
        words["miner"] = loss
        spaces |= {f"miner.{key}": space for key, space in declared(MINERS[loss]).items()}
    spaces = {key: space for key, space in spaces.items() if not space.when or "distance" in space.when.get("form", ())}
    random = np.random.default_rng(0)
    return [words, *({**words, **{k: value_of(s, random) for k, s in spaces.items()}} for _ in range(count - 1))]


def value_of(space: Space, random: np.random.Generator) -> Any:
    """A value of a space at random, in the logarithm where it is logarithmic."""
    if space.count is not None:
        return space.at(int(random.integers(space.count)))
    ends = np.array([space.low, space.high])
    value = np.exp(random.uniform(*np.log(ends))) if space.log else random.uniform(*ends)
    return space.short(float(value))


def measure(file: Path, words: dict[str, Any], out: Path) -> None:
    """Train every run of a study that is not in `out` yet, and add a line for it."""
    study = read_study(file, words)
    done = {json.loads(line)["run"] for line in out.read_text().splitlines()} if out.exists() else set()
    out.parent.mkdir(parents=True, exist_ok=True)
    data: dict[str, Data] = {}
    for number, cell in enumerate(study.cells, start=1):
        prepared = prepare(cell.spec, data)
        if prepared.hash not in done:
            line = {"run": prepared.hash, "setting": cell.labels[0], "division": cell.labels[1], **trained(prepared)}
            with out.open("a") as lines:
                lines.write(json.dumps(line) + "\n")
            print(f"{number} of {len(study.cells)}: {', '.join(cell.labels)}", flush=True)


def trained(prepared: Prepared) -> dict[str, Any]:
    """Train a run and measure it at some epochs: the processor's seconds of training, and epoch -> `by_class`."""
    spec = prepared.spec
    seed_default(seed_of(spec.train.seed, 0, 3), DEVICE)
    model = build_model(**spec.model.model_dump(exclude={"views"}))
    objective = make_objective(spec, model, num_classes=int(prepared.labels.max()) + 1)
    source = make_source(prepared, model)
    points, measuring = {}, 0.0

    def after_epoch(epoch: int, model: Model) -> None:
        nonlocal measuring
        if epoch in EPOCHS:
            began = time.process_time()
            points[epoch] = by_class(prepared, model, source)
            measuring += time.process_time() - began

    assert spec.sampler is not None
    sampler = spec.sampler.cls(prepared.labels, spec.train.batch, spec.train.seed, **spec.sampler.params)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder) / "run")
        split, hashes = prepared.split, {"data_hash": prepared.data_hash, "split_hash": prepared.split.hash()}
        run.start(spec, split=split.to_dict(), processes=1, **hashes)
        began = time.process_time()
        training = (run, spec.train, model, objective, sampler, source, split.train, prepared.labels)
        fit(*training, validate=None, device=DEVICE, watch=lambda entry: None, after_epoch=after_epoch)
        seconds = time.process_time() - began - measuring
    return {"seconds": round(seconds, 2), "points": points}


def labels_of(prepared: Prepared) -> np.ndarray:
    """The labels of the images that are queries: those of validation, or of the test where nothing validates."""
    test = prepared.split.test.images
    return prepared.val_labels if len(prepared.val_labels) else read_table(prepared.spec.data).labels[test]


def by_class(prepared: Prepared, model: Model, source: Source) -> dict[str, list[list[list[float]]]]:
    """Gallery -> part by part what `means` has, of the model as it is. In the gallery `all` are the images of all
    training classes, in `N classes` those of N validation classes alone: these are divided into parts of N at random.
    """
    split, labels = prepared.split, labels_of(prepared)
    if not len(split.val):
        return {"test": [means(embed(model, source, split.test.images, DEVICE), labels, labels)]}
    z = embed(model, source, np.concatenate([split.val, split.train]), DEVICE)
    training = labels.max() + 1 + prepared.labels  # other classes than those that validate
    tables = {"all": [means(z, np.concatenate([labels, training]), labels)]}
    classes = np.random.default_rng(0).permutation(np.unique(labels))
    for count in (len(classes), *(size for size in SIZES if size < len(classes))):
        parts = [np.isin(labels, classes[at : at + count]) for at in range(0, len(classes) - count + 1, count)]
        images = z[: len(labels)]
        tables[f"{count} classes"] = [
            means(images[torch.from_numpy(part)], labels[part], labels[part]) for part in parts
        ]
    return tables


def means(z: torch.Tensor, labels: np.ndarray, queries: np.ndarray) -> list[list[float]]:
    """For each class of the queries, which are the first images, the mean of every metric and the number of queries."""
    values = evaluate(z, labels, query=np.arange(len(queries)), metrics=list(METRICS)).per_query
    _, index, sizes = np.unique(queries, return_inverse=True, return_counts=True)
    by = [np.bincount(index, values[metric]) / sizes for metric in METRICS]
    return [[round(float(value), 5) for value in row] for row in zip(*by, sizes, strict=True)]


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    drawer = commands.add_parser("draw")
    drawer.add_argument("loss")
    drawer.add_argument("count", type=int)
    measurer = commands.add_parser("measure")
    measurer.add_argument("study", type=Path)
    measurer.add_argument("words", nargs="*", help="as root=DIR")
    measurer.add_argument("--runs", type=Path, default=Path("runs"))
    given = parser.parse_args()
    if given.command == "draw":
        for number, words in enumerate(draw(given.loss, given.count)):
            print(f"    {given.loss} {number}: {{{', '.join(f'{key}: {value}' for key, value in words.items())}}}")
    if given.command == "measure":
        torch.set_num_threads(1)
        tune_allocator()
        measure(given.study, parse_words(given.words), given.runs / f"{given.study.stem}.jsonl")
    return 0


if __name__ == "__main__":
    sys.exit(main())
