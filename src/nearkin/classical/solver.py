"""The one solver of the room: projected gradient over positive semi-definite matrices.

    min over A ⪰ 0 of   ½ Σ R A² + tr(A C) + λ Σ_i c_i(A)          equations 2.1 and 2.10

½‖A‖²_F is equation 2.8 (`ridge`, R = 1), tr(A C) is 2.9 (`scatter`), the sum of c_i is a `Term` (terms.py). Distances
are d_A(x, y) = (x-y)ᵀA(x-y) = ‖G(x-y)‖² with A = GᵀG.
Source: Psomas 2020, 2.1; the step of Barzilai and Borwein 1988, accepted as in Wright et al. 2009.

Shapes: F features, r the rank of A.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

MEMORY = 10  # values that a new one is compared with: the objective may rise for a few steps
QUARTERS = 40  # of a step, at most: beyond that rounding decides
WINDOW = 10  # steps in which the objective must fall by the tolerance


class Point(NamedTuple):
    """A matrix on its cone."""

    matrix: np.ndarray  # (F, F) A
    factor: np.ndarray  # (r, F) G, A = GᵀG
    cost: float = 0.0  # what the cone itself adds to the objective


class Term(Protocol):
    """Σ_i c_i as a function of G. `smoothing` is the width over which a kink is rounded, 0 for none."""

    def __call__(self, factor: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        """The sum, and its gradient (F, F) with respect to A."""
        ...


Cone = Callable[[np.ndarray, float], Point]


def semi_definite(matrix: np.ndarray, rate: float) -> Point:
    """The nearest positive semi-definite matrix: negative eigenvalues become 0."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    factor = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    factor = factor[values > 0]  # (r, F)
    return Point(factor.T @ factor, factor)


def diagonal(matrix: np.ndarray, rate: float) -> Point:
    """The nearest diagonal one: weights of the features, none negative."""
    weights = np.maximum(np.diag(matrix), 0)
    return Point(np.diag(weights), np.diag(np.sqrt(weights))[weights > 0])


def log_det(matrix: np.ndarray, rate: float) -> Point:
    """The proximal step of tr A - log det A - F, the LogDet divergence of A and the identity: all eigenvalues stay
    above 0. This is r(A) of information-theoretic metric learning."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    b = values - rate
    root = np.sqrt(b**2 + 4 * rate)
    values = np.where(b > 0, b + root, 4 * rate / np.maximum(root - b, 1e-300)) / 2  # two forms of it: neither cancels
    factor = np.sqrt(values)[:, None] * vectors.T
    return Point(factor.T @ factor, factor, float((values - np.log(values) - 1).sum()))


class Solution(NamedTuple):
    """What the solver ends with."""

    matrix: np.ndarray  # (F, F) A
    factor: np.ndarray  # (r, F) G
    objective: float  # without any smoothing
    steps: int


def solve(
    term: Term,
    start: np.ndarray,
    *,
    ridge: float | np.ndarray = 0.0,
    scatter: float | np.ndarray = 0.0,
    weight: float = 1.0,
    cone: Cone = semi_definite,
    smoothing: Sequence[float] = (0.0,),
    steps: int = 300,
    tolerance: float = 1e-6,
) -> Solution:
    """The matrix after at most `steps` steps for each smoothing.

    A hinge has a kink, where a gradient says little. So it is rounded, less and less: the widths of `smoothing` are
    solved one after the other, each from the solution before. Of these solutions, the one with the smallest objective
    without rounding is returned. All is float64, without chance: the same input gives the same matrix.

    Parameters:
        term: Σ_i c_i.
        start: (F, F) the first matrix.
        ridge: R, a number or (F, F).
        scatter: C (F, F), or 0.
        weight: λ.
        cone: where A lives: `semi_definite`, `diagonal` or `log_det`.
        smoothing: widths, from wide to narrow.
        steps: at most this many for each width.
        tolerance: the end of a width: ten steps that lower the objective by less than this share of it.
    """

    def evaluate(point: Point, width: float) -> tuple[float, np.ndarray]:
        total, slope = term(point.factor, width)
        a = point.matrix
        value = 0.5 * (ridge * a * a).sum() + (scatter * a).sum() + weight * total + point.cost
        return float(value), ridge * a + scatter + weight * slope

    point, taken = cone(start, 0.0), 0
    best, lowest = point, np.inf
    for width in smoothing:
        value, slope = evaluate(point, width)
        values, before = [value], (value, point)
        rate = 0.1 * max(float(np.linalg.norm(point.matrix)), 1.0) / max(float(np.linalg.norm(slope)), 1e-100)
        for _ in range(steps):
            for _ in range(QUARTERS):  # shorten the step until the objective is below one of the last values
                new = cone(point.matrix - rate * slope, rate)
                new_value, new_slope = evaluate(new, width)
                change = new.matrix - point.matrix
                moved = float((change**2).sum())
                if new_value <= max(values[-MEMORY:]) - 1e-4 * moved / rate:
                    break
                rate /= 4
            curvature = float((change * (new_slope - slope)).sum())
            rate = min(moved / curvature if curvature > 0 else rate * 4, rate * 10, 1e100)
            point, slope, taken = new, new_slope, taken + 1
            values.append(new_value)
            if new_value < before[0]:
                before = (new_value, new)
            if not moved or (
                len(values) > WINDOW and min(values[:-WINDOW]) - before[0] <= tolerance * max(abs(before[0]), 1e-12)
            ):
                break
        point = before[1]
        exact = evaluate(point, 0.0)[0]
        if exact < lowest:
            best, lowest = point, exact
    return Solution(best.matrix, best.factor, lowest, taken)
