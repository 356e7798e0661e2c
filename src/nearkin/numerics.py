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
    if not (torch.is_grad_enabled() and z.requires_grad):
        return z / _norm(z)[..., None]                              # plain operations, which exporters understand
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


def masked_lse(x: Tensor, mask: Tensor, dim: int, scale: float = 1.0) -> Tensor:
    """log Σ exp(scale·x) over the masked entries.

    Entries outside the mask never reach exp, so that neither value nor gradient can overflow. An empty row gives -inf:
    leave it out, or pass it on to `log1p_exp`, which makes it 0 with gradient 0.
    """
    return _MaskedLSE.apply(x, mask, dim, scale)


class _MaskedLSE(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, dim: int, scale: float) -> Tensor:
        terms = torch.where(mask, x, -torch.inf if scale > 0 else torch.inf)
        value, total = _exponentials(terms if scale == 1 else terms.mul_(scale), dim)
        ctx.save_for_backward(terms, total)
        ctx.dim, ctx.scale = dim, scale
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        terms, total = ctx.saved_tensors
        return terms * _share(g.unsqueeze(ctx.dim), total, ctx.scale), None, None, None


def _exponentials(terms: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """log Σ exp over a dimension; leaves in `terms` their exponentials, to be divided by the returned total."""
    top = terms.amax(dim, keepdim=True)
    top.masked_fill_(top == -torch.inf, 0)
    total = terms.sub_(top).exp_().sum(dim, keepdim=True)
    return top.add_(total.log()).squeeze(dim), total


def _share(g: Tensor, total: Tensor, scale: float) -> Tensor:
    return (g * scale / total).masked_fill_(total == 0, 0)


def others_and_own(x: Tensor, labels: Tensor, scale: float = 1.0, *, over: int = 1) -> tuple[Tensor, Tensor]:
    """log Σ exp(scale·x_ic) over c ≠ y_i, for each row (over=1) or column (over=0); and the x_iy of each row.

    Cross-entropy is the mean of log1p_exp(others - scale·own).
    """
    return _OthersAndOwn.apply(x, labels, scale, over)


class _OthersAndOwn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, labels: Tensor, scale: float, over: int) -> tuple[Tensor, Tensor]:
        target = labels[:, None]
        terms = (x * scale).scatter_(1, target, -torch.inf)
        value, total = _exponentials(terms, over)
        ctx.save_for_backward(terms, total, target)
        ctx.scale, ctx.over = scale, over
        return value, x.gather(1, target)[:, 0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_others: Tensor, g_own: Tensor) -> tuple[Tensor, None, None, None]:
        terms, total, target = ctx.saved_tensors
        share = _share(g_others.unsqueeze(ctx.over), total, ctx.scale)
        return (terms * share).scatter_(1, target, g_own[:, None]), None, None, None


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
