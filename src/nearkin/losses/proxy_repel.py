"""ProxyAnchor's attraction, with proxies that repel each other."""

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nearkin.config.bounds import at_least, one_of
from nearkin.errors import NearkinError
from nearkin.losses.base import ProxyLoss
from nearkin.losses.proxy_anchor import ProxyAnchor
from nearkin.numerics import log1p_exp, masked_lse, matmul, unit
from nearkin.pairs import Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import Space


@LOSSES.register("proxy_repel")
class ProxyRepel(ProxyAnchor):
    """ProxyAnchor's attraction, with proxies that repel each other in place of its second term.

        L = 1/|C⁺| Σ_{c∈C⁺} log(1 + Σ_{y_i=c} exp(-α(s_ic - δ))) + 1/C Σ_c log(1 + Σ_{c'≠c} exp(α(g_cc' + δ)))

        via="proxies"    g_cc' = ŵ_c·ŵ_c'            eq. 6.1
        via="batch"      g_cc' = Σ_i s_ic·s_ic'      eq. 6.2; grows with the batch; scale="mean" divides it by B

    C⁺ are the classes of the batch, s_ic is the cosine of sample i and proxy c. Learning rate and start of the proxies
    are those of ProxyAnchor. It takes no miner.

    With relations above 0, samples are compared with each other too, and with the rows of a memory if there is one:

        L + μ/B Σ_i [ log(1 + Σ_{j∈P(i)} exp(-α(s_ij - δ))) + log(1 + Σ_{j∈N(i)} exp(α(s_ij + δ))) ]

    s_ij is the cosine of samples i and j, P(i) and N(i) are the positives and negatives of i; an empty sum adds 0.

    Source: Psomas 2020 (eqs. 6.1 and 6.2); α = 32, δ = 0.1 as in ProxyAnchor. Eq. 6.1 prints an outer sum over negative
    proxies; as in 6.2 and the author's code, here it runs over all. The default is eq. 6.2, the author's reported loss.
    Its chapter 7 proposes more relations among data without a formula: the term above is our reading. scale="mean" is
    ours too.

    Parameters:
        num_classes: C, the number of classes; at least 2. Labels are 0 to C - 1.
        dim: D, the dimension of the embeddings.
        via: "proxies" takes the cosine of two proxies as their similarity g, "batch" the inner product of their cosines
            with the samples of the batch.
        scale: of via="batch": "batch" sums g over the batch, as printed; "mean" divides it by B, so that it is a mean.
        alpha: α, how strongly the hardest samples and the nearest proxies dominate the others; above 0.
        delta: δ, the margin: s_ic should exceed δ for the sample's class, g stay below -δ; at least 0.
        relations: μ, the weight of the relations among samples; at least 0. Above 0 a sampler that gives positives is
            wanted (`sampler=balanced`), and a memory can be used.

    Shapes: embeddings (B, D), labels (B,); the value is a scalar. The proxies are (C, D).

    Example:
        loss = nearkin.losses.ProxyRepel(num_classes=4, dim=8, via="batch")
        value = loss(embeddings, labels)
    """

    paper = "Psomas 2020, eqs. 6.1 and 6.2"
    search: ClassVar = {  # as wide as ProxyAnchor's, but not in the table
        **ProxyLoss.search,
        "alpha": Space(2, 100, 2),
        "delta": Space(0, 1, 0.1),
    }

    def __init__(
        self,
        num_classes: int,
        dim: int,
        *,
        via: Literal["proxies", "batch"] = "batch",
        scale: Literal["batch", "mean"] = "batch",
        alpha: float = 32.0,
        delta: float = 0.1,
        relations: float = 0.0,
    ):
        super().__init__(num_classes, dim, alpha=alpha, delta=delta)
        one_of("proxies", "batch", via=via)
        one_of("batch", "mean", scale=scale)
        at_least(0, relations=relations)
        if via == "proxies" and scale == "mean":
            raise NearkinError("scale=mean divides the sums of via=batch; via=proxies has none: leave scale out")
        self.via = via
        self.scale = scale
        self.relations = relations

    @property
    def why_no_references(self) -> str:
        """Only the relations among samples can use references."""
        if self.relations:
            return ""
        return f"{super().why_no_references}; loss.relations above 0 compares them with each other too"

    def compute(self, pairs: Pairs, tuples: Triplets | None = None) -> Tensor:
        """The scalar value; a miner's tuples are not used."""
        cosines, labels = self.cosines(pairs)  # (B, C)
        target = cosines.gather(1, labels[:, None])[:, 0]  # (B,)
        value = self.attract(target, labels) + self.repel(cosines)
        return value + self.relations * self.relate(pairs) if self.relations else value

    def repel(self, cosines: Tensor) -> Tensor:
        """The second term, a scalar, from the cosines of samples and proxies (B, C)."""
        if self.via == "proxies":
            vectors = unit(self.proxies.to(cosines.dtype))  # (C, D)
        else:  # two factors √B of the vectors are the B of their inner products
            vectors = cosines.T / len(cosines) ** 0.5 if self.scale == "mean" else cosines.T  # (C, B)
        return _Repulsion.apply(vectors, self.alpha, self.delta)

    def relate(self, pairs: Pairs) -> Tensor:
        """The relations among samples, a scalar: the mean over the anchors of attraction and repulsion."""
        margin = self.alpha * self.delta
        pull = masked_lse(pairs.s, pairs.positive, 1, -self.alpha)  # (B,)
        push = masked_lse(pairs.s, pairs.negative, 1, self.alpha)  # (B,)
        return (log1p_exp(pull + margin) + log1p_exp(push + margin)).mean()


class _Repulsion(torch.autograd.Function):
    """1/C Σ_c log(1 + Σ_{c'≠c} exp(α(x_c·x_c' + δ))), in blocks of rows so that no C×C matrix is ever in memory.

    The gradient (α/C)(P + Pᵀ)x, with P the softmax shares, is computed in the forward pass: a second pass over the
    blocks would cost the same again.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: float, delta: float) -> Tensor:
        classes = len(x)
        total, gradient = x.new_zeros(()), torch.zeros_like(x)
        for start in range(0, classes, 256):
            part = x[start : start + 256]  # (b, D)
            terms = matmul(part, x.T).add_(delta).mul_(alpha)  # (b, C)
            terms[torch.arange(len(part)), torch.arange(start, start + len(part))] = -torch.inf
            top = terms.amax(1, keepdim=True).clamp_min_(0)
            share = terms.sub_(top).exp_()
            sum_ = share.sum(1, keepdim=True) + (-top).exp()
            total += (top + sum_.log()).sum()
            share.div_(sum_)
            gradient[start : start + 256] += matmul(share, x)
            gradient += matmul(share.T, part)
        ctx.save_for_backward(gradient.mul_(alpha / classes))
        return total / classes

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * g, None, None
