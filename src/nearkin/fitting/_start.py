"""Where `nearkin fit` begins: the network and the losses that it knows."""

from collections.abc import Mapping
from typing import Any

from nearkin.config.parse import canonical
from nearkin.config.spec import RunSpec, make_spec
from nearkin.errors import NearkinError
from nearkin.models.start import starting_network

# Behind these stages the last two groups of blocks train, in a third of the time.
STAGES = {"efficientnet_lite0": "block10", "efficientnet_lite1": "block14"}
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
    network, said = starting_network(given)
    return make_spec(network, given), said


def blend_of(spec: RunSpec, given: Mapping[str, Any], validates: bool) -> dict[str, Any]:
    """How far to go from the first weights, where the user does not say: what validation likes best, if it can."""
    asks = validates and spec.model.weights is not None and "train.blend" not in given
    return {"train.blend": "auto"} if asks else {}


def cuts_of(base: RunSpec, given: Mapping[str, Any]) -> list[str]:
    """What of the network may be trained, the most first; one choice where the user chose."""
    stage = STAGES.get(base.model.backbone)
    if "model.cut" in given or base.model.weights is None or stage is None:
        return [base.model.cut]
    return ["none", stage]
