"""The weight of a pair, ∂L/∂s, of any loss by autograd: how hard the loss pulls or pushes at a pair of similarity s.

A loss is given vectors, not similarities. Let V (n, D) be all vectors that it compares, samples and proxies, linearly
independent. A loss that depends on them through their products G = VVᵀ alone has the gradient

    g_i = ∂L/∂v_i = Σ_j w_ij v_j,    so that    w = g V⁺

w_ij is ∂L/∂s_ij of the unordered pair at unit vectors, all other similarities fixed; no formula of the loss is needed.
A symmetric w with g = wV shows that the loss depends on products alone.

The place: 4 classes of 3 samples, for proxy losses with their proxies, as unit vectors. Two vectors of one class have
similarity 0.2, of two classes 0; then one pair is moved, and for the tables a second one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import permutations, product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nearkin.engine.objective import build_objective
from nearkin.losses import Loss
from nearkin.pairs import Couples, Quadruplets

CLASSES, EACH, DIM = 4, 3, 40
WITHIN, BETWEEN = 0.2, 0.0  # similarities that are not moved
LABELS = torch.arange(CLASSES).repeat_interleave(EACH)
SPECIAL: dict[str, dict[str, Any]] = {  # parts that are no function of products are left out
    "hist": {"lam": 0.0},
    "snr_triplet": {"reg_weight": 0.0},
    "snr_contrastive": {"reg_weight": 0.0},
}
CLOSED_FORMS = (  # the losses whose ∂L/∂s tests compare with a formula
    "contrastive",
    "triplet",
    "margin",
    "multi_similarity",
    "lifted_weighted",
    "lifted_similarity",
    "lifted_structure",
    "nt_xent",
    "npair",
    "proxy_anchor",
    "proxy_nca",
    "proxy_nca_pp",
    "norm_softmax",
    "softmax",
    "cosface",
    "arcface",
)

Moved = tuple[tuple[int, int], float]  # a pair of vectors, and its similarity


@dataclass(frozen=True)
class Place:
    """Samples and proxies of a loss with given similarities, and the weights of all pairs there.

    Parameters:
        loss: its name.
        settings: its hyper-parameters where they are not the default.
        miner: name and hyper-parameters of a miner, or None.

    Example:
        place = Place("multi_similarity")
        place.weights([((0, 1), 0.4)])[0, 1]                    # ∂L/∂s of a positive pair at s = 0.4
    """

    loss: str
    settings: tuple[tuple[str, Any], ...] = ()
    miner: tuple[str, tuple[tuple[str, Any], ...]] | None = None

    @cached_property
    def objective(self) -> Any:
        """Loss and miner, in double precision."""
        settings = dict(self.settings) | SPECIAL.get(self.loss, {})
        miner = None if self.miner is None else (self.miner[0], dict(self.miner[1]))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            objective = build_objective(loss=(self.loss, settings), miner=miner, num_classes=CLASSES, dim=DIM)
        return objective.double()

    @property
    def proxies(self) -> torch.nn.Parameter | None:
        """The class vectors of the loss, where it has some."""
        vectors = getattr(self.objective.loss, "proxies", None)
        return vectors if isinstance(vectors, torch.nn.Parameter) else None

    @cached_property
    def labels(self) -> Tensor:
        """(n,) classes of all vectors: samples, then proxies."""
        if self.proxies is None:
            return LABELS
        return torch.cat([LABELS, torch.arange(len(self.proxies)) % CLASSES])

    @cached_property
    def pairs(self) -> dict[str, tuple[int, int]]:
        """A positive and a negative pair: two samples, or the first sample and a proxy."""
        if self.proxies is None:
            return {"positive": (0, 1), "negative": (0, EACH)}
        return {"positive": (0, len(LABELS)), "negative": (0, len(LABELS) + 1)}

    def neighbours(self, pair: tuple[int, int], kind: str) -> list[tuple[int, int]]:
        """One other pair of a kind (positive, negative) at each end of a pair, of those that the loss compares."""
        pairs: dict[int, tuple[int, int]] = {}
        for end, other in product(pair, range(len(self.labels))):
            is_compared = self.proxies is None or (end < len(LABELS)) != (other < len(LABELS))
            same = bool(self.labels[end] == self.labels[other])
            if other not in pair and is_compared and same == (kind == "positive"):
                pairs.setdefault(end, (end, other))
        return list(pairs.values())

    def root(self, moved: Sequence[Moved]) -> Tensor | None:
        """(n, n), lower triangular, with root·rootᵀ = G of these similarities; None where no vectors have them."""
        same = self.labels[:, None] == self.labels
        gram = torch.where(same, WITHIN, BETWEEN).double().fill_diagonal_(1)
        for (i, j), s in moved:
            gram[i, j] = gram[j, i] = s
        root, failed = torch.linalg.cholesky_ex(gram)
        return None if failed or root.diagonal().min() < 1e-3 else root

    def vectors(self, moved: Sequence[Moved] = ()) -> Tensor | None:
        """(n, DIM) unit vectors with these similarities, coordinates of mean 0; None where there are none such."""
        root = self.root(moved)
        return None if root is None else root @ _basis(len(root))

    def weights(self, moved: Sequence[Moved] = ()) -> np.ndarray | None:
        """w (n, n) with these pairs moved; None where no vectors have these similarities."""
        root = self.root(moved)
        if root is None:
            return None
        basis = _basis(len(root))  # V = root · basis
        inside = self.gradient(root @ basis) @ basis.T  # (n, n)
        return torch.linalg.solve_triangular(root, inside, upper=False, left=False).numpy()

    def put(self, v: Tensor) -> Tensor:
        """Give the proxies of the loss their vectors, and return those of the samples."""
        with torch.no_grad():
            if self.proxies is not None:
                self.proxies.copy_(v[len(LABELS) :])
            if getattr(self.objective.loss, "v", None) is not None:  # of HIST: q = 1
                self.objective.loss.v.zero_()
        return v[: len(LABELS)]  # (B, DIM)

    def gradient(self, v: Tensor) -> Tensor:
        """g (n, DIM) at these vectors."""
        z = self.put(v).clone().requires_grad_()
        wanted: list[Tensor] = [z] if self.proxies is None else [z, self.proxies]
        if self.objective.miner is not None:
            value = self.objective(z, LABELS, generator=torch.Generator().manual_seed(0))
        else:
            value = self.objective.loss(z, LABELS, all_tuples(self.objective.loss))
        gradients = torch.autograd.grad(value, wanted, allow_unused=True)
        slopes = [torch.zeros_like(w) if g is None else g for g, w in zip(gradients, wanted, strict=True)]
        return torch.cat(slopes).detach()  # (n, DIM)


def all_tuples(loss: Loss) -> Any:
    """All couples or quadruplets of the batch for losses that would draw some; None for the others."""
    same = (LABELS[:, None] == LABELS).tolist()
    couples = [(a, p) for a, p in permutations(range(len(LABELS)), 2) if same[a][p]]
    if Couples in loss.accepts:
        return Couples(*torch.tensor(couples).T)
    if Quadruplets in loss.accepts:
        pairs = product(couples, permutations(range(len(LABELS)), 2))
        listed = [(a, p, x, y) for (a, p), (x, y) in pairs if not (same[a][x] or same[a][y] or same[x][y])]
        return Quadruplets(*torch.tensor(listed).T)
    return None


@lru_cache(maxsize=8)
def _basis(n: int) -> Tensor:
    """(n, DIM) orthonormal vectors whose coordinates have mean 0, so that a variance of coordinates is a product."""
    random = torch.Generator().manual_seed(0)
    drawn = torch.randn(n, DIM, generator=random, dtype=torch.float64)
    drawn = drawn - drawn.mean(1, keepdim=True)
    return torch.linalg.qr(drawn.T).Q.T
