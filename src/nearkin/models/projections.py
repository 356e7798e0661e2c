"""Linear maps of the untrained network's features that are computed at once: whitening, LDA, NCA, and the methods of
classical/."""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from nearkin.config.bounds import available_memory
from nearkin.errors import NearkinError
from nearkin.models.fitted import BLOCK, FittedHead, PCAHead, principal_axes
from nearkin.registry import HEADS


@HEADS.register("pca_whitening")
class PCAWhiteningHead(PCAHead):
    """The first D principal components of the pooled feature, each divided by its standard deviation.

        z = Λ^-½ A (f - μ)      Λ the variances along the rows of A

    Directions whose variance is within rounding of 0 stay 0.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding: at most F, and at most the number of training images.

    Shapes: N images, F features, D dimensions.
    """

    def fit(self, features: Tensor, labels: Tensor) -> None:
        """Mean and scaled directions from the features (N, F) of the training images."""
        super().fit(features, labels)
        mean, axes = self.mean.cpu().double(), self.axes.cpu().double()
        squares = sum(((block.double() - mean) @ axes.T).square().sum(0) for block in features.cpu().split(BLOCK))
        spread = (squares / len(features)).sqrt()  # (D,)
        scale = torch.where(spread > spread.max() * 1e-6, 1 / spread, 0)
        self.axes.copy_(axes * scale[:, None])


