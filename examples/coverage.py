"""Does the interval of `nearkin fit` hold what training gains on classes outside the folder?

    python examples/coverage.py my_images [--draws 20] [--classes 20] [--runs RUNS] [WORD ...]

Small sets of classes are drawn from a folder with many. On each, folds say what training gains, as in `nearkin fit`;
then the model on all classes of the draw, trained whatever the verdict, and the untrained network are measured on the
classes outside it. Those come in random groups of as many classes as a fold tests: a larger gallery is harder. Heads
alone are trained, and every run divides the same images by a file, so that features are computed once. docs/fit.md has
the table.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import nearkin
from nearkin.config.parse import canonical, parse_words
from nearkin.config.spec import make_spec
from nearkin.engine.embed import embed
from nearkin.evaluation import evaluate
from nearkin.fitting._plan import Plan, folds_for
from nearkin.fitting._start import LOSSES, blend_of
from nearkin.fitting.estimate import METRICS, gain, helps, tested, worth
from nearkin.fitting.fitted import Fitted, Method
from nearkin.models import build_model
from nearkin.protocols import Split, TestRows
from nearkin.protocols.cross import Cross
from nearkin.protocols.given import write_split
from nearkin.runs.data import Data, read_data
from nearkin.runs.events import silent
from nearkin.runs.prepare import make_source, prepare
from nearkin.runs.store import Run, Store
from nearkin.statistics.unit import by_class

HEADS = {"backbone": "efficientnet_lite1", "weights": "imagenet", "model.cut": "all", "model.views": 1}
LOSS = "proxy_anchor"
GROUPINGS = 2  # of the outside classes
CPU = torch.device("cpu")


@dataclass
class Draw:
    """Some classes of a folder.

    Parameters:
        number: of the draw; it seeds what is random.
        classes: (C,) their numbers in the folder.
        plan: how `nearkin fit` divides so many.
    """

    number: int
    classes: np.ndarray
    plan: Plan

    @classmethod
    def of(cls, number: int, classes: int, of: int) -> "Draw":
        """One of so many classes."""
        drawn = np.random.default_rng([number, 19]).permutation(of)[:classes]
        return cls(number, np.sort(drawn), Plan(*folds_for(classes), "all", (LOSS,), 0.0))

    @property
    def size(self) -> int:
        """Classes that a fold tests."""
        return round(len(self.classes) / self.plan.folds)


class Bench:
    """All images of a folder, and runs that divide them.

    Parameters:
        words: the settings of all runs.
        store: where they are.
    """

    def __init__(self, words: dict[str, Any], store: Store):
        self.words, self.store, self.known = {**LOSSES[LOSS], **words}, store, dict[str, Data]()
        prepared = prepare(make_spec(self.words, {"protocol": "all"}), self.known)
        self.table = read_data(prepared.spec.data, self.known).table
        model = build_model(**prepared.spec.model.model_dump(exclude={"views"}))
        self.source = make_source(prepared, model)
        self.pooled = self.source.test(np.arange(len(self.table)))  # (N, F): the untrained network

    def run(self, name: str, split: Split, words: dict[str, Any], *, test: bool) -> Run:
        """Train a head on the rows of a split."""
        file = self.store.root / "splits" / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(write_split(split, self.table, "file"))
        spec = make_spec(self.words, {"protocol": "file", "protocol.path": file}, words)
        return nearkin.train(prepare(spec, self.known), runs=self.store, test=test, watch=silent)

    def estimate(self, draw: Draw) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
        """Metric -> what the folds say; and the settings of the model on all classes."""
        rows = np.flatnonzero(np.isin(self.table.labels, draw.classes))
        blend = blend_of(make_spec(self.words), canonical(self.words), draw.plan.share > 0)
        runs, values = [], dict[str, list[np.ndarray]]()
        for fold in range(draw.plan.folds):
            part = Cross(folds=draw.plan.folds, fold=fold, share=draw.plan.share).split(self.table.take(rows))
            split = Split(rows[part.train], rows[part.val], TestRows(rows[part.test.query]))
            runs.append(self.run(f"{draw.number}-{len(draw.classes)}-{fold}", split, blend, test=True))
            queries = split.test.query
            plain = evaluate(self.pooled[queries], self.table.labels[queries], metrics=list(METRICS))
            for name in METRICS:
                values.setdefault(name, []).append(plain.per_query[name])
            values.setdefault("rows", []).append(queries)
        names = np.array(self.table.classes)[self.table.labels[np.concatenate(values["rows"])]]
        found = {}
        for name in METRICS:
            after, before = tested(runs, name), _ordered(names, values[name], tested(runs, name))
            assert after is not None
            found[name] = {"gain": gain(after, before), "trained": worth(after), "untrained": worth(before)}
        method = Method(LOSS, {}, runs)
        fitted = Fitted("", self.store, draw.plan, (len(draw.classes),) * 2, [], [method], "map_at_r", True)
        return found, fitted.settings

    def outside(self, draw: Draw, settings: dict[str, Any]) -> dict[str, dict[str, float]]:
        """Metric -> what the model on all classes of the draw, and the untrained network, give on the other classes."""
        inside = np.isin(self.table.labels, draw.classes)
        rows, none = np.flatnonzero(~inside), np.flatnonzero(inside)[:0]
        split = Split(np.flatnonzero(inside), none, TestRows(rows))
        run = self.run(f"{draw.number}-{len(draw.classes)}", split, settings, test=False)
        z = embed(nearkin.load(run).model, self.source, rows, CPU)
        after, before = (grouped(side, self.table.labels[rows], draw) for side in (z, self.pooled[rows]))
        return {
            name: {"gain": a - b, "trained": a, "untrained": b}
            for name, a, b in zip(METRICS, after, before, strict=True)
        }


def _ordered(names: np.ndarray, values: list[np.ndarray], like: Any) -> Any:
    """The values by class, in the order of another network's."""
    side = by_class(names, np.concatenate(values))
    assert side is not None
    order = [side.classes.index(name) for name in like.classes]
    return type(side)(like.classes, side.means[order], side.queries[order])


