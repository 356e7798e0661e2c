"""One training, its readings: what averages and blends of its weights are worth on classes that it never saw.

    python examples/recipe.py WORD ... [--averages 0.95,0.98] [--blends 0.5,0.7] [-o FILE]

The words are those of `nearkin train`; the protocol divides the classes, and its test classes are those that the table
is about: never name a data set's official test here while choosing settings. Every average is carried beside one
training, so that a row costs an embedding of the test images, not a training. FILE gets a line of JSON, and the tables
of docs/recipe.md are made of such lines (`examples/recipe_table.py`).
"""

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nearkin.config.parse import parse_words
from nearkin.config.spec import make_spec
from nearkin.engine.allocator import tune_allocator
from nearkin.engine.average import Average
from nearkin.engine.batches import Source, seed_default, seed_of
from nearkin.engine.embed import embed
from nearkin.engine.loop import fit
from nearkin.evaluation import evaluate
from nearkin.models import Model, build_model
from nearkin.runs.begin import begin_head
from nearkin.runs.data import read_table
from nearkin.runs.prepare import Prepared, make_objective, make_source, prepare
from nearkin.runs.store import Run

METRICS = ("recall@1", "map_at_r")
DEVICE = torch.device("cpu")
State = Mapping[str, Tensor]


class Outside:
    """The classes that training does not see."""

    def __init__(self, prepared: Prepared, source: Source):
        self.rows, self.source = prepared.split.test.images, source
        self.labels = read_table(prepared.spec.data).labels[self.rows]

    def values(self, model: Model) -> list[float]:
        """Recall@1 and MAP@R of a model, in %."""
        model.eval()
        metrics = evaluate(embed(model, self.source, self.rows, DEVICE), self.labels, metrics=list(METRICS)).metrics
        return [round(100 * metrics[metric], 2) for metric in METRICS]


def readings(prepared: Prepared, averages: list[float], blends: list[float]) -> dict[str, list[float]]:
    """Name of the weights -> Recall@1 and MAP@R outside, of one training."""
    spec = prepared.spec
    seed_default(seed_of(spec.train.seed, 0, 3), DEVICE)
    model = build_model(**spec.model.model_dump(exclude={"views"}))
    objective = make_objective(spec, model, num_classes=int(prepared.labels.max()) + 1)
    source = make_source(prepared, model)
    outside = Outside(prepared, source)
    with model.headless():
        table = {"pooled": outside.values(model)}
    begin_head(model, source, prepared.split.train, spec.train.seed, DEVICE)
    first = {name: value.clone() for name, value in model.state_dict().items()}
    carried = {decay: Average(decay, model, objective) for decay in averages}

    def watch(entry: dict) -> None:
        for average in carried.values() if "step" in entry else ():
            average.update(entry["step"])

    assert spec.sampler is not None
    sampler = spec.sampler.cls(prepared.labels, spec.train.batch, spec.train.seed, **spec.sampler.params)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder) / "run")
        run.start(
            spec,
            split=prepared.split.to_dict(),
            processes=1,
            data_hash=prepared.data_hash,
            split_hash=prepared.split.hash(),
        )
        plain = spec.train.model_copy(update={"average": 0.0, "blend": 1.0})
        fit(
            run,
            plain,
            model,
            objective,
            sampler,
            source,
            prepared.split.train,
            prepared.labels,
            validate=None,
            device=DEVICE,
            watch=watch,
        )
    ends: dict[str, State] = {"as trained": {name: value.clone() for name, value in model.state_dict().items()}}
    ends |= {f"average {decay:g}": average.model.state_dict() for decay, average in carried.items()}
    last = list(ends)[-1]  # blends of the longest average; of the trained weights where none was asked for
    for name, a in [*((name, 1.0) for name in ends), *((last, a) for a in blends)]:
        model.load_state_dict(between(first, ends[name], a))
        table[name if a == 1 else f"{name}, {a:g} of the way"] = outside.values(model)
    return table


def between(first: State, last: State, a: float) -> dict[str, Tensor]:
    """θ0 + a (θ1 - θ0); whole numbers (counters) are those of θ1."""
    return {k: torch.lerp(first[k], v, a) if v.is_floating_point() else v for k, v in last.items()}


def main() -> None:
    """Train once, print a line per reading, and add them to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="+")
    parser.add_argument("--averages", default="0.98", help="decays, such as 0.95,0.98")
    parser.add_argument("--blends", default="0.5,0.7", help="how far from the first weights, such as 0.5,0.7")
    parser.add_argument("-o", "--output", type=Path, help="a file that a line of JSON is added to")
    given = parser.parse_args()
    torch.set_num_threads(1)
    tune_allocator()
    prepared = prepare(make_spec(parse_words(given.words)))
    began = time.process_time()
    averages, blends = ([float(x) for x in text.split(",")] for text in (given.averages, given.blends))
    table = readings(prepared, averages, blends)
    before = np.array(table["pooled"])
    for name, values in table.items():
        gained = np.array(values) - before
        print(f"{name:<30} {values[0]:6.2f} {values[1]:6.2f}   {gained[0]:+6.2f} {gained[1]:+6.2f}")
    root = Path(prepared.spec.data.root or "").name
    words = [word for word in given.words if not word.startswith(("root=", "data.root=", "dataset="))]
    record = {
        "data": root or prepared.spec.data.name,
        "words": " ".join(words),
        "seconds": round(time.process_time() - began),
        "readings": table,
    }
    if given.output:
        with given.output.open("a") as file:
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
