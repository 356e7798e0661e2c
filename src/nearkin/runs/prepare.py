"""Everything that is decided before the first step of a run, and all that training may know.

Labels, columns and class names of test rows are not in it: `runs/test.py` reads them from the data, once the run is
stored as final. Nor are paths, except with data.cache=none, where pixels are read from named files (data/forms.py).
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nearkin.config.born import plain
from nearkin.config.bounds import check_memory, room_for_images
from nearkin.config.identity import content_of, modules_of, package_of
from nearkin.config.parse import flatten
from nearkin.config.parts import DataSpec, SamplerSpec
from nearkin.config.recipes import Recipe
from nearkin.config.spec import RunSpec
from nearkin.data import Augment, PixelSource, Table
from nearkin.data import transforms as transforms_module
from nearkin.engine import loop
from nearkin.engine.batches import Source
from nearkin.engine.embed import BATCH
from nearkin.engine.objective import build_objective
from nearkin.errors import NearkinError, choices
from nearkin.evaluation.metrics.base import parse
from nearkin.evaluation.tiles import peak_bytes
from nearkin.methods.base import Method
from nearkin.models import Backbone, LinearHead, Model, NoHead
from nearkin.models.build import create_backbone
from nearkin.models.checkpoints import PACKAGED, imagenet
from nearkin.models.cut import FeatureSource
from nearkin.models.fitted import FittedHead
from nearkin.models.model import check_batch_norm
from nearkin.models.weights import check_file, fitting
from nearkin.protocols import Split
from nearkin.registry import BACKBONES, HEADS, METRICS, hyperparameters
from nearkin.runs.data import Data, Division, key_of, make_split, read_data, read_table
from nearkin.runs.defaults import complete, fill, fit_batch, resolve, spare_few
from nearkin.runs.seen import Records, check_unseen, seen_by

MOST_DIMENSIONS = 65_536


@dataclass(frozen=True)
class Prepared:
    """The input of training: the resolved spec, rows, labels of training and validation rows, pixels."""

    spec: RunSpec
    split: Split  # rows alone
    labels: np.ndarray  # (N,) of the training rows, 0..C-1
    val_labels: np.ndarray  # (V,) of the validation rows
    pixels: PixelSource  # of all rows
    data_hash: str
    about: dict[str, Any]  # the numbers of images and classes, for the user
    seen: Records = ()  # what its weights will have seen (runs/seen.py)
    requested: RunSpec | None = None  # the spec before anything was filled in, for its former name (runs/names.py)

    @cached_property
    def hash(self) -> str:
        """The name of the run. It may be stored under a former one: `nearkin.runs.names.run_of` finds it."""
        return self.name_of(self.spec)

    def name_of(self, spec: RunSpec, *, former: bool = False) -> str:
        """The name of a resolved spec on these data, by the current or by the former rule."""
        versions = {"loop": loop.VERSION, "transforms": transforms_module.VERSION}
        return spec.hash(self.data_hash, self.split.hash(), former=former, **versions)


def prepare(spec: RunSpec, known: dict[str, Data] | None = None) -> Prepared:
    """Fill in unset settings, read the data, split them. `known` keeps data from call to call, for studies."""
    requested, spec = spec, with_weights(resolve(spec))
    check_network(spec)
    check_start(requested.model.init, spec)
    if spec.train.epochs and requested.train.batch is not None and spec.sampler is not None:
        check_batches(spec.sampler, requested.train.batch)
    table = read_table(spec.data) if known is None or key_of(spec.data) not in known else None
    if table is not None:  # before hours of decoding
        before = Division(table, make_split(spec, table))
        augment_of(spec.data, table)
        check(fit_batch(requested, spec, before.labels), before)
    data = read_data(spec.data, known, table)
    division = data.divided(spec.protocol)
    split, labels = division.split, division.labels
    check(fit_batch(requested, spec, labels), division)
    facts = {"validates": len(split.val) > 0, "skips": len(data.skipped) > 0, "augment": data.table.augment}
    spec = spare_few(requested, fit_batch(requested, resolve(spec, **facts), labels), labels)
    seen, record = seen_by(spec.model.weights), division.record(spec.data.name, data)
    if seen:
        division.once(
            content_of(spec.model.weights or ""),
            lambda: check_unseen(spec.model.weights, seen, record, data.table, split, data.contents),
        )
    return Prepared(
        spec=spec,
        split=split,
        labels=labels,
        val_labels=division.val_labels,
        pixels=pixels_of(spec, data),
        data_hash=data.hash,
        about={
            "split": division.about,
            "skipped_images": len(data.skipped),
            **recipe_of(requested),
            **outside_in(spec),
        },
        seen=(record, *seen) if spec.train.epochs else seen,
        requested=requested,
    )


def recipe_of(asked: RunSpec) -> dict[str, Any]:
    """The recipe of a run, and what was set differently: key -> [the recipe's value, the run's]."""
    if asked.recipe is None:
        return {}
    words = flatten(complete(fill(asked)).whole())  # also what nothing reads: the recipe says it too
    return {"recipe": {"name": asked.recipe, "overridden": Recipe.named(asked.recipe).overridden(plain(words))}}


def outside_in(spec: RunSpec) -> dict[str, Any]:
    """What is outside nearkin and part of a run's name: `modules`, each with the hash of its text, and `packages`, each
    with its version."""
    parts = spec.parts().values()
    modules = {module: text for part in parts for module, text in modules_of(part).items()}
    packages = sorted({package for part in parts if (package := package_of(part)) is not None})
    named = {"modules": dict(sorted(modules.items())), "packages": packages}
    return {what: value for what, value in named.items() if value}


def with_weights(spec: RunSpec) -> RunSpec:
    """The same spec with the path of the file that `weights=imagenet` means, so that its content is hashed. Weights
    that come in a package keep their name."""
    if spec.model.weights != "imagenet":
        return spec
    path = imagenet(spec.model.backbone)
    if spec.model.backbone in PACKAGED:
        return spec
    return spec.model_copy(update={"model": spec.model.model_copy(update={"weights": str(path.absolute())})})


def check_network(spec: RunSpec) -> None:
    """Refuse missing weights, weights that do not fit, images of a wrong size, and too large embeddings, before any
    data are read."""
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
        raise NearkinError(f"model.dim={spec.model.dim}: at most {MOST_DIMENSIONS}; the literature uses 64 to 1024")
    if spec.model.head != "none":
        searched = f"model.dim={spec.model.dim}: the working memory of its test"
        check_memory(peak_bytes(spec.model.dim or 0), searched, "take fewer dimensions")
    room_for_images(BATCH, spec.data.size or 0, f"data.size={spec.data.size}")
    if spec.train.epochs:
        room_for_images(spec.train.batch or 0, spec.data.crop or 0, f"data.crop={spec.data.crop}")
    for key, side in (("resize", spec.data.resize), ("keep", spec.data.keep)):
        room_for_images(1, side or 0, f"data.{key}={side}")
    if spec.train.epochs and spec.method is None:
        check_objective(spec)


def check_start(init: str | None, spec: RunSpec) -> None:
    """Refuse model.init=pca, as it was asked for, with a head that trains and cannot begin so."""
    head = HEADS[spec.model.head or "linear"]
    fits = LinearHead if spec.model.init == "pca" else NoHead | FittedHead  # which have nothing to begin
    if init == "pca" and not (isinstance(head, type) and issubclass(head, fits)):
        raise NearkinError(
            f"model.init=pca begins a linear head; model.head={spec.model.head} has a start of its own: leave "
            "model.init unset"
        )


def check_batches(sampler: SamplerSpec, batch: int) -> None:
    """Refuse a sampler that cannot make batches of this size from any data, before the data are read."""
    defaults = {key: parameter.default for key, parameter in hyperparameters(sampler.cls).items()}
    sampler.cls.check_settings(batch, **defaults | sampler.params)


def check_objective(spec: RunSpec) -> None:
    """Refuse loss, miner, regulariser and memory that do not fit together, wrong hyper-parameters, and settings of a
    parameter group that does not exist."""
    with torch.random.fork_rng(devices=[]):  # a small one, to see what goes together
        objective = build_objective(**parts_of(spec), num_classes=2, dim=spec.model.dim or 8)
    if spec.memory.size:
        objective.check_memory()
    check_groups(spec, objective)


def check_groups(spec: RunSpec, method: Method) -> None:
    """Refuse settings of a parameter group that neither the network nor the method has."""
    groups = {"backbone", "head", *(group["name"] for group in method.parameter_groups())}
    if unknown := sorted(set(spec.train.groups) - groups):
        raise NearkinError(f"train.groups.{unknown[0]}: no such group; {choices(unknown[0], groups)}")


@lru_cache(maxsize=16)
def _check_fit(name: str, part: Any, path: Path, size: int, time: int) -> None:
    """Read a file of weights once; `part` is the current class of that name, size and time identify the file."""
    with torch.random.fork_rng(devices=[]):
        fitting(create_backbone(name), path)


def pixels_of(spec: RunSpec, data: Data) -> PixelSource:
    """Pixels by row, and nothing else."""
    return PixelSource(
        data.pixels,
        size=spec.data.size or 0,
        crop=spec.data.crop or 0,
        augment=augment_of(spec.data, data.table),
        resize=spec.data.resize if data.table.images is None else None,  # arrays are taken as they are
    )


def augment_of(data: DataSpec, table: Table) -> Augment:
    """How training may augment the images: as the data set says, unless the spec says otherwise."""
    chosen = {key: value for key in ("crop_scale", "crop_ratio", "flip") if (value := getattr(data, key)) is not None}
    augment = replace(table.augment, kind=data.augment, **chosen)
    if data.crop_ratio is not None and augment.crop_scale is None:
        low, high = data.crop_ratio
        raise NearkinError(
            f"data.crop_ratio={low:g}-{high:g} has no effect, because images of {data.name} are not cropped; "
            "set data.crop_scale too, as in data.crop_scale=0.5-1"
        )
    return augment


def check(spec: RunSpec, division: Division) -> RunSpec:
    """Check before training what can be checked: the metric that selects, and whether the sampler can fill its
    batches."""
    sampler, split = spec.sampler, division.split
    if spec.train.epochs and sampler is not None and not sampler.cls.needs_bank:
        division.once(
            (repr(sampler), sampler.cls, spec.train.batch),
            lambda: sampler.cls(division.labels, spec.train.batch, spec.train.seed, **sampler.params),
        )
    if spec.train.epochs and spec.train.blend == "auto" and not len(split.val):
        raise NearkinError(
            f"train.blend=auto chooses on validation images, and protocol={spec.protocol.name} has none; set a number "
            "from 0 to 1"
        )
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
        prepared.pixels,
        model,
        data_hash=prepared.data_hash,
        views=prepared.spec.model.views,
        flip=prepared.pixels.augment.flip,
        augmented=prepared.split.train,
    )


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
