"""A device in pure Python: what runs on a GPU, tested on a machine that has none.

Its tensors are shells; the numbers lie in a CPU tensor inside. An operation opens the shells, computes on the CPU, and
puts the results into shells again, so that values equal the CPU's. Like CUDA it refuses an operation that mixes devices
(but for single numbers and indices, which CUDA takes from the CPU, too), and like CUDA it has no numpy. Like Apple's
GPU it has no random numbers of its own for a generator; and where `without_float64` says so, no float64.

`waited()` tells how often the program had to wait for its device: for results that the CPU must read before it goes on.

torch starts a thread for every device at its first backward. The device must therefore be there before, and a process
that has it cannot fork afterwards: these tests have processes of their own (test_device.py).
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend


class Backend(_DummyBackendModule):
    """`torch.toy`."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


_setup_privateuseone_for_python_backend("toy", backend_module=Backend())
TOY = torch.device("toy", 0)
aten = torch.ops.aten

COPIES = {aten.copy_, aten._to_copy, aten._copy_from, aten._copy_from_and_resize}
INDEXING = {
    aten.index,
    aten.index_put,
    aten.index_put_,
    aten._unsafe_index,
    aten._unsafe_index_put,
    aten._index_put_impl_,
}
WAITS = {  # the CPU must know the result, or its size
    aten._local_scalar_dense,
    aten.is_nonzero,
    aten.equal,
    aten.nonzero,
    aten.masked_select,
    aten.unique_dim,
    aten._unique,
    aten._unique2,
    aten.unique_consecutive,
    aten.bincount,
    aten.repeat_interleave,
    aten.nonzero_numpy,
    aten.histc,
}


class State:
    """What the device counts and forbids."""

    waits: ClassVar[Counter[str]] = Counter()
    float64 = True


class Shell(Tensor):
    """A tensor of the device: `raw` holds its numbers."""

    raw: Tensor

    @staticmethod
    def __new__(cls, raw: Tensor) -> "Shell":
        if raw.dtype == torch.float64 and not State.float64:
            raise RuntimeError("toy: this device has no float64")
        shell = Tensor._make_wrapper_subclass(
            cls, raw.size(), strides=raw.stride(), storage_offset=raw.storage_offset(), dtype=raw.dtype, device=TOY
        )
        shell.raw = raw
        return shell

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})

    __torch_function__ = torch._C._disabled_torch_function_impl

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("toy: can't convert a tensor of this device to numpy; use Tensor.cpu()")

    def __repr__(self, **kwargs: Any) -> str:
        return f"Shell({self.raw!r})"

    def __reduce_ex__(self, protocol: Any) -> Any:  # saved files hold what map_location="cpu" gives
        return self.raw.__reduce_ex__(protocol)


def compute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Open the shells, compute on the CPU, close them again."""
    op = func.overloadpacket
    shells: dict[int, Tensor] = {}
    found: list[tuple[bool, Tensor]] = []  # on the device?, tensor

    def open_(x: Any) -> Any:
        if isinstance(x, Shell):
            shells[id(x.raw)] = x
            found.append((True, x.raw))
            return x.raw
        if isinstance(x, Tensor):
            shells[id(x)] = x
            found.append((False, x))
        return x

    plain_args, plain_kwargs = tree_map(open_, args), tree_map(open_, kwargs)
    here = any(on for on, _ in found)
    wanted = kwargs.get("device")
    if wanted is not None:
        wanted = torch.device(wanted)
        plain_kwargs["device"] = torch.device("cpu") if wanted.type == "toy" else wanted
    if here:
        _check(func, args, found)
        _count(op, args, wanted)
        generator = kwargs.get("generator")
        if generator is not None:
            raise RuntimeError(f"{func}: expected a generator of the device toy, got one of {generator.device}")
    elif wanted is not None and wanted.type == "toy" and kwargs.get("generator") is not None:
        raise RuntimeError(f"{func}: expected a generator of the device toy, got one of the CPU")
    if "pin_memory" in plain_kwargs:
        plain_kwargs["pin_memory"] = False
    result = func(*plain_args, **plain_kwargs)
    close = wanted.type == "toy" if wanted is not None else here

    def close_(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        if id(x) in shells:  # in place: the same shell
            return shells[id(x)]
        return Shell(x) if close else x

    return tree_map(close_, result)


def _check(func: Any, args: Any, found: list[tuple[bool, Tensor]]) -> None:
    """Refuse what CUDA refuses: an operation on tensors of two devices."""
    op = func.overloadpacket
    if op in COPIES or all(on for on, _ in found):
        return
    if op in INDEXING and isinstance(args[0], Shell):
        others = [x for x in args[2:3] if isinstance(x, Tensor) and not isinstance(x, Shell) and x.ndim]
    else:
        others = [x for on, x in found if not on and (x.ndim or op in (aten.cat, aten.stack))]
    if others:
        raise RuntimeError(f"{func}: expected all tensors on one device, found toy:0 and cpu {tuple(others[0].shape)}")


def _count(op: Any, args: Any, wanted: torch.device | None) -> None:
    if op in WAITS:
        State.waits[op.__name__] += 1
    elif op in INDEXING:
        if any(isinstance(i, Shell) and i.dtype in (torch.bool, torch.uint8) for i in args[1]):
            State.waits["mask as index"] += 1
    elif op is aten._to_copy:
        if wanted is not None and wanted.type == "cpu":
            State.waits["copy to the CPU"] += 1
    elif op is aten.copy_ and isinstance(args[1], Shell) and not isinstance(args[0], Shell):
        State.waits["copy to the CPU"] += 1


class _Factories(TorchDispatchMode):
    """New tensors on the device have no shell among their arguments: the mode sees them all the same."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


@contextmanager
def on_toy() -> Iterator[None]:
    """Inside, tensors can be made on the device; its waits are counted from 0."""
    State.waits = Counter()
    with _Factories():
        yield


def waited() -> Counter[str]:
    """The waits since the last call, or since the device was entered."""
    waits, State.waits = State.waits, Counter()
    return waits


@contextmanager
def without_float64() -> Iterator[None]:
    """Inside, the device refuses float64, as Apple's does."""
    State.float64 = False
    try:
        yield
    finally:
        State.float64 = True


_library = torch.library.Library("aten", "IMPL")


def _kernel(name: str) -> Any:
    def register(function: Any) -> Any:
        _library.impl(name, function, "PrivateUse1")
        return function

    return register


_rest = torch.library.Library("_", "IMPL")
_rest.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")


def _cast(name: str) -> None:
    """In a region of mixed precision the operation takes half-precision arguments, as on other devices."""
    operation = getattr(aten, name)

    def cast(*args: Any, **kwargs: Any) -> Tensor:
        dtype = torch.get_autocast_dtype("toy")
        lower = (x.to(dtype) if isinstance(x, Tensor) and x.dtype == torch.float32 else x for x in args)
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)):
            return operation(*lower, **kwargs)

    _library.impl(name, cast, "AutocastPrivateUse1")


for _name in ("conv2d", "linear", "matmul"):
    _cast(_name)


@_kernel("empty.memory_format")
def _empty(
    size: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Tensor:
    return Shell(torch.empty(size, dtype=dtype, memory_format=memory_format or torch.contiguous_format))


@_kernel("empty_strided")
def _empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Tensor:
    return Shell(torch.empty_strided(size, stride, dtype=dtype))


@_kernel("_copy_from")
def _copy_from(source: Any, target: Any, non_blocking: bool = False) -> Tensor:
    raw = source.raw if isinstance(source, Shell) else source
    (target.raw if isinstance(target, Shell) else target).copy_(raw)
    return target
