"""Heads that are fitted: computed at once from the features of the training images, not trained step by step."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from nearkin.errors import NearkinError
from nearkin.registry import HEADS

BLOCK = 8192


def principal_axes(features: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The mean (F,) of features (N, F) and their first D principal directions (D, F), D ≤ F, in float64 on the CPU.

    The directions are unit vectors at right angles, in the order of their variance, largest first; the entry of each
    that is largest in absolute value is positive. Along those from the N-th on the features do not vary.
    """
    blocks = features.cpu().split(BLOCK)  # float64 of all at once may not fit into memory
    mean = sum((block.double().sum(0) for block in blocks), torch.zeros(())) / len(features)  # (F,)
    scatter = sum(((x := block.double() - mean).T @ x for block in blocks), torch.zeros(()))  # (F, F)
    axes = torch.linalg.eigh(scatter).eigenvectors.T.flip(0)[:dim]  # (D, F)
    largest = axes.gather(1, axes.abs().argmax(1, keepdim=True))  # (D, 1)
    return mean, axes * largest.sign()


class FittedHead(nn.Module):
    """A head that is computed from the training images before anything is embedded; nothing of it trains.

    A run with such a head has `epochs=0`. What `fit` computes is stored in buffers, so that it is saved and loaded like
    all other weights. A subclass makes buffers of their final shape in `__init__` and defines `fit` and `forward`.
    """

    def fit(self, features: Tensor, labels: Tensor) -> None:
        """Compute the head from the pooled features (N, F) of the training images and their classes (N,), 0..C-1. All
        processes of a job call it with the same values."""
        raise NearkinError(f"head {type(self).__name__} does not define fit(features, labels)")


@HEADS.register("pca")
class PCAHead(FittedHead):
    """The first D principal components of the pooled feature: the untrained network at any width.

        z = A (f - μ)           μ the mean training feature, the rows of A the D directions of largest variance

    The directions are unit vectors, in the order of their variance, largest first; the entry of each that is largest in
    absolute value is positive, so that the result is one and the same everywhere. Labels are not read. They are the
    eigenvectors of the covariance, in float64: the right singular vectors of the centred features.
    Source: the rows "pretrained" of Musgrave et al. 2020.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding: at most F, and at most the number of training images.

    Shapes: N images, F features, D dimensions.
    """

    name: ClassVar[str]
    mean: Tensor
    axes: Tensor

    def __init__(self, features: int, dim: int):
        super().__init__()
        if dim > features:
            raise NearkinError(
                f"model.dim={dim}: model.head={self.name} has at most as many dimensions as the pooled feature, "
                f"{features}"
            )
        self.register_buffer("mean", torch.zeros(features))  # (F,) μ
        self.register_buffer("axes", torch.zeros(dim, features))  # (D, F) A

    def fit(self, features: Tensor, labels: Tensor) -> None:
        """Mean and directions from the features (N, F) of the training images."""
        dim = len(self.axes)
        if dim > len(features):
            raise NearkinError(
                f"model.dim={dim}: model.head={self.name} has at most as many dimensions as there are training "
                f"images, {len(features)}"
            )
        for buffer, value in zip((self.mean, self.axes), principal_axes(features, dim), strict=True):
            buffer.copy_(value.to(buffer.dtype))  # on the CPU: not every device has float64

    def forward(self, f: Tensor) -> Tensor:
        """Pooled features (B, F) to embeddings (B, D)."""
        return (f - self.mean) @ self.axes.T
