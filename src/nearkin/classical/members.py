"""The members of the family that are a few lines on the solver. Each begins at the identity, the Euclidean distance."""

from typing import Any, Literal

import numpy as np

from nearkin.classical.estimator import MetricLearner, PairLearner, Pairs, TripletLearner
from nearkin.classical.solver import diagonal, log_det, solve
from nearkin.classical.terms import Bands, Collapse, Distances, Hinges, Roots, pair_hinges
from nearkin.config.bounds import above, at_least, between, one_of

WIDTHS = np.array([0.1, 0.01, 0.001])  # of the rounded hinges, as shares of their size


class GeneralMetric(PairLearner, TripletLearner):
    """The general model: a regulariser and hinges, on pairs or on triplets.

        min over A ⪰ 0 of  r(A) + λ Σ_S [d_A - u]₊ + λ Σ_D [l - d_A]₊           pairs
        min over A ⪰ 0 of  r(A) + λ Σ [d_A(i, j) - d_A(i, k) + m]₊               triplets

    r(A) = ½‖A‖²_F (2.8), or tr(A C) (2.9) with C the scatter of similar pairs, or C the identity.
    Source: Psomas 2020, equations 2.1 to 2.10.

    Parameters:
        relations: what is drawn from classes: pairs or triplets.
        regulariser: frobenius, scatter (C = Σ (x_i-x_j)(x_i-x_j)ᵀ over similar pairs, or i and j of triplets) or trace
            (C = I).
        upper, lower: u and l.
        margin: m.
        weight: λ.
        constraints: similar and dissimilar pairs to draw, of either kind, or triplets.
        seed: of the draw.
    """

    def __init__(
        self,
        *,
        relations: Literal["pairs", "triplets"] = "pairs",
        regulariser: Literal["frobenius", "scatter", "trace"] = "frobenius",
        upper: float = 1.0,
        lower: float = 2.0,
        margin: float = 1.0,
        weight: float = 1.0,
        constraints: int = 2000,
        seed: int = 0,
    ):
        self.relations = relations
        self.regulariser = regulariser
        self.upper = upper
        self.lower = lower
        self.margin = margin
        self.weight = weight
        self.constraints = constraints
        self.seed = seed

    def _learn(self, x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, float]:
        one_of("pairs", "triplets", relations=self.relations)
        return (PairLearner if self.relations == "pairs" else TripletLearner)._learn(self, x, labels)

    def _learn_pairs(self, x: np.ndarray, pairs: Pairs) -> tuple[np.ndarray, float]:
        at_least(0, upper=self.upper, lower=self.lower)
        hinges = pair_hinges(x, *pairs, self.upper, self.lower)
        return self._solved(x, hinges, pairs.similar, max(self.upper, self.lower))

    def _learn_triplets(self, x: np.ndarray, triplets: np.ndarray) -> tuple[np.ndarray, float]:
        above(0, margin=self.margin)
        near = triplets[:, :2]
        return self._solved(x, Hinges(x, near, triplets[:, [0, 2]], self.margin), near, self.margin)

    def _solved(self, x: np.ndarray, hinges: Hinges, near: np.ndarray, size: float) -> tuple[np.ndarray, float]:
        one_of("frobenius", "scatter", "trace", regulariser=self.regulariser)
        above(0, weight=self.weight)
        if self.regulariser == "frobenius":
            r: dict[str, Any] = {"ridge": 1.0}
        elif self.regulariser == "trace":
            r = {"scatter": np.eye(x.shape[1])}
        else:
            r = {"scatter": Distances(x, near).scatter(np.ones(len(near)))}
        found = solve(hinges, np.eye(x.shape[1]), weight=self.weight, smoothing=list(WIDTHS * size), **r)
        return found.matrix, found.objective


