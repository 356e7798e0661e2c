"""HIST: a loss with class distributions and a network on the hypergraph of the batch."""

import math
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nearkin.config.bounds import above, at_least, one_of
from nearkin.losses.base import OWN_RATE, ProxyLoss
from nearkin.numerics import cross_entropy, unit
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import Space


@LOSSES.register("hist")
class HIST(ProxyLoss):
    """HIST, hypergraph-induced semantic tuplets: prototypical distributions and a hypergraph network.

        δ_ic = Σ_d (x_id - μ̂_cd)²/q_cd,  q = exp(min(max(v, 0), 6))     x = m/‖m‖, μ̂ = μ/‖μ‖; m_i is the embedding
        L_D  = mean_i -log softmax_c(-τδ_ic)[y_i]                       over all C classes
        H_ie = 1 if y_i = e, else exp(-αδ_ie)                           one column for each class e of the batch
        G    = D_v^-½ H D_e^-1 Hᵀ D_v^-½                                D_v, D_e: row and column sums of H
        O    = G(LeakyReLU_0.1(BN(G(MΘ₁ + b₁)))Θ₂ + b₂)
        L    = L_D + λ·mean_i CE(O_i, y_i)

    Each class has a prototypical distribution with mean μ (`proxies`) and log-variances v, both learned; the network
    runs on the hypergraph of the batch. M is the embedding after a LayerNorm without affine parameters (the model
    applies it: model.norm=layer). H carries gradients to μ, v and x. Only the embedding is used after training. For a
    batch of one sample the network's term is left out, because BatchNorm cannot take the variance of one sample.

    Source: Lim et al. 2022 (CVPR); τ = 16, α = 1, λ = 1, 512 hidden units, and learning rates of 0.05 for μ and v and
    5e-4 for the network, whatever the base rate: those of CUB with BN-Inception.

    Parameters:
        num_classes: C, the number of classes; at least 2. Labels are 0 to C - 1.
        dim: D, the dimension of the embeddings.
        tau: τ, how sharply the distribution loss prefers the nearest class; above 0.
        alpha: α, how fast a sample's membership in the hyperedge of another class falls with its distance; above 0.
        lam: λ, weight of the network's cross-entropy; at least 0.
        hidden: h, the hidden units of the network; at least 1.
        graph: how G is made. "soft" as above; "positives" takes H_ie = [y_i = e] (means within classes); "attention"
            takes softmax(QKᵀ/√h) with Q, K linear in M, one head, the same in both layers; "none" takes G = I.
        distribution_loss: False leaves L_D out.
        variance: False fixes q = 1, so that δ_ic = ‖x_i - μ̂_c‖² and there is no v.

    Shapes: embeddings (B, D), labels (B,); the value is a scalar. Inside: δ (B, C), H (B, E) for the E classes of the
    batch, G (B, B), hidden layer (B, h), O (B, C).

    Example:
        loss = nearkin.losses.HIST(num_classes=4, dim=8)
        value = loss(embeddings, labels)
    """

    paper = "Lim et al. 2022"
    norm: ClassVar[str] = "layer"
    search: ClassVar = {  # two groups of its own in place of one
        "tau": Space(4, 64, log=True, when={"distribution_loss": (True,)}),
        "alpha": Space(0.1, 10, log=True, when={"graph": ("soft",)}),
        "lam": Space(0.1, 10, log=True),
        "train.groups.distributions.lr": OWN_RATE,
        "train.groups.hgnn.lr": OWN_RATE,
    }

    def __init__(
        self,
        num_classes: int,
        dim: int,
        *,
        tau: float = 16.0,
        alpha: float = 1.0,
        lam: float = 1.0,
        hidden: int = 512,
        graph: Literal["soft", "positives", "attention", "none"] = "soft",
        distribution_loss: bool = True,
        variance: bool = True,
    ):
        super().__init__(num_classes, dim)
        above(0, tau=tau, alpha=alpha)
        at_least(0, lam=lam)
        at_least(1, hidden=hidden)
        one_of("soft", "positives", "attention", "none", graph=graph)
        self.tau = tau
        self.alpha = alpha
        self.lam = lam
        self.graph = graph
        self.distribution_loss = distribution_loss
        self.v = nn.Parameter(torch.empty(num_classes, dim)) if variance else None  # (C, D), log-variances
        for parameter in (self.proxies, self.v):  # proxies: the means μ
            if parameter is not None:
                nn.init.kaiming_normal_(parameter, mode="fan_out")
        self.theta1 = nn.Linear(dim, hidden)
        self.bn = nn.BatchNorm1d(hidden, track_running_stats=False)  # it is not used after training
        self.theta2 = nn.Linear(hidden, num_classes)
        if graph == "attention":
            self.query, self.key = nn.Linear(dim, hidden), nn.Linear(dim, hidden)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Two groups, "distributions" (μ, v) and "hgnn" (the network), each with a learning rate of its own.

        Their `lr` holds whatever the base rate is; `train.groups.distributions.lr=...` sets another one.
        """
        distributions = [p for p in (self.proxies, self.v) if p is not None]
        network = [p for module in self.children() for p in module.parameters()]
        return [
            {"name": "distributions", "params": distributions, "lr": 0.05},
            {"name": "hgnn", "params": network, "lr": 5e-4},
        ]

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value; a miner's tuples are not used."""
        labels = self.check(pairs)
        with torch.autocast(pairs.z.device.type, enabled=False):
            delta = self.distances(pairs)  # (B, C)
            loss = cross_entropy(-delta, labels, self.tau) if self.distribution_loss else pairs.zero()
            if len(labels) == 1:  # BatchNorm knows no variance of one sample
                return loss
            m = pairs.z.to(delta.dtype)  # (B, D)
            logits = self.hgnn(m, self.propagation(m, delta, labels))  # (B, C)
            return loss + self.lam * cross_entropy(logits, labels)

    def variances(self, dtype: torch.dtype | None = None) -> Tensor:
        """q (C, D), between 1 and e⁶; 1 everywhere if `variance` is False. Computed in `dtype` if that is given."""
        dtype = dtype or self.proxies.dtype
        return torch.ones_like(self.proxies, dtype=dtype) if self.v is None else F.relu6(self.v.to(dtype)).exp()

    def distances(self, pairs: Pairs) -> Tensor:
        """δ (B, C), as products of matrices: the squared difference multiplied out."""
        dtype = torch.promote_types(pairs.z.dtype, self.proxies.dtype)
        x, mu, weight = pairs.e.to(dtype), unit(self.proxies.to(dtype)), 1 / self.variances(dtype)
        weighted = mu * weight  # (C, D)
        cross = x @ weighted.T  # (B, C)
        return (x.square() @ weight.T - 2 * cross + (mu * weighted).sum(1)).clamp_min(0)

    def incidence(self, delta: Tensor, labels: Tensor) -> Tensor:
        """H (B, E): one column for each of the E classes of the batch, in increasing order of their labels."""
        present, edge = labels.unique(return_inverse=True)  # (E,), (B,)
        member = F.one_hot(edge, len(present))  # (B, E)
        if self.graph == "positives":
            return member.to(delta.dtype)
        return torch.exp(-self.alpha * delta[:, present]).masked_fill(member == 1, 1)

    def propagation(self, m: Tensor, delta: Tensor, labels: Tensor) -> Tensor:
        """G (B, B): row i has the weights with which sample i takes from each sample of the batch."""
        if self.graph == "none":
            return torch.eye(len(m), dtype=m.dtype, device=m.device)
        if self.graph == "attention":
            query, key = _linear(self.query, m), _linear(self.key, m)  # (B, h)
            return (query @ key.T / math.sqrt(query.shape[1])).softmax(1)
        h = self.incidence(delta, labels)  # (B, E)
        scaled = h / h.sum(1, keepdim=True).sqrt()  # D_v^-½ H
        return (scaled / h.sum(0)) @ scaled.T  # (B, B)

    def hgnn(self, m: Tensor, g: Tensor) -> Tensor:
        """O (B, C): the logits of the two-layer network, from the embeddings m (B, D) and the propagation g (B, B).

        BatchNorm always uses the statistics of the batch.
        """
        a = g @ _linear(self.theta1, m)  # (B, h)
        weight, bias = self.bn.weight.to(a.dtype), self.bn.bias.to(a.dtype)
        a = F.leaky_relu(F.batch_norm(a, None, None, weight, bias, training=True, eps=self.bn.eps), 0.1)
        return g @ _linear(self.theta2, a)  # (B, C)


def _linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """Apply the layer in the precision of x, which may be higher than the layer's own."""
    return F.linear(x, layer.weight.to(x.dtype), layer.bias.to(x.dtype))
