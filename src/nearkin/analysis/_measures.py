"""By which measure a loss compares two embeddings, so that a saliency map asks what the loss asked.

euclid            ‖e - e₀‖                      e = z/‖z‖
squared_euclid    ‖e - e₀‖²
cosine            e·e₀
dot               z·z₀
raw_euclid        ‖z - z₀‖
snr               Var(e - e₀) / Var(e)          variances over the coordinates; the image is the anchor
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor

from nearkin.errors import NearkinError, choices
from nearkin.numerics import sqrt0, unit

KOBS = "Kobs et al. 2021 (their code)"
FORMULA = "the loss's own formula"


class Measure(NamedTuple):
    """A measure by name, and who says so."""

    name: str
    source: str


MEASURES: dict[str, Measure] = {
    "angular": Measure("cosine", FORMULA),
    "arcface": Measure("cosine", KOBS),
    "contrastive": Measure("euclid", KOBS),
    "cosface": Measure("cosine", KOBS),
    "fastap": Measure("squared_euclid", KOBS),
    "generalized_lifted": Measure("raw_euclid", FORMULA),
    "hist": Measure("squared_euclid", FORMULA),
    "histogram": Measure("cosine", FORMULA),
    "lifted_similarity": Measure("cosine", FORMULA),
    "lifted_structure": Measure("euclid", FORMULA),
    "lifted_weighted": Measure("cosine", FORMULA),
    "margin": Measure("euclid", KOBS),
    "multi_similarity": Measure("cosine", KOBS),
    "norm_softmax": Measure("cosine", f"{KOBS}: the dot product of unit vectors"),
    "npair": Measure("dot", FORMULA),
    "nt_xent": Measure("cosine", KOBS),
    "proxy_anchor": Measure("cosine", FORMULA),
    "proxy_nca": Measure("squared_euclid", KOBS),
    "proxy_nca_pp": Measure("squared_euclid", KOBS),
    "proxy_repel": Measure("cosine", FORMULA),
    "quadruplet": Measure("euclid", FORMULA),
    "snr_contrastive": Measure("snr", KOBS),
    "snr_triplet": Measure("snr", FORMULA),
    "soft_triple": Measure("cosine", KOBS),
    "softmax": Measure("dot", FORMULA),
    "triplet": Measure("squared_euclid", FORMULA),
}
VARIANTS: list[tuple[str, str, Any, Measure]] = [  # loss, setting, value: another measure than the default's
    ("contrastive", "form", "cosine", Measure("cosine", FORMULA)),
    ("contrastive", "form", "similarity", Measure("cosine", FORMULA)),
    ("npair", "unit", True, Measure("cosine", FORMULA)),
    ("triplet", "squared", False, Measure("euclid", KOBS)),
]
UNTRAINED = Measure("euclid", f"{KOBS}: of the network without training")
FOREIGN = Measure("cosine", "the measure of the evaluation: nothing is known of a loss from outside")


def measure_of(settings: Mapping[str, Any]) -> Measure:
    """The measure of a run, by its settings as dotted keys (`train.epochs`, `loss.name`, `loss.form`)."""
    if settings.get("train.epochs") == 0:
        return UNTRAINED
    loss = settings["loss.name"]
    for name, key, value, measure in VARIANTS:
        if loss == name and settings.get(f"loss.{key}") == value:
            return measure
    return MEASURES.get(loss, FOREIGN)


def compared(measure: str, z: Tensor, reference: Tensor) -> Tensor:
    """The measure of B raw embeddings z (B, D) and one raw reference (1, D), with gradients.         -> (B,)"""
    if measure == "dot":
        return (z * reference).sum(1)
    if measure == "raw_euclid":
        return sqrt0((z - reference).square().sum(1))
    e, e0 = unit(z), unit(reference)
    if measure == "cosine":
        return (e * e0).sum(1)
    if measure == "snr":
        return (e - e0).var(1) / e.var(1).clamp_min(1e-12)
    squares = (e - e0).square().sum(1)
    if measure == "squared_euclid":
        return squares
    if measure == "euclid":
        return sqrt0(squares)
    known = ("cosine", "dot", "euclid", "raw_euclid", "snr", "squared_euclid")
    raise NearkinError(f"unknown measure {measure!r}: {choices(measure, known)}")