class SchultzJoachims(TripletLearner):
    """Weights of the features from relative comparisons, by a support vector machine.

        min over W ⪰ 0 diagonal of  ½‖W‖²_F + λ Σ [1 - d_W(i, k) + d_W(i, j)]₊

    The publication's A W Aᵀ with A = I, its linear case; its kernel case is this on the coordinates of `KernelMap`,
    with A the principal axes of the rows.
    Source: Schultz, Joachims 2003; Psomas 2020, equations 2.7 and 2.8.

    Parameters:
        weight: λ, C in the publication.
        constraints: triplets to draw from classes.
        seed: of the draw.
    """

    def __init__(self, *, weight: float = 1.0, constraints: int = 2000, seed: int = 0):
        self.weight = weight
        self.constraints = constraints
        self.seed = seed

    def _learn_triplets(self, x: np.ndarray, triplets: np.ndarray) -> tuple[np.ndarray, float]:
        above(0, weight=self.weight)
        hinges = Hinges(x, triplets[:, :2], triplets[:, [0, 2]], 1.0)
        found = solve(hinges, np.eye(x.shape[1]), ridge=1.0, weight=self.weight, cone=diagonal, smoothing=list(WIDTHS))
        return found.matrix, found.objective


class KwokTsang(PairLearner):
    """Distances towards those of the ideal kernel: similar pairs no farther than before, dissimilar ones γ farther.

        min over A ⪰ 0, γ ≥ 0 of  ½‖A‖²_F + c_S/|S| Σ_S [d_A - d]₊ + c_D (1/|D| Σ_D [d + γ - d_A]₊ - ν γ)

    d are the Euclidean distances of the rows: thresholds u and l of the general model that differ from pair to pair. γ
    is found with A: at the minimum a share ν of the dissimilar pairs at most is nearer than it asks.
    Source: Kwok, Tsang 2003; Psomas 2020, equations 2.2 to 2.5 and 2.8.

    Parameters:
        similar: c_S.
        dissimilar: c_D.
        nu: ν, between 0 and 1.
        constraints: similar and dissimilar pairs to draw from classes, each.
        seed: of the draw.
    """

    def __init__(
        self, *, similar: float = 1.0, dissimilar: float = 1.0, nu: float = 0.5, constraints: int = 2000, seed: int = 0
    ):
        self.similar = similar
        self.dissimilar = dissimilar
        self.nu = nu
        self.constraints = constraints
        self.seed = seed

    def _learn_pairs(self, x: np.ndarray, pairs: Pairs) -> tuple[np.ndarray, float]:
        at_least(0, similar=self.similar, dissimilar=self.dissimilar)
        between(0, 1, nu=self.nu)
        n, width = x.shape
        # γ is one more entry on A's diagonal, the distance between two more rows, which differ in one more feature
        rows = np.zeros((n + 2, width + 1))
        rows[:n, :width], rows[n, width] = x, 1
        before = [Distances(x, side)(np.eye(width)) for side in pairs]
        itself = np.repeat(pairs.similar[:, :1], 2, 1)
        gap = np.tile([n, n + 1], (len(pairs.dissimilar), 1))
        near, far = np.concatenate([pairs.similar, gap]), np.concatenate([itself, pairs.dissimilar])
        shares = [self.similar / max(len(before[0]), 1), self.dissimilar / max(len(before[1]), 1)]
        offset = np.concatenate([-before[0], before[1]])
        hinges = Hinges(rows, near, far, offset, np.repeat(shares, [len(side) for side in before]))
        ridge, scatter = np.ones((width + 1,) * 2), np.zeros((width + 1,) * 2)
        ridge[width, width], scatter[width, width] = 0, -self.dissimilar * self.nu if len(before[1]) else 0
        start = np.eye(width + 1)
        start[width, width] = 0
        size = max(float(np.abs(offset).mean()), 1e-12) if len(offset) else 1.0
        found = solve(hinges, start, ridge=ridge, scatter=scatter, smoothing=list(np.geomspace(1, 1e-4, 9) * size))
        return found.matrix[:width, :width], found.objective


class MCML(MetricLearner):
    """Maximally collapsing metric learning: each class towards one point, all others infinitely far.

        min over A ⪰ 0 of  Σ_i KL(p⁰_i ‖ p_i)        p_ij = exp(-d_A(i, j)) / Σ_{k≠i} exp(-d_A(i, k))

    p⁰_i is uniform over the other rows of i's class. The publication's start from the log-likelihood differs by a
    constant. All pairs of rows are compared: N² exponentials for each step.
    Source: Globerson, Roweis 2005; Psomas 2020, 2.1.

    Parameters:
        steps: of the solver, at most.
    """

    def __init__(self, *, steps: int = 200):
        self.steps = steps

    def _learn(self, x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, float]:
        at_least(1, steps=self.steps)
        found = solve(Collapse(x, labels), np.eye(x.shape[1]), steps=self.steps)
        return found.matrix, found.objective


