"""The gradient of one batch: in one pass, or in two when its images do not fit into memory at once.

    one pass    z = f(x);  L(z);  backward
    two passes  z = f(x) chunk by chunk without a graph;  L(z) and ∂L/∂z;  f(x) again, chunk by chunk, and backward
                from ∂L/∂z of the chunk

Two passes cost a second forward and give the same gradient as the whole batch (Gao et al. 2021, gradient caching),
because a loss meets the network in the embeddings alone. Two things must hold: no image may depend on the others of its
batch inside the network, so BatchNorm has to be frozen (and mixup to be off); and the random numbers of a chunk
(dropout) are the same in both passes, so they are seeded by step and chunk.

Shapes: B samples of the whole batch, b of this process.
"""

from collections.abc import Callable

import torch
from torch import Generator, Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from nearkin.engine.distributed import ranks
from nearkin.errors import NearkinError
from nearkin.memory import Memory
from nearkin.methods.base import Method
from nearkin.models import Model
from nearkin.pairs import Embedded
from nearkin.regularisers import Mix

Forward = Callable[[Tensor, Mix | None], Embedded]
Reseed = Callable[[int], None]  # sets the random numbers of the network for a chunk


def check_chunks(chunk: int, model: Model, objective: Method) -> None:
    """Refuse two passes where they would not give the gradient of the whole batch."""
    if any(isinstance(m, _BatchNorm) and m.training for m in model.modules()):
        raise NearkinError(
            f"train.chunk={chunk}: the network's BatchNorm takes statistics of the whole batch, which no chunk has: "
            "set model.freeze_bn=true, or leave train.chunk out"
        )
    if objective.mixes:
        raise NearkinError(f"train.chunk={chunk} does not go with mixup, which mixes images of different chunks")


def batch_loss(
    forward: Forward,
    objective: Method,
    x: Tensor,
    labels: Tensor,
    *,
    chunk: int | None,
    mix: Mix | None,
    generator: Generator,
    memory: Memory | None,
    reseed: Reseed,
) -> tuple[Tensor, Embedded, Callable[[], None]]:
    """The loss of the whole batch, its embeddings, and a function to call after the loss's backward.

    x is this process's slice of the images, labels are those of the whole batch."""
    here = ranks()
    sizes = here.sizes(len(labels))
    if chunk is None:
        reseed(0)
        embedded = forward(x, mix).map(lambda t: here.gather(t, sizes))  # (B, ...)
        return objective(embedded, labels, generator, memory), embedded, lambda: None

    chunks = x.split(chunk)
    computed = []
    with torch.no_grad():
        for number, images in enumerate(chunks):
            reseed(number)
            computed.append(forward(images, None))
    extras = {name: torch.cat([c.extras[name] for c in computed]) for name in computed[0].extras}
    local = Embedded(torch.cat([c.z for c in computed]), extras)  # (b, ...)
    whole = local.map(lambda t: here.gather(t, sizes).requires_grad_())  # (B, ...), leaves

    def second_pass() -> None:
        mine = here.mine(len(labels))
        slopes = [None if t.grad is None else t.grad[mine].split(chunk) for t in whole.tensors()]
        for number, images in enumerate(chunks):
            reseed(number)
            outputs = zip(forward(images, None).tensors(), slopes, strict=True)
            gradients = [(t, slope[number]) for t, slope in outputs if slope is not None and t.requires_grad]
            if gradients:
                torch.autograd.backward([t for t, _ in gradients], [slope for _, slope in gradients])

    return objective(whole, labels, generator, memory), whole, second_pass
