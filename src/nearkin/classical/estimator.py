"""What all members of the room share: `fit(X, y)` and `transform(X)`, as scikit-learn asks for them."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from nearkin.classical.constraints import check_tuples, draw_pairs, draw_triplets


def factor_of(matrix: np.ndarray) -> np.ndarray:
    """G (r, F) of A = GᵀG (F, F): the eigenvectors times the roots of their values, largest first, without those within
    rounding of 0. The entry of each row that is largest in absolute value is positive. At least one row."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    values, rows = values[::-1], vectors.T[::-1]
    count = max(1, int((values > max(values[0], 0) * 1e-12).sum()))
    rows = rows[:count]
    largest = np.take_along_axis(rows, np.abs(rows).argmax(1)[:, None], 1)
    return np.sqrt(np.maximum(values[:count], 0))[:, None] * rows * np.sign(largest)


class MetricLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A squared Mahalanobis distance d_A(x, y) = (x-y)ᵀA(x-y), A ⪰ 0, that is learned from rows and their classes.

    `transform` gives G x with A = GᵀG: Euclidean distances there are the learned ones. A subclass defines `_learn`.

    Attributes:
        matrix_: (F, F) A.
        components_: (r, F) G, its strongest direction first, r the rank of A.
        objective_: the value of the objective at A, where the method minimises one.
    """

    matrix_: np.ndarray
    components_: np.ndarray
    objective_: float

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn A from rows X (N, F) and their classes y (N,)."""
        x, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        return self._learned(*self._learn(x, np.unique(y, return_inverse=True)[1]))

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Rows (M, F) to (M, r), whose squared Euclidean distances are d_A."""
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False) @ self.components_.T

    def _learn(self, x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, float]:
        """A and its objective, from rows (N, F) and classes 0..C-1 (N,)."""
        raise NotImplementedError

    def _learned(self, matrix: np.ndarray, objective: float) -> Self:
        self.components_ = factor_of(matrix)
        self.matrix_ = self.components_.T @ self.components_
        self.objective_ = objective
        self._n_features_out = len(self.components_)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class Pairs(NamedTuple):
    """Rows that should be near each other and rows that should not."""

    similar: np.ndarray  # (S, 2)
    dissimilar: np.ndarray  # (D, 2)


class PairLearner(MetricLearner):
    """A metric that is learned from similar and dissimilar pairs; with classes, from pairs that are drawn from them. A
    subclass has the parameters `constraints` and `seed`, and defines `_learn_pairs`."""

    constraints: int
    seed: int

    def fit_pairs(self, X: ArrayLike, similar: ArrayLike, dissimilar: ArrayLike) -> Self:
        """Learn A from rows X (N, F) and pairs of their numbers: similar (S, 2) and dissimilar (D, 2)."""
        x = validate_data(self, X, dtype=np.float64)
        sides = (
            check_tuples(side, 2, len(x), name) for side, name in ((similar, "similar"), (dissimilar, "dissimilar"))
        )
        return self._learned(*self._learn_pairs(x, Pairs(*sides)))

    def _learn(self, x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, float]:
        return self._learn_pairs(x, Pairs(*draw_pairs(labels, self.constraints, self.seed)))

    def _learn_pairs(self, x: np.ndarray, pairs: Pairs) -> tuple[np.ndarray, float]:
        raise NotImplementedError


class TripletLearner(MetricLearner):
    """A metric that is learned from triplets (i, j, k), i nearer to j than to k; with classes, from triplets that are
    drawn from them. A subclass has the parameters `constraints` and `seed`, and defines `_learn_triplets`."""

    constraints: int
    seed: int

    def fit_triplets(self, X: ArrayLike, triplets: ArrayLike) -> Self:
        """Learn A from rows X (N, F) and triplets (T, 3) of their numbers."""
        x = validate_data(self, X, dtype=np.float64)
        return self._learned(*self._learn_triplets(x, check_tuples(triplets, 3, len(x), "triplets")))

    def _learn(self, x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, float]:
        return self._learn_triplets(x, draw_triplets(labels, self.constraints, self.seed))

    def _learn_triplets(self, x: np.ndarray, triplets: np.ndarray) -> tuple[np.ndarray, float]:
        raise NotImplementedError
