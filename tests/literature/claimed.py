"""Rows of studies that were never trained, as claims see them."""

import itertools

from nearkin.literature.matching import StudyRow
from nearkin.statistics.unit import Key, Place, Row

TEN = [
    "proxy_anchor",
    "soft_triple",
    "multi_similarity",
    "contrastive",
    "lifted_structure",
    "margin",
    "arcface",
    "proxy_nca",
    "triplet",
    "npair",
]
NETWORKS, DIMS = ["resnet50", "bn_inception", "googlenet"], [64, 128, 512, 1024]
NOISE = [0.001, -0.002, 0.0015, -0.0005, 0.0]


def spec_of(loss, **settings):
    """The settings of a run; `data__name` stands for data.name."""
    spec = {
        "data.name": "cub",
        "protocol.name": "standard",
        "model.backbone": "resnet50",
        "model.dim": 128,
        "loss.name": loss,
        "train.epochs": 6,
    }
    return spec | {key.replace("__", "."): value for key, value in settings.items()}


def row(loss, level, *, seeds=5, noise=1.0, metric="recall@1", folds=(), joined=(), **settings):
    """A method whose seeds lie around a level, or around one level for each metric; the noise is laid on otherwise for
    every loss, so that differences vary too. `joined` are the metrics of joined folds, with the same values."""
    levels = level if isinstance(level, dict) else {metric: level}
    shift = sum(map(ord, loss)) % 5
    metrics = {}
    for i, (name, middle) in enumerate(levels.items()):
        values = {
            Key(seed, Place((), fold)): middle + noise * NOISE[(seed + shift + i) % 5]
            for seed, fold in itertools.product(range(seeds), folds or [None])
        }
        metrics[name] = Row(loss, values)
    together = {name: Row.of_seeds(loss, metrics[name].values) for name in joined}
    return StudyRow(loss, spec_of(loss, **settings), metrics, together)


def of_values(loss, values, metric="recall@1", **settings):
    """A row with these values: seed -> value."""
    return StudyRow(loss, spec_of(loss, **settings), {metric: Row.of_seeds(loss, values)})


def ladder(step=0.02, order=TEN, **more):
    """Ten losses, each a step below the one before it."""
    return [row(loss, 0.6 - step * i, **more) for i, loss in enumerate(order)]


def twelve(step=0.02, order=TEN, **more):
    """The ladder in the twelve experiments of Psomas 2020: three networks, four sizes."""
    return [
        one
        for backbone in NETWORKS
        for dim in DIMS
        for one in ladder(step, order, model__backbone=backbone, model__dim=dim, **more)
    ]
