"""What the tests of losses share: how each is built, small batches, tuples under a permutation."""

from typing import Any

import torch
from torch import Tensor

from nearkin.engine.objective import build_objective
from nearkin.losses import Loss
from nearkin.miners import Miner
from nearkin.pairs import PairMasks
from nearkin.registry import LOSSES, MINERS

# Settings beside the defaults that are tested against the oracles and for gradients.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "contrastive": [
        {"pos_margin": 0.3, "neg_margin": 1.4},
        {"form": "similarity", "threshold": 0.1},
        {"form": "cosine", "pos_margin": 0.2, "neg_margin": 0.7},
    ],
    "generalized_lifted": [{"margin": 3.0, "reg_power": 2}],
    "npair": [{"pairing": "class"}, {"unit": True}, {"unit": True, "pairing": "class", "nu": 0.0}],
    "angular": [{"alpha": 40.0, "npair": 0.0}],
    "margin": [
        {"per_class": False, "divisor": "active_triplets"},
        {"beta": 0.9, "margin": 0.4, "nu": 0.1, "divisor": "active_triplets"},
        {"form": "similarity", "per_class": False, "margin": 0.5, "beta": 0.28},
        {"form": "similarity", "margin": 0.2, "beta": -0.1, "nu": 0.1, "divisor": "active_triplets"},
    ],
    "proxy_nca": [{"scale": 0.70710678}],
    "snr_contrastive": [{"pos_margin": 0.2, "neg_margin": 2.0, "reg_weight": 0.1}],
    "softmax": [{"bias": True}],
    "arcface": [{"margin": 1.2, "scale": 8.0, "monotone": True}],
    "soft_triple": [{"centres": 3, "scale": 20.0, "tau": 1.0}, {"centres": 1}],
    "proxy_repel": [
        {"via": "proxies"},
        {"scale": "mean"},
        {"scale": "mean", "relations": 0.7},
        {"via": "proxies", "relations": 2.0, "alpha": 8.0},
    ],
    "histogram": [{"nodes": 11}],
    "fastap": [{"bins": 17}],
    "hist": [
        {"tau": 5.0, "alpha": 0.3, "lam": 0.5, "hidden": 7},
        {"graph": "positives"},
        {"distribution_loss": False},
        {"variance": False},
        {"graph": "attention"},
        {"graph": "none", "distribution_loss": False},
    ],
    "triplet": [
        {"squared": False, "margin": 0.1},
        {"reduction": "mean_active"},
        {"squared": False, "reduction": "mean_active", "margin": 0.5},
    ],
    "multi_similarity": [{"alpha": 18.0, "beta": 75.0, "base": 0.8}, {"divisor": "batch"}],
    "proxy_anchor": [{"alpha": 64.0, "delta": 0.2}],
}
CASES = [(name, settings) for name in LOSSES.names() for settings in [{}, *VARIANTS.get(name, [])]]


def case_id(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{k}={v}" for k, v in value.items()) or "defaults"
    return str(value)


def make(name: str, settings: dict[str, Any] | None = None, *, classes: int = 4, dim: int = 6, seed: int = 0) -> Loss:
    torch.manual_seed(seed)
    return build_objective(loss=(name, settings or {}), num_classes=classes, dim=dim).loss


def batch(
    b: int = 12, dim: int = 6, classes: int = 4, seed: int = 0, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(b, dim, generator=generator, dtype=torch.float64).to(dtype)
    return z, torch.randint(classes, (b,), generator=generator)


def miners_for(loss: Loss) -> list[tuple[str, Miner]]:
    """Every registered miner that the loss can take, margins shared."""
    fits = [name for name in MINERS.names() if MINERS[name].gives in loss.accepts]
    return [(name, _miner(name, loss)) for name in fits]


def _miner(name: str, loss: Loss) -> Miner:
    settings = {"margin": 0.2} if name == "semihard" and not hasattr(loss, "margin") else {}
    return MINERS[name](**settings).for_loss(loss)


def permuted(tuples: Any, order: Tensor) -> Any:
    """The same tuples for the batch z[order]."""
    if tuples is None:
        return None
    if isinstance(tuples, PairMasks):
        return PairMasks(*(mask[order][:, order] for mask in tuples))
    where = torch.empty_like(order)
    where[order] = torch.arange(len(order))
    return type(tuples)(*(where[index] for index in tuples))


def value_and_gradients(loss: Loss, z: Tensor, labels: Tensor, tuples: Any = None) -> tuple[Tensor, list[Tensor]]:
    z = z.detach().clone().requires_grad_()
    wanted = [z, *loss.parameters()]
    value = loss(z, labels, tuples)
    gradients = torch.autograd.grad(value, wanted, allow_unused=True)
    return value.detach(), [g if g is not None else torch.zeros_like(w) for g, w in zip(gradients, wanted, strict=True)]
