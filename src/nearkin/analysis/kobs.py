"""The published agreement of saliency maps (Kobs et al. 2021, tables 1 to 5), pair by pair, beside ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `import nearkin` reads no table
    from nearkin.literature.table import Cell, PublishedTable

NAMES = {  # our loss -> what the tables call it
    "contrastive": "Contrastive",
    "triplet": "Triplet",
    "nt_xent": "NTXent",
    "fastap": "FastAP",
    "snr_contrastive": "SNR Con.",
    "proxy_nca_pp": "ProxyNCA",
    "norm_softmax": "N. Softmax",
    "cosface": "CosFace",
    "arcface": "ArcFace",
    "soft_triple": "SoftTriple",
}
CORRELATION = {"cub": "kobs_t2", "cars196": "kobs_t1"}
DIVERGENCE = {"cub": "kobs_t5", "cars196": "kobs_t4", "sop": "kobs_t3"}
ELSEWHERE = "cub"  # beside data that are not in the tables


@dataclass(frozen=True)
class Published:
    """A published cell, and whether the two halves of its table differ there."""

    value: "Cell | None"
    asymmetric: bool = False

    def __str__(self) -> str:
        return "–" if self.value is None else f"{self.value}{' *' if self.asymmetric else ''}"


def name_of(settings: Mapping[str, Any]) -> str | None:
    """What the tables call a run with these settings (dotted keys); None where they have no such loss.

    Their ProxyNCA is that of pytorch-metric-learning, the softmax over all proxies: our proxy_nca_pp.
    """
    if settings.get("train.epochs") == 0:
        return None if settings.get("model.head") != "linear" else "None"
    loss = settings["loss.name"]
    if loss == "margin":
        return "Margin/class" if settings.get("loss.per_class", True) else "Margin"
    if loss == "multi_similarity":
        return "MS+Miner" if settings.get("miner.name") == "multi_similarity" else "MS"
    return NAMES.get(loss)


def tables_of(data: str) -> "tuple[PublishedTable | None, PublishedTable]":
    """The published correlations and divergences on a data set; those on CUB where there are none."""
    from nearkin.literature.tables import table

    if data not in DIVERGENCE:
        data = ELSEWHERE
    return (table(CORRELATION[data]) if data in CORRELATION else None), table(DIVERGENCE[data])


def cell(found: "PublishedTable | None", first: str | None, second: str | None) -> Published:
    """The cell of two losses by their published names; null cells are read from the other half of the table."""
    from nearkin.literature.table import Cell

    if found is None or first is None or second is None or first == second:
        return Published(None)
    i, j = found.row(first), found.find(second)
    value = found.rows[i].cells[j]
    uneven = any(flag.kind == "not symmetric" and (i, j) in flag.cells for flag in found.flags)
    return Published(value if isinstance(value, Cell) else None, uneven)
