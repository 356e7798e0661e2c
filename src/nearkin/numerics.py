"""Arithmetic that losses share: it does not overflow, and its gradient is finite everywhere.

A function has its own backward where autograd would keep several matrices as large as the similarities.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor
from torch.autograd.function import once_differentiable

WITHOUT_FLOAT64 = {"mps"}  # devices that have no float64


def double(x: Tensor) -> Tensor:
    """x in float64: where it lies, or on the CPU if its device has no float64."""
    return x.cpu().double() if x.device.type in WITHOUT_FLOAT64 else x.double()


def generator_device(device: torch.device) -> torch.device:
    """Where random numbers for a device are drawn: CUDA devices draw their own, for all others the CPU draws (Apple's
    GPU cannot draw all kinds)."""
    return device if device.type == "cuda" else torch.device("cpu")


def drawn(
    draw: Callable[..., Tensor], *size: Any, generator: Generator | None, device: torch.device, **kind: Any
) -> Tensor:
    """Random numbers on `device`: what draw(*size, **kind) gives, where draw is torch.rand, torch.randint,
    torch.randperm or the like.

    They are drawn where the generator is and then moved, because torch refuses a generator of another device. Without a
    generator they come from torch's global one. float64 becomes float32 on a device that has no float64.
    """
    home = generator_device(device) if generator is None else generator.device
    numbers = draw(*size, generator=generator, device=home, **kind)
    if numbers.dtype == torch.float64 and device.type in WITHOUT_FLOAT64:
        numbers = numbers.float()
    return numbers.to(device)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """a @ b in full precision, also inside a mixed-precision region."""
    with torch.autocast(a.device.type, enabled=False):
        return a @ b


def at_least_float32(z: Tensor) -> Tensor:
    """float16 and bfloat16 -> float32; float32 and float64 stay as they are."""
    return z.float() if z.dtype in (torch.float16, torch.bfloat16) else z


def unit(z: Tensor) -> Tensor:
    """z / ‖z‖ over the last dimension; a zero vector stays zero, with a finite gradient."""
    if not (torch.is_grad_enabled() and z.requires_grad):
        return z / _norm(z)[..., None]  # plain operations, which can be exported
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
    """Cosines (B, C) of the rows of z (B, D) with the rows of w (C, D), which may be large and is not copied."""
    with torch.autocast(z.device.type, enabled=False):
        return _Cosines.apply(z, w)


def _norm(z: Tensor) -> Tensor:
    """‖z‖ over the last dimension; 1 for a zero vector."""
    norm = z.norm(dim=-1)
    return norm.masked_fill_(norm == 0, 1)


class _Cosines(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, w: Tensor) -> Tensor:
        z_norm, w_norm = (_norm(x) for x in (z, w))
        e = z / z_norm[:, None]  # (B, D)
        s = (e @ w.T).div_(w_norm)  # (B, C)
        ctx.save_for_backward(e, z_norm, w, w_norm, s)
        return s

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        e, z_norm, w, w_norm, s = ctx.saved_tensors
        scaled = g / w_norm
        g_e = scaled @ w  # (B, D)
        g_z = g_e.addcmul_(e, (g_e * e).sum(1, keepdim=True), value=-1).div_(z_norm[:, None])
        along = (g * s).sum(0).div_(w_norm.square())  # (C,)
        return g_z, (scaled.T @ e).addcmul_(w, along[:, None], value=-1)


def rounding(z: Tensor) -> float:
    """The most that rounding can move the unit vectors of z (B, D), or their cosines: (D + 4)·eps of z's precision.

    In whatever order it is added up, a sum of D products is off by at most D half-eps of its absolute terms. So a norm
    is off by D/2 + 2 half-eps, a coordinate divided by it by D/2 + 3, and the inner product of two such vectors by
    2·(D/2 + 3) + D half-eps, (D + 3)·eps. The last eps is for a multiple of a vector, which is itself rounded.
    """
    return (z.shape[1] + 4) * torch.finfo(z.dtype).eps


def replace_small(x: Tensor, small: Tensor, exact: Callable[[Tensor, Tensor], Tensor], width: int) -> Tensor:
    """x (B, M), overwritten by exact(row, column) -> (T,) at the T places where the mask `small` (B, M) is True.

    For differences of large numbers that cancel, so that little more than rounding is left. The gradient is that of x,
    which does not suffer. The places are taken in blocks, so that `exact` never holds more than 2^17 numbers at once.

    Parameters:
        x: must not be saved by the operation that made it, because it changes in place.
        small: where x is too small to be accurate.
        exact: computes the true values; it is called without a graph.
        width: how many numbers `exact` holds per place.
    """
    with torch.no_grad():
        row, column = small.nonzero(as_tuple=True)  # (T,)
        values = x.detach()
        for block in row_blocks(row, max(1, 2**17 // max(1, width))):
            values[row[block], column[block]] = exact(row[block], column[block])
    return x


def sqrt0(x: Tensor) -> Tensor:
    """The exact square root of max(x, 0); its gradient at 0 is 0, not infinity."""
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
    """The mean of ‖z‖ (power=1) or ‖z‖² (power=2) over the rows of z (B, D); 0 if there are no rows."""
    square = z.square().sum(1)
    return (square if power == 2 else sqrt0(square)).sum() / max(1, len(z))


def masked_lse(x: Tensor, mask: Tensor, dim: int, scale: float = 1.0) -> Tensor:
    """log Σ exp(scale·x) over the entries where the mask is True.

    Other entries never reach exp, so that neither value nor gradient can overflow. The value of an empty sum is -inf:
    leave it out, or pass it to `log1p_exp`, which makes it 0 with gradient 0.

    Parameters:
        x: any shape.
        mask: bool, the shape of x.
        dim: the dimension to sum over; it disappears.
        scale: a factor of x, positive or negative.
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
    """log Σ exp(terms) over `dim`, and a total. `terms` is overwritten: divided by the total it is the softmax."""
    top = terms.amax(dim, keepdim=True)
    top.masked_fill_(top == -torch.inf, 0)
    total = terms.sub_(top).exp_().sum(dim, keepdim=True)
    return top.add_(total.log()).squeeze(dim), total


