"""Heads: from the pooled feature to the embedding.

A head is called with pooled features (B, F) and returns the embedding (B, D), or an `Embedded` with what its method
reads beside it.
"""

from torch import Tensor, nn

from nearkin.registry import HEADS, hyperparameters


@HEADS.register("linear")
class LinearHead(nn.Linear):
    """One linear layer: kaiming-normal weights (fan out), zero bias.

    Source: the ProxyAnchor code and its descendants.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding.
    """

    def __init__(self, features: int, dim: int):
        super().__init__(features, dim)
        nn.init.kaiming_normal_(self.weight, mode="fan_out")
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


def make_head(name: str, features: int, dim: int, **settings: int) -> nn.Module:
    """A registered head, or one by its import path; of the settings it is given those that it has."""
    cls = HEADS[name]
    known = hyperparameters(cls)
    return cls(features, dim, **{key: value for key, value in settings.items() if key in known})