class ITML(PairLearner):
    """Information-theoretic metric learning: as near the Euclidean distance as the bounds of the pairs allow.

        min over A ≻ 0, ξ of  LogDet(A, I) + γ LogDet(diag ξ, diag ξ⁰)     d_A ≤ ξ over S, d_A ≥ ξ over D
        LogDet(A, B) = tr(A B⁻¹) - log det(A B⁻¹) - F

    ξ⁰ are the bounds u and l, by default the 5th and 95th percentile of the distances of the pairs. The best slack ξ of
    a given A is known, so that this is the general model with a divergence for r(A) and a smooth c_i. Dissimilar pairs
    of equal rows are left out: no A parts them.
    Source: Davis et al. 2007.

    Parameters:
        gamma: γ, how much the bounds weigh.
        bounds: u and l.
        constraints: similar and dissimilar pairs to draw from classes, each.
        seed: of the draw.
    """

    def __init__(
        self, *, gamma: float = 1.0, bounds: tuple[float, float] | None = None, constraints: int = 2000, seed: int = 0
    ):
        self.gamma = gamma
        self.bounds = bounds
        self.constraints = constraints
        self.seed = seed

    def _learn_pairs(self, x: np.ndarray, pairs: Pairs) -> tuple[np.ndarray, float]:
        above(0, gamma=self.gamma)
        pairs = apart(x, pairs)
        if self.bounds is None:
            d = np.concatenate([Distances(x, side)(np.eye(x.shape[1])) for side in pairs])
            upper, lower = np.percentile(d, [5, 95]).clip(1e-12) if len(d) else (1.0, 1.0)
        else:
            upper, lower = self.bounds
            above(0, upper=upper, lower=lower)
        term = Bands(x, *pairs, float(upper), float(lower))
        found = solve(term, np.eye(x.shape[1]), weight=self.gamma, cone=log_det)
        return found.matrix, found.objective


class MMC(PairLearner):
    """Clustering with side information: similar pairs near, while the dissimilar ones stay apart.

        min over A ⪰ 0 of  Σ_S d_A     so that  Σ_D √d_A ≥ 1

    Up to its scale this A is the minimum of Σ_S d_A - Σ_D √d_A, regulariser 2.9 and a smooth c: this is what is solved.
    `objective_` is Σ_S d_A. Without dissimilar pairs it is A = 0. Dissimilar pairs of equal rows are left out.
    Source: Xing et al. 2002.

    Parameters:
        constraints: similar and dissimilar pairs to draw from classes, each.
        seed: of the draw.
    """

    def __init__(self, *, constraints: int = 2000, seed: int = 0):
        self.constraints = constraints
        self.seed = seed

    def _learn_pairs(self, x: np.ndarray, pairs: Pairs) -> tuple[np.ndarray, float]:
        similar, dissimilar = apart(x, pairs)
        pull = Distances(x, similar).scatter(np.ones(len(similar)))  # (F, F)
        if not len(dissimilar):
            return np.zeros_like(pull), 0.0
        # Where the similar pairs do not differ at all, d could grow for ever: what is far below rounding holds it.
        pull += np.eye(len(pull)) * (np.trace(pull) + np.square(x).sum()) * 1e-9
        push = np.sqrt(Distances(x, dissimilar)(np.eye(len(pull)))).sum()
        start = np.eye(len(pull)) * (push / (2 * np.trace(pull))) ** 2  # the best multiple of the identity
        found = solve(Roots(x, dissimilar), start, scatter=pull, steps=1000, tolerance=1e-8)
        matrix = found.matrix / np.sqrt(Distances(x, dissimilar)(found.factor)).sum() ** 2
        return matrix, float((pull * matrix).sum())


def apart(x: np.ndarray, pairs: Pairs) -> Pairs:
    """The pairs without dissimilar ones of equal rows."""
    i, j = pairs.dissimilar.T
    return Pairs(pairs.similar, pairs.dissimilar[(x[i] != x[j]).any(1)])