def _share(g: Tensor, total: Tensor, scale: float) -> Tensor:
    """The factor that turns the exponentials of `_exponentials` into the gradient of log Σ exp(scale·x)."""
    return (g * scale / total).masked_fill_(total == 0, 0)


def others_and_target(x: Tensor, labels: Tensor, scale: float = 1.0, *, over: int = 1) -> tuple[Tensor, Tensor]:
    """(others, target): log Σ exp(scale·x_ic) over all entries but those of the sample's class, c = y_i; and those.

    Cross-entropy is the mean of log1p_exp(others - scale·target) with over=1.

    Parameters:
        x: (B, C), sample i against class c.
        labels: (B,), y_i.
        scale: a factor of x.
        over: 1 sums over the classes, so that others is (B,); 0 over the samples, (C,). target is (B,) in both cases.
    """
    return _OthersAndTarget.apply(x, labels, scale, over)


class _OthersAndTarget(torch.autograd.Function):
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
    def backward(ctx: Any, g_others: Tensor, g_target: Tensor) -> tuple[Tensor, None, None, None]:
        terms, total, target = ctx.saved_tensors
        share = _share(g_others.unsqueeze(ctx.over), total, ctx.scale)
        return (terms * share).scatter_(1, target, g_target[:, None]), None, None, None


def cross_entropy(logits: Tensor, labels: Tensor, scale: float = 1.0) -> Tensor:
    """Mean cross-entropy of scale·logits (B, C) with the labels (B,)."""
    others, target = others_and_target(logits, labels, scale)
    return log1p_exp(others - scale * target).mean()


def log1p_exp(x: Tensor) -> Tensor:
    """log(1 + exp(x)), without overflow."""
    return F.softplus(x, threshold=50)


def soft_histogram(x: Tensor, first: Tensor, second: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """Two histograms (B, nodes) of each row of x: one of its entries in the mask `first`, one of those in `second`.

    An entry between two nodes is divided linearly between them, so that the histogram has a gradient.

    Parameters:
        x: (B, M), measured in nodes: from 0, the first node, to nodes - 1, the last.
        first, second: (B, M) bool; no entry may be in both.
        nodes: how many there are.
    """
    both = _SoftHistogram.apply(x, first, second, nodes)  # (B, 2·nodes)
    return both[:, :nodes], both[:, nodes:]


class _SoftHistogram(torch.autograd.Function):
    """In blocks of rows, so that eight-byte indices never exist for the whole matrix at once."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, first: Tensor, second: Tensor, nodes: int) -> Tensor:
        histogram = x.new_zeros(len(x), 2 * nodes)
        places = torch.empty(x.shape, dtype=torch.int16, device=x.device)  # lower node; nodes of `second` follow
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
        slope = torch.diff(g, dim=1)  # a growing entry moves from lower to upper node
        gradient = g.new_empty(places.shape)
        for rows in row_blocks(places):
            torch.gather(slope[rows], 1, places[rows].long(), out=gradient[rows]).mul_(inside[rows])
        return gradient, None, None, None


def row_blocks(x: Tensor, size: int = 256) -> Iterator[slice]:
    """Slices of at most `size` rows that together cover all rows of x."""
    for start in range(0, len(x), size):
        yield slice(start, start + size)
