"""All that is decided before the first step of a run, and all that training may know.

Labels, columns and class names of test rows are not in it: `runs/test.py` reads them from the data, once the run is
stored as final. Nor are paths, but for data.cache=none, where pixels are read from named files (data/forms.py).
"""

import os
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nearkin.config.born import plain
from nearkin.config.parse import flatten
from nearkin.config.parts import DataSpec
from nearkin.config.recipes import Recipe
from nearkin.config.spec import RunSpec
from nearkin.data import Augment, Images, PixelSource, Table, exclude, load_table, open_images
from nearkin.data import transforms as transforms_module
from nearkin.data.cache import check_kept, data_hash
from nearkin.engine import loop
from nearkin.engine.batches import Source
from nearkin.engine.objective import build_objective
from nearkin.errors import NearkinError, choices
from nearkin.evaluation.metrics.base import parse
from nearkin.methods.base import Method
from nearkin.models import Backbone, Model
from nearkin.models.build import create_backbone
from nearkin.models.checkpoints import PACKAGED, imagenet
from nearkin.models.cut import FeatureSource
from nearkin.models.fitted import FittedHead
from nearkin.models.model import check_batch_norm
from nearkin.models.weights import check_file, fitting
from nearkin.protocols import Split
from nearkin.registry import BACKBONES, HEADS, METRICS, hyperparameters
from nearkin.runs.defaults import fit_batch, resolve
from nearkin.runs.seen import Records, check_unseen, own_record, seen_by

MOST_DIMENSIONS = 65_536


@dataclass(frozen=True)
class Data:
    """A data set as it was read: everything, test labels included."""

    table: Table                    # without unreadable images
    images: Table | Images          # its pixels
    hash: str
    skipped: list[tuple[str, str]]  # path, reason


@dataclass(frozen=True)
class Prepared:
    """What training is given: the resolved spec, rows, labels of training and validation rows, pixels."""

    spec: RunSpec
    split: Split                    # rows alone
    labels: np.ndarray              # (N,) of the training rows, 0..C-1
    val_labels: np.ndarray          # (V,) of the validation rows
    pixels: PixelSource             # of all rows
    data_hash: str
    about: dict[str, Any]           # how many images and classes, for people
    seen: Records = ()              # what its weights will have seen (runs/seen.py)

    @property
    def hash(self) -> str:
        """The name of the run."""
        versions = {"loop": loop.VERSION, "transforms": transforms_module.VERSION}
        return self.spec.hash(self.data_hash, self.split.hash(), **versions)


def prepare(spec: RunSpec, known: dict[str, Data] | None = None) -> Prepared:
    """Fill open settings, read the data, split them. `known` remembers data from call to call, for studies."""
    asked, spec = spec, with_weights(resolve(spec))
    check_network(spec)
    table = read_table(spec.data) if known is None or repr(spec.data) not in known else None
    if table is not None:                                           # before hours of decoding
        split = make_split(spec, table)
        augment_of(spec.data, table)
        check(fit_batch(asked, spec, table.labels[split.train]), split, table.labels)
    data = read_data(spec.data, known, table)
    split = make_split(spec, data.table)
    train = data.table.labels[split.train]
    spec = check(fit_batch(asked, spec, train), split, data.table.labels)
    seen, own = seen_by(spec.model.weights), own_record(spec.data.name, data.hash, data.table, split)
    check_unseen(spec.model.weights, seen, own, data.table, split)
    return Prepared(
        spec=spec,
        split=split,
        labels=np.unique(train, return_inverse=True)[1],
        val_labels=data.table.labels[split.val].copy(),
        pixels=pixels_of(spec, data),
        data_hash=data.hash,
        about={"split": split.describe(data.table), "skipped_images": len(data.skipped), **recipe_of(asked, spec)},
        seen=(own, *seen) if spec.train.epochs else seen,
    )


def recipe_of(asked: RunSpec, spec: RunSpec) -> dict[str, Any]:
    """The recipe of a run, and what was set otherwise: key -> [the recipe's value, the run's]."""
    if asked.recipe is None:
        return {}
    words = flatten(spec.whole()) | {"model.weights": asked.model.weights}      # the word, not the file found for it
    return {"recipe": {"name": asked.recipe, "overridden": Recipe.named(asked.recipe).overridden(plain(words))}}


