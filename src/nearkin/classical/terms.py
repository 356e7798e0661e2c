"""The sums Σ_i c_i(A) of the solver: hinges on distances, and what single methods have in their place.

Every term is a function of distances d_ij, so that its gradient is Σ w_ij (x_i-x_j)(x_i-x_j)ᵀ with w = ∂c/∂d.

Shapes: N rows, F features, P pairs, T constraints, r the rank of A.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

BLOCK = 1 << 22  # numbers of one block, 32 MiB
SMALL = 1 << 16  # numbers of so few pairs that a sparse matrix costs more than it saves


def scatter_of(x: np.ndarray, weights: Any) -> np.ndarray:
    """Σ_ij w_ij (x_i-x_j)(x_i-x_j)ᵀ (F, F) of rows (N, F) and weights (N, N), dense or sparse."""
    both = weights + weights.T
    return x.T @ (np.asarray(both.sum(1)).ravel()[:, None] * x - both @ x)


class Distances:
    """d_A of some pairs of rows, and back.

    Parameters:
        x: (N, F).
        pairs: (P, 2), each a pair of rows.
    """

    def __init__(self, x: np.ndarray, pairs: np.ndarray):
        self.x, self.pairs = x, pairs

    def __call__(self, factor: np.ndarray) -> np.ndarray:
        """(P,) distances under A = GᵀG, of the factor G (r, F)."""
        z = self.x @ factor.T  # (N, r)
        size = max(1, BLOCK // max(z.shape[1], 1))
        blocks = (self.pairs[k : k + size] for k in range(0, len(self.pairs), size))
        parts = [np.square(z[i] - z[j]).sum(1) for i, j in (block.T for block in blocks)]
        return np.concatenate(parts) if parts else np.empty(0)

    def scatter(self, weights: np.ndarray) -> np.ndarray:
        """Σ_p w_p (x_i-x_j)(x_i-x_j)ᵀ (F, F)."""
        n = len(self.x)
        if self.pairs.size * self.x.shape[1] <= SMALL:
            v = self.x[self.pairs[:, 0]] - self.x[self.pairs[:, 1]]  # (P, F)
            return v.T @ (weights[:, None] * v)
        return scatter_of(self.x, csr_array((weights, (self.pairs[:, 0], self.pairs[:, 1])), shape=(n, n)))


class Hinges:
    """Σ_t w_t [near - far + offset]₊ over distances: equations 2.4, 2.5 and 2.7 in one form.

        similar      [d_ij - u]₊              near = (i, j), far = (i, i), offset = -u
        dissimilar   [l - d_ij]₊              near = (i, i), far = (i, j), offset = l
        relative     [d_ij - d_ik + m]₊       near = (i, j), far = (i, k), offset = m

    Rounded by a width μ, a hinge is t²/2μ up to μ and t - μ/2 beyond.

    Parameters:
        x: (N, F).
        near, far: (T, 2) pairs of rows.
        offset: (T,) or one number.
        weight: (T,) or one number.
    """

    def __init__(
        self,
        x: np.ndarray,
        near: np.ndarray,
        far: np.ndarray,
        offset: np.ndarray | float,
        weight: np.ndarray | float = 1.0,
    ):
        n, sides = len(x), np.concatenate([near, far])
        codes, place = np.unique(sides[:, 0] * n + sides[:, 1], return_inverse=True)
        self.distances = Distances(x, np.stack([codes // n, codes % n], 1))  # every pair is measured once
        self.near, self.far = place[: len(near)], place[len(near) :]
        self.offset, self.weight = offset, weight

    def __call__(self, factor: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        """The sum and its gradient (F, F)."""
        d = self.distances(factor)
        t = d[self.near] - d[self.far] + self.offset  # (T,)
        if smoothing:
            share = np.clip(t / smoothing, 0, 1)
            value = share * t - smoothing / 2 * share**2
        else:
            share = (t > 0).astype(float)
            value = share * t
        share = self.weight * share
        weights = np.bincount(self.near, share, len(d)) - np.bincount(self.far, share, len(d))
        return float((self.weight * value).sum()), self.distances.scatter(weights)


def pair_hinges(
    x: np.ndarray,
    similar: np.ndarray,
    dissimilar: np.ndarray,
    upper: np.ndarray | float,
    lower: np.ndarray | float,
    weights: tuple[float, float] = (1.0, 1.0),
) -> Hinges:
    """Hinges of similar pairs (S, 2), d ≤ u, and dissimilar ones (D, 2), d ≥ l."""
    same = [np.repeat(side[:, :1], 2, 1) for side in (similar, dissimilar)]  # (i, i), whose distance is 0
    near, far = np.concatenate([similar, same[1]]), np.concatenate([same[0], dissimilar])
    sizes = (len(similar), len(dissimilar))
    offset = np.concatenate([np.broadcast_to(-np.asarray(upper), sizes[0]), np.broadcast_to(lower, sizes[1])])
    return Hinges(x, near, far, offset.astype(float), np.repeat(weights, sizes))


class Bands:
    """γ Σ over pairs that break their bound of d/b - log(d/b) - 1: the slack of information-theoretic metric learning,
    LogDet(ξ, b) with the best ξ for given distances. It has no kink.

    Parameters:
        x: (N, F).
        similar, dissimilar: (S, 2) and (D, 2), d ≤ upper and d ≥ lower.
        upper, lower: the bounds, above 0.
    """

    def __init__(self, x: np.ndarray, similar: np.ndarray, dissimilar: np.ndarray, upper: float, lower: float):
        self.distances = Distances(x, np.concatenate([similar, dissimilar]))
        self.bound = np.repeat([upper, lower], [len(similar), len(dissimilar)])
        self.sign = np.repeat([1, -1], [len(similar), len(dissimilar)])

    def __call__(self, factor: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        """The sum and its gradient (F, F)."""
        ratio = np.maximum(self.distances(factor) / self.bound, 1e-100)
        broken = self.sign * (ratio - 1) > 0
        value = np.where(broken, ratio - np.log(ratio) - 1, 0)
        slope = np.where(broken, (1 - 1 / ratio) / self.bound, 0)
        return float(value.sum()), self.distances.scatter(slope)


class Roots:
    """-Σ √d_ij over dissimilar pairs, which keeps them apart.

    Parameters:
        x: (N, F).
        pairs: (D, 2), none of equal rows.
    """

    def __init__(self, x: np.ndarray, pairs: np.ndarray):
        self.distances = Distances(x, pairs)

    def __call__(self, factor: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        """The sum and its gradient (F, F)."""
        roots = np.sqrt(np.maximum(self.distances(factor), 1e-24))
        return -float(roots.sum()), self.distances.scatter(-0.5 / roots)


class Collapse:
    """Σ_i KL(p⁰_i ‖ p_i), p_ij = exp(-d_ij) / Σ_{k≠i} exp(-d_ik) and p⁰ uniform over the rows of i's class: the
    objective of maximally collapsing metric learning. Rows without a partner have no p⁰ and no place in the sum; they
    remain in the denominators. The matrices N × N are made in blocks of rows.

    Parameters:
        x: (N, F).
        labels: (N,).
    """

    def __init__(self, x: np.ndarray, labels: np.ndarray):
        self.x, self.labels = x, labels

    def __call__(self, factor: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        """The sum and its gradient (F, F)."""
        x, n = self.x, len(self.x)
        z = x @ factor.T  # (N, r)
        norms = np.square(z).sum(1)
        total, slope = 0.0, np.zeros((x.shape[1],) * 2)
        size = max(1, BLOCK // n)
        for start in range(0, n, size):
            rows = np.arange(start, min(start + size, n))
            d = np.maximum(norms[rows, None] + norms - 2 * z[rows] @ z.T, 0)  # (b, N)
            same = self.labels[rows, None] == self.labels
            place = np.arange(len(rows)), rows
            same[place], d[place] = False, np.inf
            partners = same.sum(1)  # (b,)
            nearest = d.min(1, initial=np.inf)
            if n == 1:
                break
            p = np.exp(nearest[:, None] - d)
            mass = p.sum(1)
            wanted = same / np.maximum(partners, 1)[:, None]  # p⁰
            counts = partners > 0
            d[place] = 0
            log_mass = np.log(mass) - nearest
            each = (wanted * d).sum(1) + log_mass - np.log(np.maximum(partners, 1))
            total += float(each[counts].sum())
            w = (wanted - p / mass[:, None]) * counts[:, None]  # (b, N)
            both = w.sum(1)  # 0 but for rounding: p and p⁰ each sum to 1
            block = x[rows].T @ (w @ x)
            slope += x[rows].T @ (both[:, None] * x[rows]) + x.T @ (w.sum(0)[:, None] * x) - block - block.T
        return total, slope
