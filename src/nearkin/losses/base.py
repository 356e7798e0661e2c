"""What all losses share: `Loss`, and the bases for losses on pairs, on triplets and on proxies."""

from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn

from nearkin.errors import NearkinError
from nearkin.pairs import PairMasks, Pairs, Triplets


class Loss(nn.Module):
    """A loss: a module that turns a batch into one number, and that declares what it takes.

    `accepts` names the tuples that a loss can use: `PairMasks` (it sums over masked pairs), `Triplets` (it sums over
    index triplets), both, or nothing (proxy losses). A miner that gives something else is refused when the objective is
    built.

    A subclass defines `compute(pairs, tuples)`, and `draw` if it chooses something at random.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    paper: ClassVar[str] = ""              # first publication
    accepts: ClassVar[tuple[type, ...]] = ()
    needs_square: bool = False              # it compares references with each other, so a memory cannot be used
    lr_factor: ClassVar[float] = 1.0        # learning rate of its own parameters, divided by the base rate
    norm: ClassVar[str] = "none"            # how its source normalises the embedding: none or layer
    active: Tensor | None = None            # share of active terms in the last call, for the log

    def forward(
        self,
        embeddings: Pairs | Tensor,
        labels: Tensor | None = None,
        tuples: Any = None,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """The value of the loss for one batch: a scalar with a graph.

        embeddings (B, D) are raw vectors, or a `Pairs` that holds them with their labels; labels (B,) are integers.
        tuples are what a miner gave; None means all pairs or triplets of the batch. The generator serves losses that
        draw samples themselves; None means the global random state.
        """
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
        """Choose at random what the loss needs beside the tuples (N-pair's positives), and return what `compute` takes.

        All randomness of a loss is here, none in `compute`. A loss that draws nothing returns the tuples as they are.
        """
        return tuples

    def compute(self, pairs: Pairs, tuples: Any = None) -> Tensor:
        """The scalar value, from (B, M) pairs and, for a loss that takes lists, the listed tuples (None: all).

        The masks of a miner are in `pairs.positive` and `pairs.negative` already.
        """
        raise NearkinError(f"{type(self).__name__} does not define compute(pairs)")

    def parameter_groups(self) -> list[dict[str, Any]]:
        """The loss's own parameters for the optimiser: a list of groups, empty if it has none.

        A group has either `lr_factor`, to be multiplied by the base learning rate, or `lr`, a rate of its own.
        """
        parameters = [p for p in self.parameters() if p.requires_grad]
        return [{"name": "loss", "params": parameters, "lr_factor": self.lr_factor}] if parameters else []

    def extra_repr(self) -> str:
        """The hyper-parameters as `name=value`, which `print(loss)` shows."""
        hidden = ("training", "active", "needs_square")
        return ", ".join(f"{k}={v}" for k, v in vars(self).items() if not k.startswith("_") and k not in hidden)


class PairLoss(Loss):
    """Base of losses on pairs: they read the (B, M) masks `pairs.positive` and `pairs.negative`.

    A miner of `PairMasks` reduces these masks before `compute` is called.
    """

    accepts: ClassVar[tuple[type, ...]] = (PairMasks,)


class TripletLoss(Loss):
    """Base of losses that sum over triplets: those of a miner, or all triplets of the batch when no miner is set."""

    accepts: ClassVar[tuple[type, ...]] = (Triplets,)


class ProxyLoss(Loss):
    """Base of losses that compare each sample with learned class vectors (proxies) instead of other samples.

    The vectors are the parameter `proxies` (per_class·C, D). They are not normalised, and a subclass sets their start
    values. Labels must be 0 to C - 1.

    Parameters:
        num_classes: C, the number of classes; at least 2.
        dim: D, the dimension of the embeddings.
        per_class: the number of proxies per class.
    """

    def __init__(self, num_classes: int, dim: int, per_class: int = 1):
        super().__init__()
        if num_classes < 2:
            raise NearkinError(f"num_classes={num_classes}: a proxy loss needs at least 2 classes")
        self.num_classes = num_classes
        self.proxies = nn.Parameter(torch.empty(per_class * num_classes, dim))  # (C, D), raw

    def cosines(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """The cosine of each sample with each proxy, (B, C), and the labels, (B,).

        The batch takes the place of the anchors and the proxies that of the references.
        """
        labels = self.check(pairs)
        classes = torch.arange(len(self.proxies), device=labels.device)
        return Pairs(pairs.z, labels, references=self.proxies, reference_labels=classes).s, labels     # (B, C), (B,)

    def check(self, pairs: Pairs) -> Tensor:
        """Return the labels (B,) as int64; raise an error if they or the dimension D do not fit the proxies."""
        if pairs.z.shape[1] != self.proxies.shape[1]:
            raise NearkinError(
                f"embeddings have {pairs.z.shape[1]} dimensions, the proxies of {type(self).__name__} "
                f"have {self.proxies.shape[1]}"
            )
        return check_labels(pairs.labels, self.num_classes, self)


def check_labels(labels: Tensor, num_classes: int, loss: Loss) -> Tensor:
    """Return the labels (B,) as int64; raise an error if one lies outside 0 to num_classes - 1."""
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < num_classes:
        raise NearkinError(
            f"labels run from {int(labels.min())} to {int(labels.max())}; "
            f"{type(loss).__name__} has num_classes={num_classes} (labels 0 to {num_classes - 1})"
        )
    return labels.long()
