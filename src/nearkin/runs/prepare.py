"""All that is decided before the first step of a run, and all that training may know.

Labels, paths, columns and class names of test rows are not in it: `runs/test.py` reads them from the data, once the run
is stored as final.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nearkin.config.parts import DataSpec
from nearkin.config.spec import RunSpec
from nearkin.data import Decoded, PixelSource, Table, exclude, load_table
from nearkin.data import transforms as transforms_module
from nearkin.data.cache import data_hash, decoded
from nearkin.engine import loop
from nearkin.engine.batches import Source
from nearkin.engine.objective import build_objective
from nearkin.errors import NearkinError, choices
from nearkin.evaluation.metrics.base import parse
from nearkin.methods.base import Method
from nearkin.models import Model
from nearkin.models.cut import FeatureSource
from nearkin.models.weights import packaged
from nearkin.protocols import Split
from nearkin.registry import METRICS, hyperparameters
from nearkin.runs.defaults import fit_batch, resolve

MOST_DIMENSIONS = 65_536


@dataclass(frozen=True)
class Data:
    """A data set as it was read: everything, test labels included."""

    table: Table                    # without unreadable images
    images: Table | Decoded         # its pixels
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

    @property
    def hash(self) -> str:
        """The name of the run."""
        versions = {"loop": loop.VERSION, "transforms": transforms_module.VERSION}
        return self.spec.hash(self.data_hash, self.split.hash(), **versions)


def prepare(spec: RunSpec, known: dict[str, Data] | None = None) -> Prepared:
    """Fill open settings, read the data, split them. `known` remembers data from call to call, for studies."""
    asked, spec = spec, resolve(spec)
    check_network(spec)
    table = read_table(spec.data) if known is None or repr(spec.data) not in known else None
    if table is not None:                                           # before hours of decoding
        split = make_split(spec, table)
        check(fit_batch(asked, spec, table.labels[split.train]), split, table.labels)
    data = read_data(spec.data, known, table)
    split = make_split(spec, data.table)
    train = data.table.labels[split.train]
    spec = check(fit_batch(asked, spec, train), split, data.table.labels)
    return Prepared(
        spec=spec,
        split=split,
        labels=np.unique(train, return_inverse=True)[1],
        val_labels=data.table.labels[split.val].copy(),
        pixels=pixels_of(spec, data),
        data_hash=data.hash,
        about={"split": split.describe(data.table), "skipped_images": len(data.skipped)},
    )


def check_network(spec: RunSpec) -> None:
    """Weights that are not there, and embeddings beyond reason, are refused before anything is read."""
    weights = spec.model.weights
    if weights == "imagenet":
        packaged(spec.model.backbone)
    elif weights is not None and not Path(str(weights)).expanduser().is_file():
        raise NearkinError(f"weights={weights!r}: no such file; give 'imagenet' or a local .pth, .pt or .safetensors")
    if (spec.model.dim or 0) > MOST_DIMENSIONS:
        raise NearkinError(f"model.dim={spec.model.dim}: at most {MOST_DIMENSIONS}; the literature has 64 to 1024")
    if spec.train.epochs and spec.method is None:
        with torch.random.fork_rng():                               # a small one, to see what goes together
            objective = build_objective(**parts_of(spec), num_classes=2, dim=spec.model.dim or 8)
        if spec.memory.size:
            objective.check_memory()
        groups = {"backbone", "head", *(group["name"] for group in objective.parameter_groups())}
        if unknown := sorted(set(spec.train.groups) - groups):
            raise NearkinError(f"train.groups.{unknown[0]}: there is no such group; {choices(unknown[0], groups)}")


def read_table(data: DataSpec) -> Table:
    """The rows of a data set; no image is decoded."""
    drawn = {"size": data.resize} if "size" in hyperparameters(data.cls) else {}     # images made to measure
    table = load_table(data.name, data.root, **{k: v for k, v in data.params.items() if k != "size"}, **drawn)
    return table if data.exclude is None else exclude(table, data.exclude)


def read_data(data: DataSpec, known: dict[str, Data] | None = None, table: Table | None = None) -> Data:
    """The data of a spec, decoded at its size; `table` where its rows are read already."""
    key = repr(data)
    if known is not None and key in known:
        return known[key]
    table = read_table(data) if table is None else table
    images: Table | Decoded = table
    skipped: list[tuple[str, str]] = []
    if table.images is None:
        images = decoded(table, resize=data.resize or 0, on_error=data.on_error)
        skipped = images.skipped
        table = table.take(images.kept) if skipped else table
    found = Data(table, images, data_hash(table), skipped)
    if known is not None:
        known[key] = found
    return found


def make_split(spec: RunSpec, table: Table) -> Split:
    """The rows of a table, divided by the protocol of a spec."""
    return spec.protocol.cls(**spec.protocol.params).split(table)


def pixels_of(spec: RunSpec, data: Data) -> PixelSource:
    """Pixels by row, and nothing else: no path comes along."""
    images = data.images
    if isinstance(images, Decoded):
        images = Decoded(images.pixels, images.shapes, np.arange(len(images)))
    return PixelSource(images, size=spec.data.size or 0, crop=spec.data.crop or 0, augment=data.table.augment)


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