def with_weights(spec: RunSpec) -> RunSpec:
    """The same spec with the path of the file that `weights=imagenet` stands for, so that it counts by its content. The
    weights that come in a package keep their name."""
    if spec.model.weights != "imagenet":
        return spec
    path = imagenet(spec.model.backbone)
    if spec.model.backbone == PACKAGED:
        return spec
    return spec.model_copy(update={"model": spec.model.model_copy(update={"weights": str(path.absolute())})})


def check_network(spec: RunSpec) -> None:
    """Weights that are not there or do not fit, images that the network cannot take, and embeddings beyond reason are
    refused before any data are read."""
    name, weights, head = spec.model.backbone, spec.model.weights, HEADS[spec.model.head or "linear"]
    if weights is not None and weights != "imagenet":
        path = Path(weights).expanduser()
        check_file(path)
        _check_fit(name, BACKBONES[name], path, path.stat().st_size, path.stat().st_mtime_ns)
    if isinstance(BACKBONES[name], type) and issubclass(BACKBONES[name], Backbone):
        for side in (spec.data.size, spec.data.crop):
            BACKBONES[name].check_side(side or 0)
    check_batch_norm(spec.model.freeze_bn, spec.model.bn_affine)
    if spec.train.epochs and isinstance(head, type) and issubclass(head, FittedHead):
        raise NearkinError(
            f"model.head={spec.model.head} is fitted to the untrained network, not trained: train.epochs=0, not "
            f"{spec.train.epochs}"
        )
    if (spec.model.dim or 0) > MOST_DIMENSIONS:
        raise NearkinError(f"model.dim={spec.model.dim}: at most {MOST_DIMENSIONS}; the literature has 64 to 1024")
    if spec.train.epochs and spec.method is None:
        check_objective(spec)


def check_objective(spec: RunSpec) -> None:
    """Loss, miner and regulariser that do not go together or refuse a hyper-parameter, a memory beside them, and
    settings of a parameter group that is not there."""
    with torch.random.fork_rng(devices=[]):                         # a small one, to see what goes together
        objective = build_objective(**parts_of(spec), num_classes=2, dim=spec.model.dim or 8)
    if spec.memory.size:
        objective.check_memory()
    check_groups(spec, objective)


def check_groups(spec: RunSpec, method: Method) -> None:
    """Settings of a parameter group that neither the network nor the method has are refused."""
    groups = {"backbone", "head", *(group["name"] for group in method.parameter_groups())}
    if unknown := sorted(set(spec.train.groups) - groups):
        raise NearkinError(f"train.groups.{unknown[0]}: there is no such group; {choices(unknown[0], groups)}")


@lru_cache(maxsize=16)
def _check_fit(name: str, part: Any, path: Path, size: int, time: int) -> None:
    """Read a file of weights once; `part` is what the name stands for now, size and time say which file it is."""
    with torch.random.fork_rng(devices=[]):
        fitting(create_backbone(name), path)


def read_table(data: DataSpec) -> Table:
    """The rows of a data set; no image is decoded."""
    drawn = {"size": data.resize} if "size" in hyperparameters(data.cls) else {}     # images made to measure
    table = load_table(data.name, root_of(data), **{k: v for k, v in data.params.items() if k != "size"}, **drawn)
    check_kept(table, resize=data.resize or 0, keep=data.keep, cache=data.cache)
    return table if data.exclude is None else exclude(table, data.exclude)


def root_of(data: DataSpec) -> Path | None:
    """Where the data lie: where the spec says; on a node of a cluster, which has a name, where NEARKIN_ROOT_<DATASET>
    says, if it is set there. The spec keeps its root, which is the caller's."""
    node = os.environ.get("NEARKIN_NODE")
    if node is None or data.root is None:
        return data.root
    variable = f"NEARKIN_ROOT_{re.sub(r'[^A-Z0-9]', '_', data.name.upper())}"
    root = Path(os.environ.get(variable, data.root)).expanduser()
    if not root.exists():
        raise NearkinError(
            f"node {node} has no {root}: put the data of {data.name} there, or start Ray on that node with "
            f"{variable}=DIR"
        )
    return root


