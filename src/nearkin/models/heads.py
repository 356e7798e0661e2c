"""Heads: from the pooled feature to the embedding.

A head is called with pooled features (B, F) and returns the embedding (B, D), or an `Embedded` with what its method
reads beside it.
"""

from typing import Any

import torch
from torch import Tensor, nn

from nearkin.errors import NearkinError, choices
from nearkin.models.fitted import principal_axes
from nearkin.registry import HEADS, hyperparameters

INITS = ("kaiming", "torch", "pca")


@HEADS.register("linear")
class LinearHead(nn.Linear):
    """One linear layer.

    Its first weights are normal with variance 2/D and its bias is 0 (`kaiming`: He et al. 2015, fan out), or both are
    uniform in ±1/√F (`torch`: what `nn.Linear` does by itself). The second start is √(6F/D) times smaller: 7 and 10
    times at D = 128 with F = 1024 and 2048. A head of `pca` has the numbers of kaiming until `begin` is called; a run
    calls it before its first step.
    Source: kaiming: the codes of ProxyAnchor, HIST and DRML; torch: those of Roth et al. 2020 and Musgrave et al. 2020.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding.
        init: kaiming, torch or pca: what the layer starts from.

    Shapes: N images, F features, D dimensions.
    """

    def __init__(self, features: int, dim: int, *, init: str = "kaiming"):
        super().__init__(features, dim)  # torch's own start
        if init not in INITS:
            raise NearkinError(f"model.init={init!r}: {choices(str(init), INITS)}")
        self.init = init
        if init != "torch":
            nn.init.kaiming_normal_(self.weight, mode="fan_out")
            nn.init.zeros_(self.bias)

    @torch.no_grad()
    def begin(self, features: Tensor) -> None:
        """Become z = A f, with the first D principal axes of the pooled features (N, F) of training images.

        The rows of A are unit vectors at right angles, also those from the N-th on, along which the features do not
        vary: from D = F on, cosines and distances between any two images are those of the pooled feature, and
        dimensions above F are 0. The mean is not taken away, because cosines would change.
        """
        _, axes = principal_axes(features, len(self.weight))
        nn.init.zeros_(self.weight)
        self.weight[: len(axes)] = axes.to(self.weight.dtype)  # on the CPU: not every device has float64
        nn.init.zeros_(self.bias)


@HEADS.register("none")
class NoHead(nn.Module):
    """The pooled feature itself is the embedding; `model.dim` is not read.

    Parameters:
        features: F, width of the pooled feature, and of the embedding.
        dim: not read.
    """

    def __init__(self, features: int, dim: int):
        super().__init__()
        self.dim = features

    def forward(self, x: Tensor) -> Tensor:
        """(B, F) as it is."""
        return x


def make_head(name: str, features: int, dim: int, **settings: Any) -> nn.Module:
    """A registered head, or one by its import path; of the settings it is given those that it has."""
    cls = HEADS[name]
    known = hyperparameters(cls)
    return cls(features, dim, **{key: value for key, value in settings.items() if key in known})


HEADS.takes(nn.Module, words="a torch.nn.Module that is built from (features, dim)")