class LinearMap(FittedHead):
    """A linear map z = A (f - μ) that scikit-learn finds; a subclass defines `directions`.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding.

    Shapes: N images, F features, D dimensions.
    """

    mean: Tensor
    axes: Tensor

    def __init__(self, features: int, dim: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))  # (F,) μ
        self.register_buffer("axes", torch.zeros(dim, features))  # (D, F) A

    def fit(self, features: Tensor, labels: Tensor) -> None:
        """Mean and directions from the features (N, F) of the training images and their classes (N,)."""
        x = features.cpu().double().numpy()
        self.mean.copy_(torch.from_numpy(x.mean(0)))
        axes = torch.from_numpy(self.directions(x - x.mean(0), labels.cpu().numpy()))  # (d, F), d ≤ D
        self.axes.zero_()
        self.axes[: len(axes)] = axes.to(self.axes)

    def directions(self, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """At most D directions (d, F) for centred features (N, F) of these classes (N,)."""
        raise NearkinError(f"head {type(self).__name__} does not define directions(x, labels)")

    def forward(self, f: Tensor) -> Tensor:
        """Pooled features (B, F) to embeddings (B, D)."""
        return (f - self.mean) @ self.axes.T


@HEADS.register("lda")
class LDAHead(LinearMap):
    """Linear discriminant analysis of the pooled feature: directions along which the classes lie apart.

    There are at most C - 1 of them for C training classes; further dimensions are 0. The covariance within classes is
    shrunk (Ledoit, Wolf 2004), because features are many and images few.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding.

    Shapes: N images, F features, D dimensions.
    """

    def directions(self, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The discriminant directions (d, F), d = min(D, C - 1, F)."""
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

        analysis = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(x, labels)
        number = min(len(self.axes), len(np.unique(labels)) - 1, x.shape[1])
        axes = analysis.scalings_[:, :number].T  # (d, F)
        largest = np.take_along_axis(axes, np.abs(axes).argmax(1)[:, None], 1)
        return axes * np.sign(largest)  # the same everywhere


@HEADS.register("nca")
class NCAHead(LinearMap):
    """Neighbourhood components analysis of the pooled feature: the map under which neighbours are of one class.

    It starts from the principal components and takes at most 50 iterations. It compares all training images with each
    other, which needs memory for N² numbers several times over, and is refused if there is not enough.
    Source: Goldberger et al. 2004.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding: at most F, and at most the number of training images.

    Shapes: N images, F features, D dimensions.
    """

    iterations = 50
    matrices = 5  # of N² doubles that scikit-learn holds at once

    def directions(self, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The map (D, F)."""
        from sklearn.neighbors import NeighborhoodComponentsAnalysis

        dim, most = len(self.axes), min(x.shape)
        if dim > most:
            raise NearkinError(f"model.dim={dim}: model.head=nca has at most {most} dimensions here")
        needed, free = self.matrices * 8 * len(x) ** 2, available_memory()
        if free is not None and needed > free:
            raise NearkinError(
                f"model.head=nca compares all {len(x):,} training images with each other: that takes "
                f"{needed / 2**30:.1f} GiB of memory, and {free / 2**30:.1f} are free; use lda or pca_whitening"
            )
        analysis = NeighborhoodComponentsAnalysis(dim, init="pca", max_iter=self.iterations, random_state=0).fit(
            x, labels
        )
        return analysis.components_  # (D, F)


class ClassicalHead(LinearMap):
    """A member of classical/ on the first principal components of the pooled feature, D of them.

    The components are divided by one number, so that their variance is 1 on average: thresholds and margins of the
    methods are in units of squared distance. Where the learned matrix has a lower rank than D, the last dimensions
    are 0. A subclass names the method and what it needs memory for.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding; at most F and the number of training images are not 0.

    Shapes: N images, F features, D dimensions.
    """

    method: ClassVar[str]

    def directions(self, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The map (r, F), r the rank of the learned matrix."""
        from nearkin import classical  # scikit-learn takes a second

        axes = principal_axes(torch.from_numpy(x), min(len(self.axes), *x.shape))[1].numpy()  # (D, F)
        axes = axes / max(float((x @ axes.T).std(0).mean()), 1e-300)
        learned = getattr(classical, self.method)().fit(x @ axes.T, labels)
        return learned.components_ @ axes


@HEADS.register("lmnn")
class LMNNHead(ClassicalHead):
    """Large margin nearest neighbours: each image near its 3 nearest of the same class, other classes a margin farther.

    Learned on the first D principal components of the pooled feature, at one common scale (classical/).
    Source: Weinberger, Saul 2009; Psomas 2020, 2.1.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding.

    Shapes: N images, F features, D dimensions.
    """

    method = "LMNN"


@HEADS.register("mcml")
class MCMLHead(ClassicalHead):
    """Maximally collapsing metric learning: each class towards one point; it compares all training images.

    Learned on the first D principal components of the pooled feature, at one common scale (classical/).
    Source: Globerson, Roweis 2005; Psomas 2020, 2.1.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding.

    Shapes: N images, F features, D dimensions.
    """

    method = "MCML"


@HEADS.register("pola")
class POLAHead(ClassicalHead):
    """Pseudo-metric online learning: one pass over drawn pairs, each put on its side of a threshold.

    Learned on the first D principal components of the pooled feature, at one common scale (classical/).
    Source: Shalev-Shwartz, Singer, Ng 2004; Psomas 2020, 2.1.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding.

    Shapes: N images, F features, D dimensions.
    """

    method = "POLA"


@HEADS.register("schultz_joachims")
class SchultzJoachimsHead(ClassicalHead):
    """Weights of the principal components from drawn triplets, by a support vector machine.

    Learned on the first D principal components of the pooled feature, at one common scale (classical/).
    Source: Schultz, Joachims 2003; Psomas 2020, 2.1.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding.

    Shapes: N images, F features, D dimensions.
    """

    method = "SchultzJoachims"


@HEADS.register("kwok_tsang")
class KwokTsangHead(ClassicalHead):
    """Drawn similar pairs no farther than before, dissimilar ones farther by a common amount.

    Learned on the first D principal components of the pooled feature, at one common scale (classical/).
    Source: Kwok, Tsang 2003; Psomas 2020, 2.1.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding.

    Shapes: N images, F features, D dimensions.
    """

    method = "KwokTsang"


@HEADS.register("itml")
class ITMLHead(ClassicalHead):
    """Information-theoretic metric learning: as near the plain distance as the bounds of drawn pairs allow.

    Learned on the first D principal components of the pooled feature, at one common scale (classical/).
    Source: Davis et al. 2007; Psomas 2020, 2.1.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding.

    Shapes: N images, F features, D dimensions.
    """

    method = "ITML"


@HEADS.register("mmc")
class MMCHead(ClassicalHead):
    """Drawn similar pairs near each other, while the dissimilar ones stay apart in sum.

    Learned on the first D principal components of the pooled feature, at one common scale (classical/).
    Source: Xing et al. 2002; Psomas 2020, 2.1.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding.

    Shapes: N images, F features, D dimensions.
    """

    method = "MMC"