def grouped(z: Tensor, labels: np.ndarray, draw: Draw) -> list[float]:
    """The metrics over the queries of all classes, as many classes at a time as a fold of the draw tests."""
    rng, sums, queries = np.random.default_rng([draw.number, 23]), np.zeros(len(METRICS)), 0
    for _ in range(GROUPINGS):
        order = rng.permutation(np.unique(labels))
        for start in range(0, len(order) - draw.size + 1, draw.size):
            rows = np.flatnonzero(np.isin(labels, order[start : start + draw.size]))
            values = evaluate(z[rows], labels[rows], metrics=list(METRICS)).metrics
            sums += len(rows) * np.array([values[name] for name in METRICS])
            queries += len(rows)
    return list(sums / queries)


def shown(value: dict[str, float]) -> str:
    """An estimate, its interval and the outside result, in points."""
    mean, low, high, outside = (100 * value[key] for key in ("mean", "low", "high", "outside"))
    return f"{mean:+6.1f} ({low:+6.1f} to {high:+6.1f}) {outside:+6.1f}{' ' if covers(value) else '*'}"


def covers(value: dict[str, float]) -> bool:
    """Does the interval hold the outside result?"""
    return value["low"] <= value["outside"] <= value["high"]


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
    bench = Bench({"dataset": "folder", "root": given.root, **HEADS, **parse_words(given.words)}, Store(given.runs))
    print("draw helps  MAP@R gained: estimate (interval) outside   Recall@1 gained: the same      * not covered")
    lines: list[dict[str, Any]] = []
    for number in range(given.draws):
        draw = Draw.of(number, given.classes, len(bench.table.classes))
        found, settings = bench.estimate(draw)
        truth = bench.outside(draw, settings)
        line = {
            name: {what: {**vars(found[name][what]), "outside": truth[name][what]} for what in truth[name]}
            for name in METRICS
        }
        yes = helps(found["map_at_r"]["gain"], found["recall@1"]["gain"])
        lines.append({"draw": number, "classes": given.classes, "helps": yes, **line})
        words = (shown(line[name]["gain"]) for name in ("map_at_r", "recall@1"))
        print(f"{number:>4} {'yes' if yes else 'no':<5}  {'   '.join(words)}", flush=True)
        (given.runs / f"coverage-{given.classes}.json").write_text(json.dumps(lines, indent=1) + "\n")
    for name in METRICS:
        counts = {what: sum(covers(line[name][what]) for line in lines) for what in ("gain", "trained", "untrained")}
        print(f"{name}: covered: {', '.join(f'{what} {n} of {len(lines)}' for what, n in counts.items())}")


if __name__ == "__main__":
    main()
