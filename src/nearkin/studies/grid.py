"""A study: a base spec, axes, seeds; every combination is a run, found by its hash or trained.

    name: demo
    twin: [roth_t4]                             # the published tables that it repeats, by `nearkin published`
    differs: {column NMI: why}                  # what of them is not so here, on purpose
    base: {dataset: glyphs, dim: 64, epochs: 4}
    bases:                                      # several of them: laid over `base`, the first axis
      resnet50: {backbone: resnet50, weights: imagenet}
      googlenet: {backbone: googlenet, weights: imagenet}
    axes:
      method:                                   # label -> words
        multi-similarity: {loss: multi_similarity, miner: multi_similarity}
      dim: [64, 128]                            # or values of one key
    seeds: [0, 1]
    folds: all                                  # of protocol kfold or mlrc; or a list
    evaluations: [separated, concatenated]
    metrics: [recall@1, map_at_r, train.rho]    # or data set -> its columns: {cub: [recall@1], sop: [recall@10]}
    readings: [chosen, last, test_best]         # which epochs the table tells
    baselines: customary                        # pooled and random_head; or all, none, a list
    analyses: [saliency]                        # written after the runs; or with options, {saliency: {images: 500}}
    tune: {trials: 20}                          # a search for every row, and tuned rows beside the default ones
    real: {base: {dataset: cub}, seeds: [0, 1, 2]}      # what takes the place of the above when root=DIR is given

Runs that are not stored yet go to worker processes of one thread each. Kill it and call it again: what is done is
skipped, what was begun goes on.
"""

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from nearkin.config.parse import canonical, read_yaml
from nearkin.config.spec import make_spec
from nearkin.errors import NearkinError, choices
from nearkin.evaluation.metrics.base import parse
from nearkin.protocols.folds import Folds
from nearkin.registry import ANALYSES, hyperparameters
from nearkin.runs.fit import SPACE
from nearkin.studies._roots import split_roots, with_roots
from nearkin.studies.baselines import baseline_cells, parse_baselines
from nearkin.studies.cells import Cell, Study
from nearkin.studies.readings import READINGS
from nearkin.studies.twin import parse_differs, parse_twin

__all__ = ["Cell", "Study", "read_study"]

KEYS = (
    "name",
    "twin",
    "differs",
    "base",
    "bases",
    "axes",
    "seeds",
    "folds",
    "evaluations",
    "metrics",
    "readings",
    "baselines",
    "analyses",
    "tune",
    "real",
)
EVALUATIONS = ("separated", "concatenated")
SETTINGS = "settings"  # the axis default, tuned


