"""The arithmetic that losses share, safe at its edges: no overflow, and a finite gradient everywhere.

Where autograd would keep several matrices of the size of the similarities, a function has its own backward.
"""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Full-precision product, also inside a mixed-precision region."""
    with torch.autocast(a.device.type, enabled=False):
        return a @ b


def at_least_float32(z: Tensor) -> Tensor:
    return z.float() if z.dtype in (torch.float16, torch.bfloat16) else z


def unit(z: Tensor) -> Tensor:
    """z / ‖z‖ over the last dimension; a zero vector stays zero, with a finite gradient."""
    return _Unit.apply(z)


class _Unit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        norm = _norm(z)[..., None]
        e = z / norm
        ctx.save_for_backward(e, norm)
        return e

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        e, norm = ctx.saved_tensors
        along = (g * e).sum(-1, keepdim=True)
        return torch.addcmul(g, e, along, value=-1).div_(norm)


def cosines(z: Tensor, w: Tensor) -> Tensor:
    """Cosine of every row of z with every row of w, without a normalised copy of w (it may be large)."""
    with torch.autocast(z.device.type, enabled=False):
        return _Cosines.apply(z, w)


def _norm(z: Tensor) -> Tensor:
    """‖z‖ of each row, 1 for a zero vector."""
    norm = z.norm(dim=-1)
    return norm.masked_fill_(norm == 0, 1)


class _Cosines(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, w: Tensor) -> Tensor:
        z_norm, w_norm = (_norm(x) for x in (z, w))
        e = z / z_norm[:, None]                                                                 # (B, D)
        s = (e @ w.T).div_(w_norm)                                                              # (B, C)
        ctx.save_for_backward(e, z_norm, w, w_norm, s)
        return s

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        e, z_norm, w, w_norm, s = ctx.saved_tensors
        scaled = g / w_norm
        g_e = scaled @ w                                                                        # (B, D)
        g_z = g_e.addcmul_(e, (g_e * e).sum(1, keepdim=True), value=-1).div_(z_norm[:, None])
        along = (g * s).sum(0).div_(w_norm.square())          # (C,)
        return g_z, (scaled.T @ e).addcmul_(w, along[:, None], value=-1)


def sqrt0(x: Tensor) -> Tensor:
    """Exact square root of max(x, 0) with gradient 0 (not infinity) at 0."""
    return _Sqrt0.apply(x)


class _Sqrt0(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        root = x.clamp_min(0).sqrt_()
        ctx.save_for_backward(root)
        return root

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (root,) = ctx.saved_tensors
        return (g / root).mul_(0.5).masked_fill_(root == 0, 0)


def mean_norm(z: Tensor, power: int = 1) -> Tensor:
    """Mean of ‖z‖ or ‖z‖² over the rows; 0 for no rows."""
    square = z.square().sum(1)
    return (square if power == 2 else sqrt0(square)).sum() / max(1, len(z))


def masked_lse(
    x: Tensor, mask: Tensor, dim: int, *, scale: float = 1.0, shift: float = 0.0, with_zero: bool = False
) -> Tensor:
    """log Σ exp(scale·(x - shift)) over the masked entries; `with_zero` adds a term exp(0), i.e. log(1 + Σ).

    Entries outside the mask never reach exp, so that neither value nor gradient can overflow; an empty row
    gives -inf without `with_zero` (leave it out before use) and 0 with it.
    """
    return _MaskedLSE.apply(x, mask, dim, scale, shift, with_zero)


class _MaskedLSE(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, dim: int, scale: float, shift: float, with_zero: bool) -> Tensor:
        terms = torch.where(mask, x, -torch.inf if scale > 0 else torch.inf)
        if shift:
            terms.sub_(shift)
        if scale != 1:
            terms.mul_(scale)
        top = terms.amax(dim, keepdim=True)
        top = top.clamp_min_(0) if with_zero else top.masked_fill_(top == -torch.inf, 0)
        total = terms.sub_(top).exp_().sum(dim, keepdim=True)
        if with_zero:
            total += (-top).exp_()
        ctx.save_for_backward(terms, total)
        ctx.dim, ctx.scale = dim, scale
        return top.add_(total.log()).squeeze(dim)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        terms, total = ctx.saved_tensors
        share = (g.unsqueeze(ctx.dim) * ctx.scale / total).masked_fill_(total == 0, 0)
        return terms * share, None, None, None, None, None


def others_and_own(logits: Tensor, labels: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """log Σ_{c≠y} exp(scale·x_c) and x_y of each row: cross-entropy is the mean of log1p_exp(others - scale·own)."""
    return _OthersAndOwn.apply(logits, labels, scale)


class _OthersAndOwn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, labels: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        target = labels[:, None]
        own = x.gather(1, target)[:, 0]
        terms = (x * scale).scatter_(1, target, -torch.inf)
        top = terms.amax(1, keepdim=True)
        top.masked_fill_(top == -torch.inf, 0)                      # no other class at all
        total = terms.sub_(top).exp_().sum(1, keepdim=True)
        ctx.save_for_backward(terms, total, target)
        ctx.scale = scale
        return top.add_(total.log())[:, 0], own

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_others: Tensor, g_own: Tensor) -> tuple[Tensor, None, None]:
        terms, total, target = ctx.saved_tensors
        share = (g_others[:, None] * ctx.scale / total).masked_fill_(total == 0, 0)
        return (terms * share).scatter_(1, target, g_own[:, None]), None, None


def cross_entropy(logits: Tensor, labels: Tensor, scale: float = 1.0) -> Tensor:
    """Mean cross-entropy of scale·logits."""
    others, own = others_and_own(logits, labels, scale)
    return log1p_exp(others - scale * own).mean()


def log1p_exp(x: Tensor) -> Tensor:
    """log(1 + exp(x))."""
    return F.softplus(x, threshold=50)


def soft_histogram(x: Tensor, first: Tensor, second: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """Two histograms of each row of x, over its entries in the mask `first` and those in `second` (disjoint).

    x is measured in nodes, 0 to nodes - 1; an entry spreads linearly over its two neighbouring nodes.
    """
    both = _SoftHistogram.apply(x, first, second, nodes)                                        # (B, 2·nodes)
    return both[:, :nodes], both[:, nodes:]


class _SoftHistogram(torch.autograd.Function):
    """In blocks of rows: indices of eight bytes are never held for the whole matrix."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, first: Tensor, second: Tensor, nodes: int) -> Tensor:
        histogram = x.new_zeros(len(x), 2 * nodes)
        places = torch.empty(x.shape, dtype=torch.int16, device=x.device)       # lower node; `second` after `first`
        inside = first | second
        for rows in row_blocks(x):
            lower = x[rows].floor().clamp_(0, nodes - 2)
            upper_share = (x[rows] - lower).clamp_(0, 1).mul_(inside[rows])
            place = lower.add_(second[rows], alpha=nodes).long()
            histogram[rows].scatter_add_(1, place, inside[rows].to(x.dtype).sub_(upper_share))
            histogram[rows].scatter_add_(1, place + 1, upper_share)
            places[rows] = place
        ctx.save_for_backward(places, inside)
        return histogram

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        places, inside = ctx.saved_tensors
        slope = torch.diff(g, dim=1)                                # an entry moves from its lower to its upper node
        gradient = g.new_empty(places.shape)
        for rows in row_blocks(places):
            torch.gather(slope[rows], 1, places[rows].long(), out=gradient[rows]).mul_(inside[rows])
        return gradient, None, None, None


def row_blocks(x: Tensor, size: int = 256) -> Iterator[slice]:
    for start in range(0, len(x), size):
        yield slice(start, start + size)
