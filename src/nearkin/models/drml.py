"""The head of DRML."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nearkin.errors import NearkinError
from nearkin.numerics import at_least_float32, matmul, unit
from nearkin.pairs import Embedded
from nearkin.registry import HEADS


class PartLinear(nn.Module):
    """A separate linear layer for each part: kaiming-normal (fan out), zero bias."""

    def __init__(self, parts: int, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(parts, outputs, inputs) * math.sqrt(2 / outputs))
        self.bias = nn.Parameter(torch.zeros(parts, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """(B, K, inputs) to (B, K, outputs)."""
        product = matmul(x.transpose(0, 1), self.weight.transpose(1, 2))  # (K, B, outputs)
        return product.transpose(0, 1) + self.bias  # (B, K, outputs)


@HEADS.register("drml")
class DRMLHead(nn.Module):
    """An ensemble of sub-embeddings, and a module that relates them.

        f = [f_1; ...; f_K]                                             the pooled feature, cut into K parts
        n_k = unit(A_k f_k + a_k)                                       nodes: the sub-embeddings
        S_kl = [w·(U_k - V_l) + b]₊ / Σ_k [...]₊,                       U_k = A'_k f_k + a'_k,  V_l = B'_l f_l + b'_l
        n'_l = Σ_k S_kl n_k
        o_l = Ω[n_l; n'_l] + ω                                          z = [o_1; ...; o_K]

    U and V read f without a gradient; the nodes have theirs. Where all of S_·l are 0 they stay 0. Ω starts as [I | 0]
    and ω as 0, so that z is at first the nodes side by side. All other weights start kaiming-normal (fan out), their
    biases at 0, as in the official code. Trained by `nearkin.methods.DRML`.
    Source: Zheng et al. 2021 (ICCV); K = 4.

    Parameters:
        features: F, width of the pooled feature.
        dim: D, width of the embedding.
        parts: K, in how many parts feature and embedding are cut; must divide both.

    Shapes: B samples, F features, K parts, D dimensions, d = D/K.
    """

    def __init__(self, features: int, dim: int, *, parts: int = 4):
        super().__init__()
        check_parts(features, dim, parts)
        d = dim // parts
        self.parts = parts
        self.embed = PartLinear(parts, features // parts, d)  # A
        self.edge_from = PartLinear(parts, features // parts, d)  # A'
        self.edge_to = PartLinear(parts, features // parts, d)  # B'
        self.score_weight = nn.Parameter(torch.randn(d) * math.sqrt(2))  # w, of one output
        self.score_bias = nn.Parameter(torch.zeros(()))  # b
        self.merge_weight = nn.Parameter(torch.eye(d, 2 * d))  # Ω
        self.merge_bias = nn.Parameter(torch.zeros(d))  # ω

    def forward(self, f: Tensor) -> Embedded:
        """Pooled features (B, F) to embeddings (B, D), with nodes and parts beside them."""
        parts = at_least_float32(f).unflatten(1, (self.parts, -1))  # (B, K, F/K)
        nodes = unit(self.embed(parts))  # (B, K, d)
        parts = parts.detach()
        sums = matmul(self.scores(parts).transpose(1, 2), nodes)  # (B, K, d) n'
        o = matmul(torch.cat([nodes, sums], 2), self.merge_weight.T) + self.merge_bias  # (B, K, d)
        return Embedded(o.flatten(1), {"nodes": nodes, "parts": parts})

    def scores(self, parts: Tensor) -> Tensor:
        """S, over k of each l a share; w·U and w·V first, so that no (B, K, K, d) is held."""
        u = matmul(self.edge_from(parts), self.score_weight)  # (B, K)
        v = matmul(self.edge_to(parts), self.score_weight)  # (B, K)
        s = (u[:, :, None] - v[:, None, :] + self.score_bias).relu()  # (B, K, K)
        return F.normalize(s, p=1, dim=1)

    def extra_repr(self) -> str:
        """What print shows."""
        return f"parts={self.parts}"


def check_parts(features: int, dim: int, parts: int) -> None:
    """K must divide both the pooled feature and the embedding."""
    if parts >= 1 and features % parts == 0 and dim % parts == 0:
        return
    common = math.gcd(features, dim)
    fits = [k for k in range(1, common + 1) if common % k == 0]
    near = sorted(sorted(fits, key=lambda k: abs(k - parts))[:2])
    wider = f", or model.dim={max(1, round(dim / parts)) * parts}" if parts >= 1 and features % parts == 0 else ""
    raise NearkinError(
        f"model.parts={parts} must divide the {features} features of the backbone and model.dim={dim}; "
        f"nearest that do: {', '.join(map(str, near))}{wider}"
    )
