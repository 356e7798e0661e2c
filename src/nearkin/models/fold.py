"""Folding: for a network that only embeds, BatchNorm with fixed statistics joins the convolution before it.

    γ (w * x + b - μ) / σ + β  =  (γ/σ · w) * x + γ/σ · (b - μ) + β,        σ = √(variance + ε)

Which BatchNorm follows which convolution is not read from names or from the order of modules: one image is sent through
the network, and a BatchNorm whose input is the very output of a convolution is that convolution's. Networks of any make
are treated alike; what cannot be folded stays as it is.
"""

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from nearkin.numerics import double

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMS: tuple[type[_BatchNorm], ...] = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
TOLERANCE = 1e-3  # of the largest value: folding moves the result by rounding alone, some 1e-6

Network = TypeVar("Network", bound=nn.Module)
Pair = tuple[_ConvNd, _BatchNorm]


@torch.no_grad()
def folded(
    network: Network, run: Callable[[Network], Tensor], *, norms: tuple[type[_BatchNorm], ...] = NORMS
) -> Network:
    """A copy of a network in eval mode whose BatchNorms are folded into the convolutions before them; the network
    itself where nothing can be folded. It is not changed in either case.

    Parameters:
        network: in eval mode.
        run: sends an image or two through a network: the one given, then its folded copy. A copy whose result
            differs by more than rounding is thrown away.
        norms: the kinds of BatchNorm that may be folded; a subclass is another kind, since it may do more.

    Example:
        fast = folded(model.eval(), lambda network: network(images[:1]).z)
    """
    pairs, expected = _watched(network, run, norms)
    if not pairs:
        return network
    try:
        twin, of = _copied(network)
    except (RuntimeError, TypeError):  # something in it cannot be copied: a graph, a lock, a file
        return network
    folds = {of[norm] for _, norm in pairs}
    for conv, norm in pairs:
        _fold(of[conv], of[norm])  # type: ignore[arg-type]
    for module in twin.modules():
        for name, child in module.named_children():
            if child in folds:
                setattr(module, name, nn.Identity())
    return twin if _close(run(twin), expected) else network


def _watched(
    network: Network, run: Callable[[Network], Tensor], norms: tuple[type[_BatchNorm], ...]
) -> tuple[list[Pair], Tensor]:
    """The convolutions whose output went, as it was, into a BatchNorm of the network, each with that BatchNorm; and
    what the network gave."""
    made: dict[int, tuple[_ConvNd, Tensor, int]] = {}  # held, so that no later tensor gets the same id
    calls: Counter[nn.Module] = Counter()
    before: dict[_BatchNorm, _ConvNd] = {}

    def after_conv(conv: nn.Module, args: Any, out: Any) -> None:
        calls[conv] += 1
        if isinstance(out, Tensor):
            made[id(out)] = (conv, out, out._version)  # type: ignore[assignment]

    def before_norm(norm: nn.Module, args: Any) -> None:
        calls[norm] += 1
        conv, _, version = made.get(id(args[0]), (None, None, 0)) if args else (None, None, 0)
        if conv is not None and args[0]._version == version:  # not changed in place since
            before[norm] = conv  # type: ignore[index]

    foldable = [m for m in network.modules() if not (m._forward_hooks or m._forward_pre_hooks)]
    handles = [m.register_forward_hook(after_conv) for m in foldable if _plain_conv(m)]
    handles += [m.register_forward_pre_hook(before_norm) for m in foldable if type(m) in norms and _fixed(m)]
    try:
        result = run(network)
    finally:
        for handle in handles:
            handle.remove()
    uses = Counter(before.values())
    return [
        (conv, norm)
        for norm, conv in before.items()
        if calls[conv] == calls[norm] == uses[conv] == 1 and conv.out_channels == norm.num_features
    ], result


def _plain_conv(module: nn.Module) -> bool:
    """Is it a convolution whose weight is a parameter, not computed from others?"""
    return isinstance(module, CONVOLUTIONS) and module._parameters.get("weight") is not None


def _fixed(norm: nn.Module) -> bool:
    """Does it use its running statistics?"""
    return not norm.training and isinstance(norm, _BatchNorm) and norm.running_mean is not None


def _copied(network: Network) -> tuple[Network, dict[nn.Module, nn.Module]]:
    """A copy, and which module became which."""
    memo: dict[int, Any] = {}
    twin = copy.deepcopy(network, memo)
    return twin, {module: memo[id(module)] for module in network.modules()}


def _fold(conv: _ConvNd, norm: _BatchNorm) -> None:
    """Give the convolution the combined weight and bias of both, computed in float64."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = (double(norm.running_var) + norm.eps).rsqrt()  # (C,) 1/σ
    if norm.weight is not None:
        scale = scale * double(norm.weight)
    shift = -double(norm.running_mean) if conv.bias is None else double(conv.bias) - double(norm.running_mean)
    shift = shift * scale  # (C,)
    if norm.bias is not None:
        shift = shift + double(norm.bias)
    weight = conv.weight
    scaled = double(weight) * scale.view(-1, *[1] * (weight.ndim - 1))  # as the weight
    for name, value in (("weight", scaled), ("bias", shift)):
        setattr(conv, name, nn.Parameter(value.to(weight.dtype).to(weight.device), weight.requires_grad))


def _close(actual: Tensor, expected: Tensor) -> bool:
    """Equal up to rounding, with NaN and infinity in the same places."""
    scale = float(expected.nan_to_num(posinf=0, neginf=0).abs().max()) if expected.numel() else 0.0
    return torch.allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True)
