"""Inner products by a kernel: distances, neighbours, and coordinates in which every method of the room takes its kernel
form."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from nearkin.config.bounds import above, at_least, one_of

KernelName = Literal["polynomial", "gaussian"]
BLOCK = 1 << 22  # numbers of a block


class Kernelised(BaseEstimator):
    """What has a kernel κ.

        polynomial   κ(x, y) = (xᵀy + c)^d
        gaussian     κ(x, y) = exp(-‖x-y‖² / 2σ²)

    Source: Psomas 2020, 2.1.
    """

    kernel: str
    degree: int
    constant: float
    sigma: float

    def _check(self) -> None:
        one_of("polynomial", "gaussian", kernel=self.kernel)
        at_least(1, degree=self.degree)
        at_least(0, constant=self.constant)
        above(0, sigma=self.sigma)

    def _kernel(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """κ of all rows (N, F) with all rows (M, F): (N, M)."""
        products = x @ y.T
        if self.kernel == "polynomial":
            return (products + self.constant) ** self.degree
        squares = np.square(x).sum(1)[:, None] + np.square(y).sum(1) - 2 * products
        return np.exp(-np.maximum(squares, 0) / (2 * self.sigma**2))

    def _itself(self, x: np.ndarray) -> np.ndarray:
        """κ(x, x) of rows (N, F): (N,)."""
        if self.kernel == "polynomial":
            return (np.square(x).sum(1) + self.constant) ** self.degree
        return np.ones(len(x))


class KernelNeighbours(ClassifierMixin, Kernelised):
    """Nearest neighbours in the space of a kernel: the class that most of the k nearest rows have.

        distance(q, x) = √(κ(q, q) - 2κ(q, x) + κ(x, x))

    Of classes with equally many neighbours the first in `classes_` wins, of equally near rows the first.
    Source: Psomas 2020, 2.1.

    Parameters:
        k: neighbours that vote; all rows, if there are fewer.
        kernel: polynomial or gaussian.
        degree, constant: d and c of the polynomial; (1, 0) is the Euclidean distance.
        sigma: σ of the Gaussian.
    """

    def __init__(
        self, *, k: int = 1, kernel: KernelName = "gaussian", degree: int = 2, constant: float = 1.0, sigma: float = 1.0
    ):
        self.k = k
        self.kernel = kernel
        self.degree = degree
        self.constant = constant
        self.sigma = sigma

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Remember rows X (N, F) and their classes y (N,)."""
        self._check()
        at_least(1, k=self.k)
        self.rows_, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, self.labels_ = np.unique(y, return_inverse=True)
        return self

    def distances(self, X: ArrayLike) -> np.ndarray:
        """Distances (M, N) of rows X (M, F) to the rows of `fit`."""
        check_is_fitted(self)
        return self._distances(validate_data(self, X, dtype=np.float64, reset=False))

    def _distances(self, x: np.ndarray) -> np.ndarray:
        squares = self._itself(x)[:, None] - 2 * self._kernel(x, self.rows_) + self._itself(self.rows_)
        return np.sqrt(np.maximum(squares, 0))

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The classes (M,) of rows X (M, F)."""
        check_is_fitted(self)
        x = validate_data(self, X, dtype=np.float64, reset=False)
        k, size = min(self.k, len(self.rows_)), max(1, BLOCK // len(self.rows_))
        chosen = []
        for start in range(0, len(x), size):
            near = np.argsort(self._distances(x[start : start + size]), axis=1, kind="stable")[:, :k]  # (b, k)
            votes = (self.labels_[near][:, :, None] == np.arange(len(self.classes_))).sum(1)  # (b, C)
            chosen.append(votes.argmax(1))
        return self.classes_[np.concatenate(chosen)]


class KernelMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Kernelised):
    """Coordinates z of rows whose inner products are the kernel: zᵀz' = κ(x, x') for the rows of `fit`.

        z(x) = Λ^-½ Vᵀ κ(X, x)      K = V Λ Vᵀ the kernel matrix of the rows X of `fit`

    The best A of the general model, with any of its regularisers, lives in the span of the rows in the kernel's space,
    of which z are coordinates. So a method on z is the kernel form of the method:

        make_pipeline(KernelMap(kernel="gaussian", sigma=0.5), LMNN())

    Source: Psomas 2020, 2.1; Schölkopf, Smola, Müller 1998 (without centring).

    Parameters:
        kernel: polynomial or gaussian.
        degree, constant: d and c of the polynomial.
        sigma: σ of the Gaussian.
    """

    def __init__(self, *, kernel: KernelName = "gaussian", degree: int = 2, constant: float = 1.0, sigma: float = 1.0):
        self.kernel = kernel
        self.degree = degree
        self.constant = constant
        self.sigma = sigma

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Coordinates from rows X (N, F): takes N² numbers and the eigenvectors of N rows."""
        self._check()
        self.rows_ = validate_data(self, X, dtype=np.float64)
        values, vectors = np.linalg.eigh(self._kernel(self.rows_, self.rows_))
        values, vectors = values[::-1], vectors[:, ::-1]
        count = max(1, int((values > max(values[0], 0) * 1e-10).sum()))
        vectors = vectors[:, :count]
        vectors = vectors * np.sign(np.take_along_axis(vectors, np.abs(vectors).argmax(0)[None], 0))
        self.map_ = vectors / np.sqrt(np.maximum(values[:count], 1e-300))  # (N, r)
        self._n_features_out = count
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Rows (M, F) to coordinates (M, r)."""
        check_is_fitted(self)
        x = validate_data(self, X, dtype=np.float64, reset=False)
        return self._kernel(x, self.rows_) @ self.map_
