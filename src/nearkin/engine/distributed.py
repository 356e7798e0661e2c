"""Many processes: besides engine/rank.py the only file that knows about ranks.

    torchrun --nproc-per-node 2 -m nearkin train dataset=cub ...

Every rank runs the same program. It embeds its own slice of each batch; the embeddings of all slices are gathered in
the order of the batch, and every rank computes the same loss on the whole batch. A rank keeps the gradient of its own
slice: the gradients of the network then add up over the ranks to that of one process. Parameters of the loss
have their whole gradient on every rank; averaging keeps their bits equal. No loss needs a special case.

BatchNorm in training mode takes its statistics from all slices (`SyncedBatchNorm`, also on a CPU, which torch's own
does not offer); frozen BatchNorm needs nothing. Rank 0 alone writes.

Shapes: B samples of the whole batch, b of one rank.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm

from nearkin.errors import NearkinError
from nearkin.numerics import at_least_float32

SEEDS = 1 << 20  # between the random numbers of two ranks

T = TypeVar("T")


class Ranks:
    """This process among `world`; alone, everything here is the identity."""

    def __init__(self, rank: int = 0, world: int = 1):
        self.rank = rank
        self.world = world

    @property
    def first(self) -> bool:
        """Is this the rank that writes?"""
        return self.rank == 0

    # -- division of the rows --------------------------------------------------------------------------------------

    def sizes(self, count: int) -> list[int]:
        """How many of `count` rows each rank has: consecutive slices that differ by one at most."""
        return [count // self.world + (r < count % self.world) for r in range(self.world)]

    def slices(self, count: int) -> list[slice]:
        """The slices of all ranks, in their order."""
        sizes = self.sizes(count)
        return [slice(sum(sizes[:r]), sum(sizes[: r + 1])) for r in range(self.world)]

    def mine(self, count: int) -> slice:
        """This rank's slice of `count` rows."""
        return self.slices(count)[self.rank]

    def seed(self, seed: int) -> int:
        """A seed for what each rank draws for itself (dropout): far from the seeds of the others."""
        return seed + self.rank * SEEDS

    def check(self, batch: int) -> None:
        """Refuse more processes than a batch has images."""
        if self.world > batch:
            raise NearkinError(
                f"{self.world} processes share batches of {batch} images: use at most {batch} processes, or a larger "
                "train.batch"
            )

    # -- communication -------------------------------------------------------------------------

    def gather(self, x: Tensor, sizes: list[int]) -> Tensor:
        """The rows of all ranks in their order, `sizes` of each; backward keeps the gradient of this rank's rows."""
        return x if self.world == 1 else _Gather.apply(x, self.rank, sizes)  # (B, ...)

    def share(self, make: Callable[[], T]) -> T:
        """What `make` returns on rank 0, on every rank."""
        if self.world == 1:
            return make()
        box: list[Any] = [make() if self.first else None]
        distributed.broadcast_object_list(box, src=0)
        return box[0]

    def reduce(self, network: Iterable[nn.Parameter], objective: Iterable[nn.Parameter]) -> None:
        """Add up the gradients of the network, average those of the objective, in one message each."""
        if self.world == 1:
            return
        for parameters, divisor in ((network, 1), (objective, self.world)):
            gradients = [p.grad for p in parameters if p.grad is not None]
            if not gradients:
                continue
            flat = torch.cat([g.flatten() for g in gradients])
            distributed.all_reduce(flat)
            for gradient, piece in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
                gradient.copy_(piece.view_as(gradient) / divisor)

    def wait(self) -> None:
        """Wait until every rank has arrived."""
        if self.world > 1:
            distributed.barrier()


ALONE = Ranks()
_current = ALONE


def ranks() -> Ranks:
    """This process among those of its job."""
    return _current


@contextmanager
def acting_as(other: Ranks) -> Iterator[Ranks]:
    """Inside, `ranks()` gives `other`."""
    global _current
    before, _current = _current, other
    try:
        yield other
    finally:
        _current = before


@contextmanager
def joined(device: torch.device) -> Iterator[torch.device]:
    """Inside, this process is one of the job that torchrun started; gives its device. Without torchrun it is alone.

    A process whose partner died says so in one line; the partner itself has said why.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        with acting_as(ALONE):
            yield device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    begun_here = not distributed.is_initialized()
    if begun_here:
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        with acting_as(Ranks(distributed.get_rank(), world)):
            yield device
    except RuntimeError as error:
        if not any(word in str(error).lower() for word in ("connection", "gloo", "nccl")):
            raise
        raise NearkinError(
            "another process of this job has ended and said why; the same command continues from the last checkpoint"
        ) from error
    finally:
        if begun_here:
            distributed.destroy_process_group()


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rank: int, sizes: list[int]) -> Tensor:
        ctx.start, ctx.rows = sum(sizes[:rank]), sizes[rank]
        padded = x.new_zeros(max(sizes), *x.shape[1:])  # gloo needs the same shape from all
        padded[: len(x)] = x
        slices = [torch.empty_like(padded) for _ in sizes]
        distributed.all_gather(slices, padded)
        return torch.cat([x[:size] for x, size in zip(slices, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient[ctx.start : ctx.start + ctx.rows], None, None


class _Sum(torch.autograd.Function):
    """The sum over ranks of a tensor that every rank then uses: its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x = x.clone()
        distributed.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(gradient)
        return gradient


class SyncedBatchNorm(_BatchNorm):
    """BatchNorm whose statistics in training mode are those of all ranks' slices."""

    def __init__(self, norm: _BatchNorm):
        super().__init__(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
        self.__dict__["_parameters"], self.__dict__["_buffers"] = norm._parameters, norm._buffers
        self.train(norm.training)

    def _check_input_dim(self, input: Tensor) -> None:
        pass  # 1d and 2d alike

    def forward(self, input: Tensor) -> Tensor:
        """As BatchNorm does, with the mean and variance of all ranks' rows while training."""
        if not self.training:
            return super().forward(input)
        x = at_least_float32(input)
        axes = [0, *range(2, x.ndim)]
        shape = (1, -1, *[1] * (x.ndim - 2))
        count = x.numel() // x.shape[1]
        sums = _Sum.apply(torch.cat([x.sum(axes), x.new_tensor([count])]))  # (C + 1,)
        total = sums[-1].detach()
        mean = sums[:-1] / total  # (C,)
        centred = x - mean.view(shape)
        variance = _Sum.apply(centred.square().sum(axes)) / total  # (C,), after the mean:
        with torch.no_grad():  # no cancellation
            if self.running_mean is not None and self.running_var is not None:
                self.num_batches_tracked.add_(1)  # type: ignore[union-attr]
                momentum = 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum  # type: ignore[arg-type]
                self.running_mean.lerp_(mean, momentum)
                self.running_var.lerp_(variance * total / (total - 1), momentum)  # unbiased, as torch
        out = centred * (variance + self.eps).rsqrt().view(shape)
        if self.affine:
            out = out * self.weight.view(shape) + self.bias.view(shape)
        return out.to(input.dtype)


def synchronise(module: nn.Module) -> None:
    """Make every BatchNorm that trains synchronise its statistics; in place, parameters shared."""
    if ranks().world == 1:
        return
    for name, child in module.named_children():
        if not isinstance(child, _BatchNorm):
            synchronise(child)
        elif child.training:
            if type(child) not in (nn.BatchNorm1d, nn.BatchNorm2d):
                raise NearkinError(
                    f"{type(child).__name__} is a BatchNorm that cannot be synchronised over processes: "
                    "model.freeze_bn=true, or train with one process"
                )
            setattr(module, name, SyncedBatchNorm(child))
