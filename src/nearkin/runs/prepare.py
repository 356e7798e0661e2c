"""All that is decided before the first step of a run: data, split, pixels, objective."""

from dataclasses import dataclass
from typing import Any

from nearkin.config.spec import DataSpec, RunSpec
from nearkin.data import Decoded, PixelSource, Table, load_table
from nearkin.data.cache import data_hash, decoded
from nearkin.engine.batches import Source
from nearkin.engine.objective import build_objective
from nearkin.methods.base import Method
from nearkin.models import Model
from nearkin.models.cut import FeatureSource
from nearkin.protocols import Split
from nearkin.registry import hyperparameters
from nearkin.runs.defaults import fit_batch, resolve


@dataclass
class Prepared:
    """All that is decided before the first step."""

    spec: RunSpec
    table: Table
    split: Split
    pixels: PixelSource
    data_hash: str
    skipped: list[tuple[str, str]]

    @property
    def hash(self) -> str:
        """The name of the run."""
        return self.spec.hash(self.data_hash, self.split.hash())


def prepare(spec: RunSpec, known: dict[str, Any] | None = None) -> Prepared:
    """Fill open settings, read the data, split them. `known` remembers tables from call to call, for studies."""
    asked, spec = spec, resolve(spec)
    data = spec.data
    key = repr(data)
    known = {} if known is None else known
    if key not in known:
        known[key] = _load(data)
    table, images, fingerprint, skipped = known[key]
    split = spec.protocol.cls(**spec.protocol.params).split(table)
    pixels = PixelSource(images, size=data.size or 0, crop=data.crop or 0, augment=table.augment)
    spec = fit_batch(asked, spec, table.labels[split.train])
    return Prepared(spec, table, split, pixels, fingerprint, skipped)


def _load(data: DataSpec) -> tuple[Table, Table | Decoded, str, list[tuple[str, str]]]:
    """The table without unreadable images, its pixels, its hash, what was skipped."""
    drawn = {"size": data.resize} if "size" in hyperparameters(data.cls) else {}     # images made to measure
    table = load_table(data.name, data.root, **data.params, **drawn)
    if table.images is not None:
        return table, table, data_hash(table), []
    images = decoded(table, resize=data.resize or 0, on_error=data.on_error)
    if images.skipped:
        table = table.take(images.kept)
    return table, images, data_hash(table), images.skipped


def make_source(prepared: Prepared, model: Model) -> Source:
    """Pixels, or the cached features of the frozen front."""
    if model.cut == "none":
        return prepared.pixels
    return FeatureSource(
        prepared.pixels, model, data_hash=prepared.data_hash, views=prepared.spec.model.views,
        flip=prepared.table.augment.flip, augmented=prepared.split.train,
    )  # fmt: skip


def make_objective(spec: RunSpec, model: Model, *, num_classes: int) -> Method:
    """The objective of a spec: loss, miner and regulariser, with a method around them where one is set."""

    def objective(dim: int) -> Method:
        return build_objective(
            loss=(spec.loss.name, spec.loss.params),
            miner=(spec.miner.name, spec.miner.params) if spec.miner else None,
            regularisers=[(spec.regulariser.name, spec.regulariser.params)] if spec.regulariser else [],
            num_classes=num_classes,
            dim=dim,
        )

    if spec.method is None:
        return objective(model.dim)
    return spec.method.cls.around(objective, model, **spec.method.params)
