"""Large margin nearest neighbours."""

from typing import overload

import numpy as np

from nearkin.classical.constraints import nearest_of_class
from nearkin.classical.estimator import MetricLearner
from nearkin.classical.solver import Solution, solve
from nearkin.classical.terms import BLOCK, Distances, Hinges
from nearkin.config.bounds import above, at_least

FEW = 10  # steps between two searches, at first: with too few triplets a solution is worth little
MANY = 300
ROUNDS = 60  # at most, for each width of the rounded hinge
MOST = 2_000_000  # triplets of the working set


class LMNN(MetricLearner):
    """Large margin nearest neighbours: every row near its k nearest of the same class, all others a margin farther.

        min over A ⪰ 0 of  tr(A C) + λ Σ [d_A(i, j) - d_A(i, l) + m]₊

    j are the k target neighbours of i, its nearest rows of the same class in the Euclidean distance; l are all rows of
    other classes; C = Σ (x_i-x_j)(x_i-x_j)ᵀ over targets: regulariser 2.9 and constraints 2.7. The problem is convex,
    and what is found is its minimum, whatever it starts from; here that is the identity. λ = 1 is μ = ½ of the
    publication. Few triplets matter: those that are violated are sought, solved for, and sought again, until no more
    join. At most two million are held, those most violated; above that number the objective lacks the others.
    Source: Weinberger, Saul 2009; Psomas 2020, 2.1.

    Parameters:
        k: target neighbours of a row.
        weight: λ.
        margin: m, in units of squared distance: scale the features beforehand.
    """

    def __init__(self, *, k: int = 3, weight: float = 1.0, margin: float = 1.0):
        self.k = k
        self.weight = weight
        self.margin = margin

    def _learn(self, x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, float]:
        at_least(1, k=self.k)
        above(0, weight=self.weight, margin=self.margin)
        problem = _Problem(x, labels, nearest_of_class(x, labels, self.k), self.weight, self.margin)
        matrix = np.eye(x.shape[1])
        value, codes = problem.violated(matrix)
        while (halved := problem.violated(matrix / 2, below=value)) is not None:  # the best multiple of the identity
            matrix, (value, codes) = matrix / 2, halved
            if value <= 1e-9:
                return matrix * 0, 0.0
        held = codes[:MOST]
        for width, steps in ((0.1, FEW), (0.01, MANY), (0.001, MANY)):
            for _ in range(ROUNDS):
                found = problem.solve(held, matrix, width, steps)
                better = problem.towards(found.matrix, matrix, value)
                if better is None:
                    break
                gain, (matrix, value, codes) = value - better[1], better
                new = np.setdiff1d(codes, held)
                held = np.concatenate([held, new[: MOST - len(held)]])
                if gain <= 1e-5 * value or (not new.size and found.steps < steps):
                    break
        return matrix, value


class _Problem:
    """The objective of LMNN over all triplets, and the violated ones among them."""

    def __init__(self, x: np.ndarray, labels: np.ndarray, targets: np.ndarray, weight: float, margin: float):
        self.x, self.labels, self.targets, self.weight, self.margin = x, labels, targets, weight, margin
        self.distances = Distances(x, targets)
        self.pull = self.distances.scatter(np.ones(len(targets)))  # (F, F)

    def solve(self, held: np.ndarray, matrix: np.ndarray, width: float, steps: int) -> Solution:
        """The solver on the triplets of the working set alone, from a matrix."""
        near, other = self.targets[held // len(self.x)], held % len(self.x)
        hinges = Hinges(self.x, near, np.stack([near[:, 0], other], 1), self.margin)
        widths = [width * self.margin]
        return solve(hinges, matrix, scatter=self.pull, weight=self.weight, smoothing=widths, steps=steps)

    def towards(self, new: np.ndarray, old: np.ndarray, value: float) -> tuple[np.ndarray, float, np.ndarray] | None:
        """The first of new, half way from old, a quarter, ... whose objective over all triplets is lower; with it and
        its violated triplets."""
        for _ in range(8):
            result = self.violated(new, below=value)
            if result is not None:
                return new, *result
            new = (new + old) / 2
        return None

    @overload
    def violated(self, matrix: np.ndarray) -> tuple[float, np.ndarray]: ...
    @overload
    def violated(self, matrix: np.ndarray, below: float) -> tuple[float, np.ndarray] | None: ...
    def violated(self, matrix: np.ndarray, below: float = np.inf) -> tuple[float, np.ndarray] | None:
        """The objective and the triplets whose hinge is above 0, the most violated first, target t and row l as the
        number t·N + l; None if the objective is not `below`."""
        x, n = self.x, len(self.x)
        values, vectors = np.linalg.eigh(matrix)
        factor = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
        z = x @ factor.T  # (N, F)
        norms, pulls = np.square(z).sum(1), self.distances(factor)
        value = float(pulls.sum())
        codes, depths = [np.empty(0, dtype=int)], [np.empty(0)]
        size = max(1, BLOCK // n)
        for start in range(0, len(self.targets), size):  # targets stand in the order of their first rows
            first = self.targets[start : start + size, 0]
            rows, place = np.unique(first, return_inverse=True)
            d = norms[rows, None] + norms - 2 * z[rows] @ z.T  # (b, N)
            d[self.labels[rows, None] == self.labels] = np.inf
            depth = (pulls[start : start + size] + self.margin)[:, None] - d[place]  # (targets, N)
            which, other = np.nonzero(depth > 0)
            codes.append((which + start) * n + other)
            depths.append(depth[which, other])
            value += self.weight * float(depths[-1].sum())
            if value >= below:
                return None
        return value, np.concatenate(codes)[np.argsort(-np.concatenate(depths), kind="stable")]
