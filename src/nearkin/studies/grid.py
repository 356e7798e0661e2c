"""A study: a base spec, axes, seeds; every combination is a run, found by its hash or trained.

    name: demo
    base: {dataset: glyphs, dim: 64, epochs: 4}
    axes:
      method:                                   # label -> words
        untrained: {train.epochs: 0}
        multi-similarity: {loss: multi_similarity, miner: multi_similarity}
      dim: [64, 128]                            # or values of one key
    seeds: [0, 1]
    metrics: [recall@1, map_at_r, train.rho]

Runs that are not stored yet go to worker processes of one thread each. Kill it and call it again: what is done is
skipped, what was begun goes on.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearkin.config.parse import read_yaml
from nearkin.config.spec import RunSpec, make_spec
from nearkin.errors import NearkinError, choices
from nearkin.evaluation.metrics.base import parse

KEYS = ("name", "base", "axes", "seeds", "metrics")


@dataclass(frozen=True)
class Cell:
    """One run of a study: its place on the axes, its seed, its spec."""

    labels: tuple[str, ...]
    seed: int
    spec: RunSpec


@dataclass(frozen=True)
class Study:
    """A grid of runs: its axes, its cells, and the metrics of its table."""

    name: str
    axes: tuple[str, ...]
    cells: tuple[Cell, ...]
    metrics: tuple[str, ...]                    # of the test; train.* of the training embeddings
    text: str = ""                              # the file as it was read

    @property
    def select(self) -> str:
        """The metric on validation images that its rows are sorted by: the one that chose the epochs."""
        return self.cells[0].spec.train.select if self.cells else "map_at_r"

    @property
    def columns(self) -> list[str]:
        """What its table shows: validation first, then what was asked for."""
        return [f"validation {self.select}", *self.metrics]

    @property
    def asked(self) -> list[str]:
        """The metrics that a test has to give."""
        return [metric for metric in self.metrics if not metric.startswith("train.")]


def read_study(path: Path, words: Mapping[str, Any] | None = None) -> Study:
    """`words` are laid over the base, as `root=DIR` on the command line."""
    content = read_yaml(path)
    for key in content:
        if key not in KEYS:
            raise NearkinError(f"unknown key {key!r} in {path}: {choices(key, KEYS)}")
    axes = content.get("axes") or {}
    if not isinstance(axes, dict) or not all(isinstance(a, dict | list) and a for a in axes.values()):
        raise NearkinError(f"axes in {path}: each is a list of values or a mapping from labels to words")
    seeds = content.get("seeds", [0])
    if not isinstance(seeds, list) or not all(isinstance(s, int) for s in seeds) or not seeds:
        raise NearkinError(f"seeds={seeds!r} in {path}: a list of whole numbers")
    points = [_points(key, values) for key, values in axes.items()]
    cells = [
        Cell(tuple(label for label, _ in place), seed,
             make_spec(content.get("base"), words, *(own for _, own in place), {"train.seed": seed}))
        for place in itertools.product(*points) for seed in seeds
    ]  # fmt: skip
    metrics = content.get("metrics", ["recall@1", "map_at_r"])
    if not isinstance(metrics, list) or not metrics:
        raise NearkinError(f"metrics={metrics!r} in {path}: a list of names, as in [recall@1, map_at_r, train.rho]")
    name = str(content.get("name", Path(path).stem))
    return Study(name, tuple(axes), tuple(cells), tuple(_metric(m) for m in metrics), Path(path).read_text())


def _metric(name: str) -> str:
    """Its name as results have it; an unknown one is an error before anything is trained."""
    if name.startswith("train."):
        parse(name.removeprefix("train."))
        return name
    found = parse(name)
    if not found:
        raise NearkinError(f"metric {name!r}: which k? For example {name}@1")
    return found[0].key


def _points(key: str, values: dict[str, Any] | list[Any]) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(values, dict):
        return [(str(label), words or {}) for label, words in values.items()]
    return [(str(value), {key: value}) for value in values]