def read_study(
    file: Path | str | Mapping[str, Any], words: Mapping[str, Any] | None = None, tune: Mapping[str, Any] | None = None
) -> Study:
    """A study from its file. Everything that can be wrong with it is said before anything runs.

    Parameters:
        file: the YAML file, or its content as a tree, which needs a `name`.
        words: settings over the base, as `root=DIR` on the command line; of a study on several data sets
            `root.cub=DIR root.cars196=DIR`: what has no folder is left out.
        tune: settings over `tune` of the file.
    """
    if isinstance(file, Mapping):
        if not file.get("name"):
            raise NearkinError(
                f"a study needs a name, as in {{'name': 'demo', ...}}; it has {', '.join(map(str, file))}"
            )
        path, tree, text = Path(str(file["name"])), dict(file), yaml.safe_dump(dict(file), sort_keys=False)
    else:
        path = Path(file)
        tree, text = read_yaml(path), path.read_text()
    words, roots = split_roots(words or {})
    content = _real(tree, bool(roots) or "data.root" in canonical(words), path)
    for key in content:
        if key not in KEYS:
            raise NearkinError(f"unknown key {key!r} in {path}: {choices(str(key), KEYS)}")
    name = str(content.get("name") or path.stem)
    if not re.fullmatch(r"\w[\w .+-]*", name):
        raise NearkinError(
            f"name: {name!r} in {path}: it names files, so only letters, digits, space and . _ - + are possible"
        )
    if not any(content.get(key) for key in ("base", "bases", "axes")):
        raise NearkinError(f"{path} has neither base nor axes: there is nothing to run")
    if not isinstance(base := content.get("base"), dict | None):
        raise NearkinError(f"base={base!r} in {path}: must be a mapping of words, such as {{dataset: glyphs, dim: 64}}")
    axes = _axes(content, path)
    content, words, without = with_roots(content, words, roots, path)
    if roots:
        axes = _axes(content, path)
    seeds = _numbers(content.get("seeds", [0]), "seeds", path)
    readings = _some(content.get("readings", ["chosen"]), READINGS, "readings", path)
    evaluations = _some(content.get("evaluations", ["separated"]), EVALUATIONS, "evaluations", path)
    baselines = parse_baselines(content.get("baselines", "customary"), str(path))
    cells = _cells(content, axes, seeds, words, path)
    if readings != ("chosen",):  # the test needs every epoch; no run's name changes
        cells = [Cell(c.labels, c.seed, make_spec(c.spec, {"train.curve": True}), c.fold) for c in cells]
    if "concatenated" in evaluations and any(cell.fold is None for cell in cells):
        raise NearkinError(
            f"evaluations in {path}: concatenated joins the folds of a protocol, but the study has none; add folds: all"
        )
    names = tuple(axes)
    tuning = content.get("tune")
    if tune is not None and isinstance(tuning, dict | None):
        tuning = {**(tuning or {}), **tune}
    if tuning is not None:  # tuned rows come beside these (tuning/tuned.py)
        names = (*axes, SETTINGS)
        cells = [replace(cell, labels=(*cell.labels, "default")) for cell in cells]
    cells += baseline_cells(cells, names, baselines)
    data_metrics = _metrics(content.get("metrics", ["recall@1", "map_at_r"]), cells, path)
    columns = list(dict.fromkeys(metric for metrics in data_metrics.values() for metric in metrics))
    _distinct([*names, "seeds", "evaluation", "epoch", "fold", "run", *columns], f"axes and metrics in {path}")
    return Study(
        name,
        names,
        tuple(cells),
        tuple(columns),
        text,
        parse_twin(content.get("twin"), str(path)),
        readings,
        evaluations,
        tuning,
        parse_differs(content.get("differs"), str(path)),
        analyses=_analyses(content.get("analyses", []), path),
        data_metrics=data_metrics,
        without=without,
    )


def _real(content: dict[str, Any], is_real: bool, path: Path) -> dict[str, Any]:
    """The file as it is for the real data, if a root is given and the file knows them; else without `real`."""
    real = content.pop("real", None) or {}
    if not isinstance(real, dict) or "real" in real:
        raise NearkinError(f"real={real!r} in {path}: must hold keys of the study, such as {{base: {{dataset: cub}}}}")
    return {**content, **real} if is_real else content