def read_data(data: DataSpec, known: dict[str, Data] | None = None, table: Table | None = None) -> Data:
    """The data of a spec, with images at its size; `table` where its rows are read already."""
    key = repr(data)
    if known is not None and key in known:
        return known[key]
    table = read_table(data) if table is None else table
    name = data_hash(table)
    images: Table | Images = table
    skipped: list[tuple[str, str]] = []
    if table.images is None:
        images = open_images(
            table, resize=data.resize or 0, keep=data.keep, cache=data.cache, on_error=data.on_error, known_hash=name
        )
        if skipped := images.skipped:
            table = table.take(images.kept)
            name = data_hash(table)
    found = Data(table, images, name, skipped)
    if known is not None:
        known[key] = found
    return found


def make_split(spec: RunSpec, table: Table) -> Split:
    """The rows of a table, divided by the protocol of a spec."""
    return spec.protocol.cls(**spec.protocol.params).split(table)


def pixels_of(spec: RunSpec, data: Data) -> PixelSource:
    """Pixels by row, and nothing else."""
    images = data.images
    if isinstance(images, Images):
        images = images.alone()
    return PixelSource(
        images, size=spec.data.size or 0, crop=spec.data.crop or 0, augment=augment_of(spec.data, data.table),
        resize=spec.data.resize if isinstance(images, Images) else None,           # arrays are taken as they are
    )  # fmt: skip


def augment_of(data: DataSpec, table: Table) -> Augment:
    """What training may do to the images: what the data set says, and over it what the spec says."""
    said = {key: value for key in ("crop_scale", "crop_ratio", "flip") if (value := getattr(data, key)) is not None}
    augment = replace(table.augment, kind=data.augment, **said)
    if data.crop_ratio is not None and augment.crop_scale is None:
        low, high = data.crop_ratio
        raise NearkinError(
            f"data.crop_ratio={low:g}-{high:g} is not read, because images of {data.name} are not cropped; "
            f"data.crop_scale, as in data.crop_scale=0.5-1, has them cropped"
        )
    return augment


def check(spec: RunSpec, split: Split, labels: np.ndarray) -> RunSpec:
    """What can be known before training is checked before training: the metric that selects, and whether the sampler
    can fill its batches. `labels` are those of all rows."""
    if spec.train.epochs and spec.sampler is not None and not spec.sampler.cls.needs_bank:
        own = np.unique(labels[split.train], return_inverse=True)[1]
        spec.sampler.cls(own, spec.train.batch, spec.train.seed, **spec.sampler.params)
    select = spec.train.select
    name, at, _ = select.partition("@")
    metric = METRICS[name]
    if metric.takes_k and not at:
        raise NearkinError(f"train.select={select}: which k? For example train.select={name}@1")
    parse(select)
    if metric.better is None:
        known = [n for n in METRICS.names() if METRICS[n].better is not None]
        raise NearkinError(f"train.select={select}: neither high nor low is better; {choices(select, known)}")
    k = int(select.partition("@")[2] or 1)
    if len(split.val) and k >= len(split.val):
        raise NearkinError(f"train.select={select}: k={k}, but there are {len(split.val)} validation images")
    return spec


def make_source(prepared: Prepared, model: Model) -> Source:
    """Pixels, or the cached features of the frozen front."""
    if model.cut == "none":
        return prepared.pixels
    return FeatureSource(
        prepared.pixels, model, data_hash=prepared.data_hash, views=prepared.spec.model.views,
        flip=prepared.pixels.augment.flip, augmented=prepared.split.train,
    )  # fmt: skip


def parts_of(spec: RunSpec) -> dict[str, Any]:
    """Loss, miner and regularisers of a spec, as `build_objective` takes them."""
    return {
        "loss": (spec.loss.name, spec.loss.params),
        "miner": (spec.miner.name, spec.miner.params) if spec.miner else None,
        "regularisers": [(spec.regulariser.name, spec.regulariser.params)] if spec.regulariser else [],
    }


def make_objective(spec: RunSpec, model: Model, *, num_classes: int) -> Method:
    """The objective of a spec: loss, miner and regulariser, with a method around them where one is set."""

    def objective(dim: int) -> Method:
        return build_objective(**parts_of(spec), num_classes=num_classes, dim=dim)

    if spec.method is None:
        return objective(model.dim)
    return spec.method.cls.around(objective, model, **spec.method.params)
