"""Does the interval of `nearkin fit` hold what training gains on classes outside the folder?

    python examples/coverage.py my_images [--draws 20] [--classes 20] [--runs RUNS] [WORD ...]

Many small folders are drawn from one with many classes. `fit` estimates on each what training gains on classes that it
has never seen; then the model on all classes of the draw, trained whatever the verdict, and the untrained network are
measured on the classes outside it. Those come in random groups of as many classes as a fold tests, because a gallery of
more classes is harder. Heads alone are trained, on features that are computed once. docs/fit.md has the table.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import nearkin
from nearkin.config.parse import parse_words
from nearkin.config.spec import make_spec
from nearkin.data import Table, load_table
from nearkin.engine.embed import embed
from nearkin.evaluation import evaluate
from nearkin.fitting._estimate import METRICS
from nearkin.fitting._fitted import Fitted
from nearkin.models import Model, build_model
from nearkin.runs.events import silent
from nearkin.runs.prepare import make_source, prepare

HEADS = {"backbone": "efficientnet_lite1", "weights": "imagenet", "model.cut": "all", "model.views": 1}
GROUPINGS = 4  # of the outside classes


def drawn(table: Table, classes: int, number: int) -> np.ndarray:
    """The classes (C,) of a draw, sorted."""
    return np.sort(np.random.default_rng([number, 19]).permutation(len(table.classes))[:classes])


def without(table: Table, inside: np.ndarray, folder: Path) -> Path:
    """The list of images that are not of these classes, for data.exclude."""
    outside = np.flatnonzero(~np.isin(table.labels, inside))
    file = folder / f"outside-{len(inside)}-{'-'.join(map(str, inside[:4]))}.txt"
    file.write_text("\n".join(table.shown(row) for row in outside) + "\n")
    return file


def grouped(z: Tensor, labels: np.ndarray, classes: np.ndarray, size: int, number: int) -> list[float]:
    """Recall@1 and MAP@R over queries of these classes, `size` of them at a time."""
    rng, sums, queries = np.random.default_rng([number, 23]), np.zeros(len(METRICS)), 0
    for _ in range(GROUPINGS):
        order = rng.permutation(classes)
        for start in range(0, len(order) - size + 1, size):
            rows = np.flatnonzero(np.isin(labels, order[start : start + size]))
            values = evaluate(z[rows], labels[rows], metrics=list(METRICS)).metrics
            sums += len(rows) * np.array([values[metric] for metric in METRICS])
            queries += len(rows)
    return list(sums / queries)


class Outside:
    """All images of the folder, as networks behind the same cut see them.

    Parameters:
        words: the settings of all runs.
    """

    def __init__(self, words: dict):
        prepared = prepare(make_spec(words, {"protocol": "all"}))
        self.labels = load_table("folder", words["root"]).labels
        self.source = make_source(prepared, build_model(**prepared.spec.model.model_dump(exclude={"views"})))

    def measure(self, model: Model | None, inside: np.ndarray, size: int, number: int) -> list[float]:
        """Recall@1 and MAP@R on the classes outside a draw: of a model, or of the features themselves."""
        rows = np.flatnonzero(~np.isin(self.labels, inside))
        z = self.source.test(rows) if model is None else embed(model, self.source, rows, torch.device("cpu"))
        labels = self.labels[rows]
        return grouped(z, labels, np.unique(labels), size, number)


def compare(fitted: Fitted, outside: Outside, words: dict, inside: np.ndarray, runs: Path, number: int) -> dict:
    """The estimate of a fit, and what comes out on the classes outside its draw."""
    size = round(fitted.classes / fitted.plan.folds)
    run = nearkin.train(make_spec(words, {"protocol": "all"}, fitted.settings), runs=runs, test=False, watch=silent)
    trained = outside.measure(nearkin.load(run).model, inside, size, number)
    untrained = outside.measure(None, inside, size, number)
    estimate, result = fitted.estimate(), {"draw": number, "helps": fitted.helps, "at a time": size}
    for metric, after, before in zip(METRICS, trained, untrained, strict=True):
        truth = {"gain": after - before, "trained": after, "untrained": before}
        result[metric] = {what: {**estimate[what][metric], "outside": value} for what, value in truth.items()}
    return result


def covers(line: dict, metric: str, what: str) -> bool:
    """Does the interval hold the outside result?"""
    value = line[metric][what]
    return value["low"] <= value["outside"] <= value["high"]


def shown(value: dict) -> str:
    """An estimate, its interval and the outside result, in per cent."""
    mean, low, high, outside = (100 * value[key] for key in ("mean", "low", "high", "outside"))
    inside = " " if value["low"] <= value["outside"] <= value["high"] else "*"
    return f"{mean:+6.1f} ({low:+6.1f} to {high:+6.1f}) {outside:+6.1f}{inside}"


def main() -> None:
    """A line per draw; then how many intervals hold the outside result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    words = {"dataset": "folder", "root": given.root, **HEADS, **parse_words(given.words)}
    given.runs.mkdir(parents=True, exist_ok=True)
    table, outside, lines = load_table("folder", given.root), Outside(words), []
    print("draw helps  MAP@R gained: estimate, interval, outside   Recall@1 gained: the same         (* not covered)")
    for number in range(given.draws):
        inside = drawn(table, given.classes, number)
        small = {**words, "data.exclude": str(without(table, inside, given.runs))}
        fitted = nearkin.fit(
            small, losses=["proxy_anchor"], minutes=600, runs=given.runs, workers=1, say=lambda line: None
        )
        line = compare(fitted, outside, small, inside, given.runs, number)
        lines.append(line)
        yes = "yes" if line["helps"] else "no"
        print(f"{number:>4} {yes:<5}  {shown(line['map_at_r']['gain'])}   {shown(line['recall@1']['gain'])}", flush=True)
        (given.runs / f"coverage-{given.classes}.json").write_text(json.dumps(lines, indent=1) + "\n")
    for metric in METRICS:
        counts = {what: sum(covers(line, metric, what) for line in lines) for what in ("gain", "trained", "untrained")}
        words_of = ", ".join(f"{what} {count} of {len(lines)}" for what, count in counts.items())
        print(f"{metric}: covered: {words_of}")


if __name__ == "__main__":
    main()
