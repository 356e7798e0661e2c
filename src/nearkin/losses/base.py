"""What a loss is: a small module that declares what it takes.

`accepts` names the tuples that a loss can use: `PairMasks` (it sums over masked pairs), `Triplets` (it sums over
index triplets), both, or nothing (proxy losses). A miner that gives something else is refused when the objective is
built.
"""

from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn

from nearkin.errors import NearkinError
from nearkin.pairs import PairMasks, Pairs, Triplets


class Loss(nn.Module):
    name: ClassVar[str]
    version: ClassVar[int] = 1
    source: ClassVar[str] = ""              # first publication
    accepts: ClassVar[tuple[type, ...]] = ()
    needs_square: bool = False              # wants reference-reference similarities: no memory beside it
    lr_factor: ClassVar[float] = 1.0        # learning rate of its own parameters over the base rate
    norm: ClassVar[str] = "none"            # the normalisation of the embedding that its source has: none or layer
    active: Tensor | None = None            # share of active terms in the last call, for the log

    def forward(
        self,
        embeddings: Pairs | Tensor,
        labels: Tensor | None = None,
        tuples: Any = None,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        pairs = Pairs.of(embeddings, labels)
        if self.needs_square and not pairs.square:
            raise NearkinError(f"{type(self).__name__} compares references with each other: no memory beside it")
        tuples = self.draw(pairs, tuples, generator)
        if tuples is None:
            return self.compute(pairs)
        if not isinstance(tuples, self.accepts):
            takes = " or ".join(t.__name__ for t in self.accepts) or "no miner"
            raise NearkinError(f"{type(self).__name__} takes {takes}, not {type(tuples).__name__}")
        if isinstance(tuples, PairMasks):
            return self.compute(pairs.restrict(tuples))
        return self.compute(pairs, tuples)

    def draw(self, pairs: Pairs, tuples: Any, generator: Generator | None) -> Any:
        """What the loss picks at random itself (N-pair's positives): all chance is here, none in `compute`."""
        return tuples

    def compute(self, pairs: Pairs, tuples: Any = None) -> Tensor:
        raise NearkinError(f"{type(self).__name__} does not define compute(pairs)")

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Its own parameters for the optimiser, at `lr_factor` times the base rate, or at a rate `lr` of their own."""
        parameters = [p for p in self.parameters() if p.requires_grad]
        return [{"name": "loss", "params": parameters, "lr_factor": self.lr_factor}] if parameters else []

    def extra_repr(self) -> str:
        hidden = ("training", "active", "needs_square")
        return ", ".join(f"{k}={v}" for k, v in vars(self).items() if not k.startswith("_") and k not in hidden)


class PairLoss(Loss):
    """Reads the masks of `Pairs`."""

    accepts: ClassVar[tuple[type, ...]] = (PairMasks,)


class TripletLoss(Loss):
    """Sums over triplets: those of a miner, or all of the batch."""

    accepts: ClassVar[tuple[type, ...]] = (Triplets,)


class ProxyLoss(Loss):
    """Compares each sample with learned class vectors of its own."""

    def __init__(self, num_classes: int, dim: int, per_class: int = 1):
        super().__init__()
        if num_classes < 2:
            raise NearkinError(f"num_classes={num_classes}: a proxy loss needs at least 2 classes")
        self.num_classes = num_classes
        self.proxies = nn.Parameter(torch.empty(per_class * num_classes, dim))  # (C, D), raw

    def cosines(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """Cosine of each sample with each proxy, and the labels: the batch as anchors, the proxies as references."""
        labels = self.check(pairs)
        classes = torch.arange(len(self.proxies), device=labels.device)
        return Pairs(pairs.z, labels, references=self.proxies, reference_labels=classes).s, labels     # (B, C), (B,)

    def check(self, pairs: Pairs) -> Tensor:
        if pairs.z.shape[1] != self.proxies.shape[1]:
            raise NearkinError(
                f"embeddings have {pairs.z.shape[1]} dimensions, the proxies of {type(self).__name__} "
                f"have {self.proxies.shape[1]}"
            )
        return check_labels(pairs.labels, self.num_classes, self)


def check_labels(labels: Tensor, num_classes: int, loss: Loss) -> Tensor:
    """Labels that number the class vectors of a loss."""
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < num_classes:
        raise NearkinError(
            f"labels run from {int(labels.min())} to {int(labels.max())}; "
            f"{type(loss).__name__} has num_classes={num_classes} (labels 0 to {num_classes - 1})"
        )
    return labels.long()
