"""Metrics of the embedding space itself: one number for all items together, on unit vectors e = z/‖z‖."""

import numpy as np
import torch
from torch import Tensor

from nearkin.errors import NearkinError
from nearkin.evaluation.metrics.base import occurrence, space
from nearkin.evaluation.tiles import TILE, Tiles
from nearkin.numerics import unit


@space("rho", better="low", bounds=(0.0, None))
def rho(z: Tensor, labels: np.ndarray | None = None, *, drop: int = 1, direction: str = "uniform") -> float:
    """Spectral decay ρ: how unequal the singular values are; low: a flat spectrum (Roth et al. 2020).

        KL(U ‖ p) = (1/m) Σ_i -ln(m p_i),   p = σ/Σσ

    σ are the singular values of the N × D matrix of unit vectors, not centred, without the `drop` largest; m of them
    are left. U is the uniform distribution over them. A p_i below 1e-12 counts as 1e-12. Labels play no part.

    Range: from 0 (all singular values are equal) upwards.

    Source: Roth et al. 2020 (ICML), who measure it on the training embeddings. Their plots leave the largest singular
    value out, their README keeps it.

    Parameters:
        z: (N, D), raw embeddings; they are normalised here.
        labels: not used.
        drop: how many of the largest singular values are left out; at least 2 must be left.
        direction: "uniform" is KL(U ‖ p); "spectrum" is KL(p ‖ U) = Σ_i p_i ln(m p_i).
    """
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
    """The min(N, D) singular values of the matrix of unit vectors, descending; float64, not centred.

    They are square roots of the eigenvalues of the smaller Gram matrix.

    Parameters:
        z: (N, D), raw embeddings; they are normalised here.
    """
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
    """The singular values (keep,) of the unit vectors of one class, descending, averaged over the classes.

    A class with fewer than `keep` singular values is filled up with 0.

    Source: Roth et al. 2020 (ICML), supplement E.

    Parameters:
        z: (N, D), raw embeddings; they are normalised here.
        labels: (N,), the class of each item.
        keep: how many of the largest singular values are kept.
    """
    number = np.unique(labels, return_inverse=True)[1].reshape(-1)  # labels may be words
    order = np.argsort(number, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
    total = np.zeros(keep)
    for rows in groups:
        sigma = singular_values(z[torch.from_numpy(rows)])[:keep]
        total[: len(sigma)] += sigma
    return total / len(groups)  # (keep,)


@space("pi_intra", bounds=(0.0, 2.0))
def pi_intra(z: Tensor, labels: np.ndarray) -> float:
    """Mean cosine distance within a class, averaged over the classes (Roth et al. 2020).

        mean_c mean_{i≠j in c} (1 - e_i·e_j),   e = z/‖z‖

    Every class counts equally. A class of one item has no pair and is left out.

    Range: 0 (every class is one point) to 2.

    Source: Roth et al. 2020 (ICML). They give a class of one item another value; here it is left out.

    Parameters:
        z: (N, D), raw embeddings; they are normalised here.
        labels: (N,), the class of each item.
    """
    sums, squares, count = _class_sums(z, labels)
    many = count > 1
    # No matrix of pairs is needed: Σ_{i≠j} e_i·e_j = ‖Σ e_i‖² - Σ ‖e_i‖².
    similarity = ((sums**2).sum(1) - squares)[many] / (count * (count - 1.0))[many]
    return float((1 - similarity).mean())


@space("pi_inter", bounds=(0.0, 2.0))
def pi_inter(z: Tensor, labels: np.ndarray) -> float:
    """Mean cosine distance between the normalised class means (Roth et al. 2020).

        mean_{c≠c'} (1 - μ_c·μ_c'),   μ_c = Σ_{i in c} e_i / ‖Σ_{i in c} e_i‖,   e = z/‖z‖

    Every pair of classes counts equally, however many items they have.

    Range: 0 (all class means point in one direction) to 2.

    Source: Roth et al. 2020 (ICML).

    Parameters:
        z: (N, D), raw embeddings; they are normalised here.
        labels: (N,), the class of each item.
    """
    sums, _, _ = _class_sums(z, labels)
    mean = unit(torch.from_numpy(sums)).numpy()  # (C, D)
    c = len(mean)
    return float(1 - ((mean.sum(0) ** 2).sum() - (mean**2).sum()) / (c * (c - 1)))


@space("pi_ratio", bounds=(0.0, None))
def pi_ratio(z: Tensor, labels: np.ndarray) -> float:
    """pi_intra / pi_inter; low: compact classes that are far apart (Roth et al. 2020).

        pi_intra / max(pi_inter, 1e-8)

    Range: from 0 upwards.

    Source: Roth et al. 2020 (ICML).

    Parameters:
        z: (N, D), raw embeddings; they are normalised here.
        labels: (N,), the class of each item.
    """
    return pi_intra(z, labels) / max(pi_inter(z, labels), 1e-8)


@space("uniformity", better="low", bounds=(-8.0, 0.0))
def uniformity(z: Tensor, labels: np.ndarray | None = None) -> float:
    """Uniformity: log of the mean Gaussian kernel of all pairs; low: an even spread (Wang & Isola 2020).

        ln mean_{i<j} exp(-2 ‖e_i - e_j‖²),   e = z/‖z‖

    Labels play no part.

    Range: -8 (two opposite points) to 0 (all items are one point).

    Source: Wang & Isola 2020 (ICML).

    Parameters:
        z: (N, D), raw embeddings; they are normalised here.
        labels: not used.
    """
    tiles = Tiles(z, z, "cosine", np.arange(len(z)))
    total = 0.0
    for j in range(tiles.columns):
        for i in range(j + 1):
            kernel = np.exp(4 * tiles(i, j) - 4).sum(dtype=float)  # ‖e_i - e_j‖² = 2 - 2s; padding, diagonal: 0
            total += kernel / 2 if i == j else kernel
    return float(np.log(total / (len(z) * (len(z) - 1) / 2)))


@occurrence("hubness")
def hubness(count: np.ndarray) -> float:
    """Hubness: skewness of how often an item is among the k nearest of a query (Radovanović et al. 2010).

        mean (N_k - μ)³ / σ³,   N_k(x): the number of queries that have x among their k nearest neighbours

    μ and σ are mean and standard deviation of N_k over the gallery items. Labels play no part.

    Range: any number; 0 if all items are neighbours equally often, large if a few items, the hubs, are neighbours of
    many.

    Source: Radovanović et al. 2010 (JMLR).

    Parameters:
        count: (G,), N_k of each gallery item.
    """
    deviation = count - count.mean()
    spread = np.sqrt((deviation**2).mean())
    return 0.0 if spread == 0 else float((deviation**3).mean() / spread**3)


def _class_sums(z: Tensor, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each class Σ e_i (C, D), Σ ‖e_i‖² (C,) and the number of items (C,); the sums in float64."""
    index = torch.from_numpy(np.unique(labels, return_inverse=True)[1].reshape(-1))
    c = int(index.max()) + 1
    sums, squares = torch.zeros(c, z.shape[1], dtype=torch.float64), torch.zeros(c, dtype=torch.float64)
    for part, of in zip(z.split(TILE), index.split(TILE), strict=True):
        e = unit(part.double())
        sums.index_add_(0, of, e)
        squares.index_add_(0, of, e.square().sum(1))
    return sums.numpy(), squares.numpy(), torch.bincount(index).numpy()
