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
    baselines: untrained                        # the default; `none` leaves the untrained network out

Runs that are not stored yet go to worker processes of one thread each. Kill it and call it again: what is done is
skipped, what was begun goes on.
"""

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearkin.config.parse import read_yaml
from nearkin.config.spec import RunSpec, make_spec
from nearkin.errors import NearkinError, choices
from nearkin.evaluation.metrics.base import parse
from nearkin.runs.defaults import resolve
from nearkin.runs.fit import SPACE

KEYS = ("name", "base", "axes", "seeds", "metrics", "baselines")


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
    """`words` are laid over the base, as `root=DIR` on the command line. Everything that can be wrong with the file is
    said before anything runs."""
    content = read_yaml(path)
    for key in content:
        if key not in KEYS:
            raise NearkinError(f"unknown key {key!r} in {path}: {choices(key, KEYS)}")
    name = str(content.get("name", Path(path).stem))
    if not re.fullmatch(r"\w[\w .+-]*", name):
        raise NearkinError(f"name: {name!r} in {path}: it names files: letters, digits, space and . _ - + are possible")
    axes = content.get("axes") or {}
    if not isinstance(axes, dict) or not all(isinstance(a, dict | list) and a for a in axes.values()):
        raise NearkinError(f"axes in {path}: each is a list of values or a mapping from labels to words")
    seeds = content.get("seeds", [0])
    if not isinstance(seeds, list) or not all(type(s) is int for s in seeds) or not seeds:
        raise NearkinError(f"seeds={seeds!r} in {path}: a list of whole numbers")
    _distinct(seeds, f"seeds in {path}")
    if "seed" in axes or "train.seed" in axes:
        raise NearkinError(f"axes in {path}: seeds are no axis; write seeds: [0, 1, 2] beside the axes")
    points = [_points(str(key), values) for key, values in axes.items()]
    for key, place in zip(axes, points, strict=True):
        _distinct([label for label, _ in place], f"axis {key!r} in {path}")
    metrics = content.get("metrics", ["recall@1", "map_at_r"])
    if not isinstance(metrics, list) or not metrics:
        raise NearkinError(f"metrics={metrics!r} in {path}: a list of names, as in [recall@1, map_at_r, train.rho]")
    baselines = content.get("baselines", "untrained")
    if baselines not in ("untrained", "none", None):
        raise NearkinError(f"baselines={baselines!r} in {path}: choices: untrained, none")
    base = content.get("base")
    if base is not None and not isinstance(base, dict):
        raise NearkinError(f"base={base!r} in {path}: a mapping of words, such as {{dataset: glyphs, dim: 64}}")
    cells = [
        Cell(tuple(label for label, _ in place), seed,
             make_spec(base, words, *(own for _, own in place), {"train.seed": seed}))
        for place in itertools.product(*points) for seed in seeds
    ]  # fmt: skip
    if baselines == "untrained":
        cells += untrained_cells(cells, tuple(axes))
    text = Path(path).read_text()
    return Study(name, tuple(axes), tuple(cells), tuple(_metric(str(m)) for m in metrics), text)


def untrained_cells(cells: list[Cell], axes: tuple[str, ...]) -> list[Cell]:
    """The untrained networks that trained cells are read beside, one for each network, data and seed; those that the
    study has already are left out. On an axis that does not change the network their label is `untrained`."""
    def name(spec: RunSpec) -> str:
        return json.dumps(resolve(spec).changes(), sort_keys=True)

    there = {name(cell.spec) for cell in cells if cell.spec.train.epochs == 0}
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.spec.train.epochs != 0:
            groups.setdefault(name(make_spec(cell.spec, {"train.epochs": 0})), []).append(cell)
    found = []
    for key, group in groups.items():
        if key in there:
            continue
        sides = [{cell.labels[i] for cell in group} for i in range(len(axes))]
        labels = [side.pop() if len(side) == 1 else "untrained" for side in sides]
        if labels and "untrained" not in labels:                    # every axis changes the network
            labels[0] = f"{labels[0]} (untrained)"
        found.append(Cell(tuple(labels), group[0].seed, make_spec(group[0].spec, {"train.epochs": 0})))
    return found


def _distinct(values: list[Any], where: str) -> None:
    twice = sorted({str(v) for v in values if values.count(v) > 1})
    if twice:
        raise NearkinError(f"{where}: {', '.join(twice)} stands twice; the same run is not a second result")


def _points(key: str, values: dict[str, Any] | list[Any]) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(values, dict):
        for label, words in values.items():
            if words is not None and not isinstance(words, dict):
                raise NearkinError(f"axis {key!r}: {label}: {words!r} is no mapping, such as {{loss: triplet}}")
        return [(str(label), words or {}) for label, words in values.items()]
    return [(str(value), {key: value}) for value in values]


def _metric(name: str) -> str:
    """Its name as results have it; an unknown one is an error before anything is trained."""
    if name.startswith("train."):
        if name.removeprefix("train.") not in SPACE:
            raise NearkinError(f"metric {name!r}: {choices(name, [f'train.{each}' for each in SPACE])}")
        return name
    found = parse(name)
    if not found:
        raise NearkinError(f"metric {name!r}: which k? For example {name}@1")
    return found[0].key
