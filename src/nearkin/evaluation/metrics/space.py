"""Metrics of the embedding space itself, on unit vectors e; σ are the singular values of the N × D matrix, not centred.

    rho          KL(U ‖ p) = mean_i -ln(m p_i),  p = σ/Σσ without the `drop` largest, m of them; low: a flat spectrum
                 `direction="spectrum"`: KL(p ‖ U) = Σ p_i ln(m p_i)                        (Roth et al. 2020)
    pi_intra     mean over classes of the mean cosine distance 1 - s_ij of their pairs i ≠ j; lone classes are left out
    pi_inter     mean cosine distance of the normalised class means
    pi_ratio     pi_intra / pi_inter                                                        (same)
    uniformity   ln mean_{i<j} exp(-2 ‖e_i - e_j‖²)                                         (Wang & Isola 2020)
    hubness@k    skewness of N_k(x), how often x is among the k nearest of a query          (Radovanović et al. 2010)

Pairs within a class need no matrix: Σ_{i≠j} e_i·e_j = ‖Σ e_i‖² - Σ ‖e_i‖².
"""

import numpy as np
import torch
from torch import Tensor

from nearkin.errors import NearkinError
from nearkin.evaluation.metrics.base import occurrence, space
from nearkin.evaluation.tiles import TILE, Tiles
from nearkin.numerics import unit


@space("rho")
def rho(z: Tensor, labels: np.ndarray | None = None, *, drop: int = 1, direction: str = "uniform") -> float:
    sigma = singular_values(z)
    if not 0 <= drop < len(sigma) - 1:
        raise NearkinError(f"drop={drop}: {len(sigma)} singular values, of which at least 2 must stay")
    p = sigma[drop:] / sigma[drop:].sum()
    p = np.maximum(p, 1e-12)
    if direction == "uniform":
        return float(-np.log(len(p) * p).mean())
    if direction == "spectrum":
        return float((p * np.log(len(p) * p)).sum())
    raise NearkinError(f"direction={direction!r}; choices: uniform, spectrum")


def singular_values(z: Tensor) -> np.ndarray:
    """σ of the unit vectors, descending, from the eigenvalues of the smaller Gram matrix in float64."""
    if len(z) <= z.shape[1]:
        e = unit(z.double())
        gram = e @ e.T
    else:
        gram = torch.zeros(z.shape[1], z.shape[1], dtype=torch.float64)
        for part in z.split(TILE):
            e = unit(part.double())
            gram += e.T @ e
    return torch.linalg.eigvalsh(gram).clamp_min(0).sqrt().flip(0).numpy()


def class_spectra(z: Tensor, labels: np.ndarray, *, keep: int = 35) -> np.ndarray:
    """Singular values of each class's rows, descending, the first `keep`, averaged over the classes; a shorter spectrum
    is filled up with 0 (Roth et al. 2020, supplement E)."""
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(np.asarray(labels)[order])) + 1)
    total = np.zeros(keep)
    for rows in groups:
        sigma = singular_values(z[torch.from_numpy(rows)])[:keep]
        total[: len(sigma)] += sigma
    return total / len(groups)                                      # (keep,)


@space("pi_intra")
def pi_intra(z: Tensor, labels: np.ndarray) -> float:
    sums, squares, count = _class_sums(z, labels)
    many = count > 1
    similarity = ((sums**2).sum(1) - squares)[many] / (count * (count - 1.0))[many]
    return float((1 - similarity).mean())


@space("pi_inter")
def pi_inter(z: Tensor, labels: np.ndarray) -> float:
    sums, _, _ = _class_sums(z, labels)
    mean = unit(torch.from_numpy(sums)).numpy()                     # (C, D)
    c = len(mean)
    return float(1 - ((mean.sum(0) ** 2).sum() - (mean**2).sum()) / (c * (c - 1)))


@space("pi_ratio")
def pi_ratio(z: Tensor, labels: np.ndarray) -> float:
    return pi_intra(z, labels) / max(pi_inter(z, labels), 1e-8)


@space("uniformity")
def uniformity(z: Tensor, labels: np.ndarray | None = None) -> float:
    tiles = Tiles(z, z, "cosine", np.arange(len(z)))
    total = 0.0
    for j in range(tiles.columns):
        for i in range(j + 1):
            kernel = np.exp(4 * tiles(i, j) - 4).sum(dtype=float)   # ‖e_i - e_j‖² = 2 - 2s; padding and diagonal give 0
            total += kernel / 2 if i == j else kernel
    return float(np.log(total / (len(z) * (len(z) - 1) / 2)))


@occurrence("hubness")
def hubness(count: np.ndarray) -> float:
    """`count`: N_k of each gallery item."""
    deviation = count - count.mean()
    spread = np.sqrt((deviation**2).mean())
    return 0.0 if spread == 0 else float((deviation**3).mean() / spread**3)


def _class_sums(z: Tensor, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ e_i (C, D), Σ ‖e_i‖² (C,) and the number of items (C,) of each class, in float64."""
    index = torch.from_numpy(np.unique(labels, return_inverse=True)[1].reshape(-1))
    c = int(index.max()) + 1
    sums, squares = torch.zeros(c, z.shape[1], dtype=torch.float64), torch.zeros(c, dtype=torch.float64)
    for part, of in zip(z.split(TILE), index.split(TILE), strict=True):
        e = unit(part.double())
        sums.index_add_(0, of, e)
        squares.index_add_(0, of, e.square().sum(1))
    return sums.numpy(), squares.numpy(), torch.bincount(index).numpy()
