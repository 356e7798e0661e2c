"""POLA: a metric and a threshold, learned online."""

import numpy as np
from scipy.linalg import eigh

from nearkin.classical.estimator import PairLearner, Pairs
from nearkin.config.bounds import at_least


class POLA(PairLearner):
    """Pseudo-metric online learning: pair after pair, the least change that puts it on its side of a threshold.

        similar: d_A ≤ b - 1      dissimilar: d_A ≥ b + 1      b ≥ 1, A ⪰ 0

    From A = 0, b = 0 (A, b) is projected onto the half-space of the next pair, then onto A ⪰ 0 and b ≥ 1: the nearest
    point in ‖A‖²_F + b² each time, of which 2.8 is the regulariser. A similar pair can make one eigenvalue negative at
    most, a dissimilar one none. Pairs come in an order that the seed gives. `objective_` is the sum of their losses.
    Source: Shalev-Shwartz, Singer, Ng 2004.

    Parameters:
        passes: over all pairs.
        constraints: similar and dissimilar pairs to draw from classes, each.
        seed: of the draw and its order.

    Attributes:
        threshold_: b.
        mistakes_: pairs that the metric of their time had on the wrong side of b, in order of passes.
    """

    def __init__(self, *, passes: int = 1, constraints: int = 2000, seed: int = 0):
        self.passes = passes
        self.constraints = constraints
        self.seed = seed

    def _learn_pairs(self, x: np.ndarray, pairs: Pairs) -> tuple[np.ndarray, float]:
        at_least(1, passes=self.passes)
        both = np.concatenate(pairs)  # (P, 2)
        signs = np.repeat([1, -1], [len(side) for side in pairs])
        order = np.random.default_rng(self.seed).permutation(len(both))
        matrix, threshold, self.mistakes_ = np.zeros((x.shape[1],) * 2), 0.0, 0
        suffered = 0.0
        for p in np.tile(order, self.passes):
            sign, v = signs[p], x[both[p, 0]] - x[both[p, 1]]  # (F,)
            distance = v @ matrix @ v
            self.mistakes_ += int(sign * (threshold - distance) <= 0)
            loss = max(0.0, sign * (distance - threshold) + 1)
            suffered += loss
            if not loss:
                continue
            step = loss / ((v @ v) ** 2 + 1)
            matrix -= sign * step * np.outer(v, v)
            threshold = max(threshold + sign * step, 1.0)
            if sign > 0:
                (value,), vector = eigh(matrix, subset_by_index=[0, 0])
                if value < 0:
                    matrix -= value * vector @ vector.T
        self.threshold_ = threshold
        return matrix, suffered