def _axes(content: Mapping[str, Any], path: Path) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Axis -> its labels and their words."""
    axes = content.get("axes") or {}
    bases = content.get("bases")
    if bases is not None and isinstance(axes, dict):
        if not isinstance(bases, dict) or "base" in axes:
            raise NearkinError(
                f"bases={bases!r} in {path}: must be a mapping from labels to words, without an axis named base"
            )
        axes = {"base": bases, **axes}
    if not isinstance(axes, dict) or not all(isinstance(a, dict | list) and a for a in axes.values()):
        raise NearkinError(f"axes in {path}: each must be a list of values or a mapping from labels to words")
    if "seed" in axes or "train.seed" in axes:
        raise NearkinError(f"axes in {path}: seeds cannot be an axis; write seeds: [0, 1, 2] beside the axes")
    points = {str(key): _points(str(key), values) for key, values in axes.items()}
    for key, place in points.items():
        _distinct([label for label, _ in place], f"axis {key!r} in {path}")
    return points


def _cells(
    content: Mapping[str, Any],
    axes: Mapping[str, list[tuple[str, dict[str, Any]]]],
    seeds: list[int],
    words: Mapping[str, Any] | None,
    path: Path,
) -> list[Cell]:
    base = content.get("base")
    cells = []
    for place in itertools.product(*axes.values()):
        points = [point for _, point in place]
        under = [points.pop(0)] if content.get("bases") is not None else []
        labels = tuple(label for label, _ in place)
        for fold in _folds(content.get("folds"), make_spec(base, *under, words, *points), path):
            for seed in seeds:
                last = {"train.seed": seed} | ({} if fold is None else {"protocol.fold": fold})
                cells.append(Cell(labels, seed, make_spec(base, *under, words, *points, last), fold))
    if content.get("folds") is not None and all(cell.fold is None for cell in cells):
        names = ", ".join(dict.fromkeys(str(cell.spec.protocol.name) for cell in cells))
        raise NearkinError(
            f"folds={content['folds']!r} in {path}: protocol={names} has no folds; kfold and mlrc have them"
        )
    return cells


def _folds(asked: Any, spec: Any, path: Path) -> list[Any]:
    """The folds to train; [None] where the study or the protocol of a row has none."""
    protocol = spec.protocol.cls
    if asked is None or not (isinstance(protocol, type) and issubclass(protocol, Folds)):
        return [None]
    count = spec.protocol.params.get("folds", hyperparameters(protocol)["folds"].default)
    folds = list(range(count)) if asked == "all" else _numbers(asked, "folds", path)
    for fold in folds:
        protocol(**spec.protocol.params | {"fold": fold})  # refuses one that there is not
    return folds


def _numbers(values: Any, what: str, path: Path) -> list[int]:
    if not isinstance(values, list) or not all(type(v) is int for v in values) or not values:
        raise NearkinError(f"{what}={values!r} in {path}: must be a list of whole numbers")
    _distinct(values, f"{what} in {path}")
    return values


def _some(values: Any, known: Any, what: str, path: Path) -> tuple[str, ...]:
    names = list(known) if values == "all" else values
    if not isinstance(names, list) or not names:
        raise NearkinError(f"{what}={values!r} in {path}: must be all, or a list of {', '.join(known)}")
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise NearkinError(f"{what}={name!r} in {path}: {choices(str(name), known)}")
    _distinct(names, f"{what} in {path}")
    return tuple(names)


def _distinct(values: list[Any], where: str) -> None:
    twice = sorted({str(v) for v in values if values.count(v) > 1})
    if twice:
        raise NearkinError(f"{where}: {', '.join(twice)} is listed twice; the same run is not a second result")


def _points(key: str, values: dict[str, Any] | list[Any]) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(values, dict):
        for label, words in values.items():
            if words is not None and not isinstance(words, dict):
                raise NearkinError(f"axis {key!r}: {label}: {words!r} is not a mapping, such as {{loss: triplet}}")
        return [(str(label), words or {}) for label, words in values.items()]
    return [(str(value), {key: value}) for value in values]


def _metrics(listed: Any, cells: list[Cell], path: Path) -> dict[str, tuple[str, ...]]:
    """Data set -> the columns of its table: one list for all, or one for each."""
    data_metrics = {}
    for name in dict.fromkeys(cell.spec.data.name for cell in cells):
        metrics = listed.get(name) if isinstance(listed, dict) else listed
        if not isinstance(metrics, list) or not metrics:
            of = f" of {name}" if isinstance(listed, dict) else ""
            raise NearkinError(
                f"metrics={metrics!r}{of} in {path}: must be a list of names, such as [recall@1, map_at_r, train.rho]"
            )
        data_metrics[name] = tuple(_metric(str(metric)) for metric in metrics)
        _distinct(list(data_metrics[name]), f"metrics in {path}")
    return data_metrics


def _analyses(listed: Any, path: Path) -> dict[str, dict[str, Any]]:
    """Analysis -> its options."""
    analyses = dict.fromkeys(listed) if isinstance(listed, list) else listed
    if not isinstance(analyses, dict) or not all(isinstance(options, dict | None) for options in analyses.values()):
        raise NearkinError(
            f"analyses={listed!r} in {path}: must be a list, such as [saliency], or a mapping from names to options"
        )
    for name in analyses:
        if name not in ANALYSES:
            raise NearkinError(f"analyses={name} in {path}: {choices(str(name), ANALYSES.names())}")
    return {str(name): dict(options or {}) for name, options in analyses.items()}


def _metric(name: str) -> str:
    """Its name as results have it; an unknown one is an error before anything is trained."""
    if name.startswith("train."):
        if name.removeprefix("train.") not in SPACE:
            raise NearkinError(f"metric {name!r}: {choices(name, [f'train.{space}' for space in SPACE])}")
        return name
    parsed = parse(name)
    if not parsed:
        raise NearkinError(f"metric {name!r}: which k? For example {name}@1")
    return parsed[0].key
