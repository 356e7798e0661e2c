"""What all losses share: `Loss`, and the bases for losses on pairs, on triplets and on proxies."""

import inspect
import math
from collections.abc import Callable, Mapping
from functools import wraps
from numbers import Real
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn

from nearkin.errors import NearkinError, and_more
from nearkin.miners.foreign import from_indices, is_indices
from nearkin.pairs import PairMasks, Pairs, Triplets
from nearkin.registry import LOSSES
from nearkin.spaces import MUSGRAVE, Space

Groups = list[dict[str, Any]]
OWN_RATE = Space(1e-6, 1, log=True, source=MUSGRAVE)  # learning rate of parameters that a loss has itself
INDICES: dict[type, str] = {
    Triplets: "triplets (a, p, n), 3 index tensors",
    PairMasks: "pairs (a1, p, a2, n), 4 index tensors",
}


def with_rates(groups: Groups, lr: float | None) -> Groups:
    """Parameter groups with the learning rates that they have beside the base rate `lr`; None: as they are.

    A group's rate is its own `lr` where it has one, else lr · `lr_factor`.
    """
    if lr is None:
        return groups
    if not isinstance(lr, Real) or not 0 <= lr < math.inf:
        raise NearkinError(f"lr={lr!r}: the base learning rate is a number of at least 0")
    rates = [group.get("lr", lr * group.get("lr_factor", 1.0)) for group in groups]
    plain = [{key: value for key, value in group.items() if key != "lr_factor"} for group in groups]
    return [{**group, "lr": rate} for group, rate in zip(plain, rates, strict=True)]


def rated(groups: Callable[[Any], Groups]) -> Callable[..., Groups]:
    """Method decorator: `parameter_groups(self)` with the argument `lr` beside it."""

    @wraps(groups)
    def parameter_groups(self: Any, lr: float | None = None) -> Groups:
        return with_rates(groups(self), lr)

    del parameter_groups.__wrapped__  # help() shall show the signature with lr
    return parameter_groups


def one_number(value: Any, name: str) -> Tensor:
    """What the loss of this name returned, if it is a scalar; else a NearkinError with the shape."""
    if not isinstance(value, Tensor):
        raise NearkinError(f"{name} returned a {type(value).__name__}; a loss is one number, a tensor with a graph")
    if value.ndim:
        raise NearkinError(
            f"{name} returned a tensor of shape {tuple(value.shape)}; a loss is one number: return its mean or its sum"
        )
    return value


class Loss(nn.Module):
    """A loss: a module that turns a batch into one number, and that declares what it takes.

    `accepts` names the tuples that a loss can use: `PairMasks` (it sums over masked pairs), `Triplets` (it sums over
    index triplets), both, or nothing (proxy losses). A miner that gives something else is refused when the objective is
    built.

    A subclass defines `compute(pairs, tuples)`, and `draw` if it chooses something at random. One that has parameters
    for each class has `num_classes`: labels are then numbers from 0, and strings are refused.

    `search` declares what tuning may try: hyper-parameter, or dotted key of the spec -> space (`nearkin.spaces`).

    Example:
        loss = nearkin.losses.ProxyAnchor(num_classes=4, dim=8)
        groups = [{"params": model.parameters()}, *loss.parameter_groups(lr=1e-4)]
        optimiser = torch.optim.AdamW(groups, lr=1e-4)          # proxies at 100 times the rate, as their source has it
        value = loss(model(images), labels)
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    paper: ClassVar[str] = ""  # first publication
    accepts: ClassVar[tuple[type, ...]] = ()
    needs_square: bool = False  # it compares references with each other, so a memory cannot be used
    search: ClassVar[Mapping[str, Space]] = {}
    lr_factor: ClassVar[float] = 1.0  # learning rate of its own parameters, divided by the base rate
    has_proxies: ClassVar[bool] = False  # it compares samples with class vectors of its own, not with each other
    norm: ClassVar[str] = "none"  # how its source normalises the embedding: none or layer
    active: Tensor | None = None  # share of active terms in the last call, for the log
    seen_labels: bool = False  # has it checked labels before? (see check_labels)

    def __init_subclass__(cls, **settings: Any) -> None:
        """A subclass may define `parameter_groups(self)`; the argument `lr` is added to it here."""
        super().__init_subclass__(**settings)
        defined = vars(cls).get("parameter_groups")
        if defined is not None and "lr" not in inspect.signature(defined).parameters:
            cls.parameter_groups = rated(defined)  # type: ignore[method-assign]

    def forward(
        self,
        embeddings: Any,
        labels: Any = None,
        tuples: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Any = None,
        *,
        indices_tuple: Any = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """The value of the loss for one batch: a scalar with a graph; 0 for a batch without embeddings.

        Parameters:
            embeddings: (B, D), raw vectors, or a `Pairs` that holds them with their labels.
            labels: (B,), integers or strings, as a tensor, an array or a list.
            tuples: what a miner gave: `Triplets` or `PairMasks`, or the index tensors of pytorch-metric-learning,
                (a, p, n) or (a1, p, a2, n); None means all pairs or triplets of the batch.
            ref_emb, ref_labels: (M, D) and (M,), references that are not the batch; the positives and negatives of the
                tuples are then rows of ref_emb.
            indices_tuple: another name for tuples.
            generator: serves losses that draw samples themselves; None means the global random state.
        """
        pairs, tuples = self.given(embeddings, labels, tuples, ref_emb, ref_labels, indices_tuple)
        if tuples is not None:
            tuples = self.understood(tuples, pairs)
        if not len(pairs.z) or not len(pairs.reference_z):
            return self.nothing(pairs)
        tuples = self.draw(pairs, tuples, generator)
        if tuples is None:
            value = self.compute(pairs)
        elif isinstance(tuples, PairMasks):
            value = self.compute(pairs.restrict(tuples))
        else:
            value = self.compute(pairs, tuples)
        return one_number(value, type(self).__name__)

    def given(
        self, embeddings: Any, labels: Any, tuples: Any, ref_emb: Any, ref_labels: Any, indices_tuple: Any
    ) -> tuple[Pairs, Any]:
        """The batch and the tuples of a call, as `forward` takes them; a NearkinError if the loss cannot use them."""
        name = type(getattr(self, "module", self)).__name__  # of a ForeignLoss: that of the other library
        if indices_tuple is not None:
            if tuples is not None:
                raise NearkinError("tuples and indices_tuple are two names for what a miner gave: give one of them")
            tuples = indices_tuple
        pairs = Pairs.of(embeddings, labels, ref_emb=ref_emb, ref_labels=ref_labels)
        if pairs.classes is not None and self.numbered:
            count: Any = getattr(self, "num_classes", None)
            raise NearkinError(
                f"labels are strings ({and_more(pairs.classes, 3)}); {name} has parameters for each class and needs "
                f"class numbers, {f'0 to {count - 1}' if count else 'from 0'}, the same in every batch"
            )
        if not pairs.square and (ref_emb is not None or self.needs_square) and self.why_no_references:
            raise NearkinError(f"{name} takes neither a memory nor ref_emb: {self.why_no_references}")
        return pairs, tuples

    @property
    def why_no_references(self) -> str:
        """Why it has no use for references beside the batch, such as a memory; empty if it has."""
        if self.needs_square:
            return "it compares references with each other"
        return "" if self.accepts else "it compares samples with class vectors of its own"

    @property
    def numbered(self) -> bool:
        """Does it read labels as numbers of classes, 0 to C - 1?"""
        return getattr(self, "num_classes", None) is not None

    def understood(self, tuples: Any, pairs: Pairs) -> Any:
        """What a miner gave, as `draw` and `compute` take it; a NearkinError if it does not fit the loss or the batch.

        Index tensors (a, p, n) become `Triplets`, (a1, p, a2, n) `PairMasks`.
        """
        given, names = type(tuples).__name__, dict[type, str]()
        if is_indices(tuples):
            tuples = from_indices(tuples, pairs)
            given, names = INDICES[type(tuples)], INDICES
        if not isinstance(tuples, self.accepts):
            takes = " or ".join(names.get(kind, kind.__name__) for kind in self.accepts) or "no miner"
            raise NearkinError(f"{type(self).__name__} takes {takes}, not {given}")
        shape = len(pairs.z), len(pairs.reference_z)
        if isinstance(tuples, PairMasks) and tuples.positive.shape != shape:
            raise NearkinError(
                f"the miner's masks have shape {tuple(tuples.positive.shape)}, the batch and its references {shape}: "
                "mine the same batch that is given to the loss"
            )
        return tuples

    def nothing(self, pairs: Pairs) -> Tensor:
        """The value without anchors or without references: 0, with a graph to the embeddings and to own parameters."""
        self.active = None
        return pairs.zero() + sum((p * 0).sum() for p in self.parameters() if p.requires_grad)

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

    @rated
    def parameter_groups(self) -> Groups:
        """The loss's own parameters, as groups for an optimiser; an empty list if it has none.

        For an optimiser of your own, give the base rate: `parameter_groups(lr=1e-4)`. Each group then has `params` and
        `lr`, its learning rate: proxies often learn at 100 times the base rate.

            torch.optim.AdamW([{"params": model.parameters()}, *loss.parameter_groups(lr=1e-4)], lr=1e-4)

        Without `lr` a group has either `lr_factor`, which nearkin's optimiser multiplies by the base rate (those of
        torch ignore it: all parameters would then learn at the base rate), or `lr`, a rate of its own.
        """
        parameters = [p for p in self.parameters() if p.requires_grad]
        return [{"name": "loss", "params": parameters, "lr_factor": self.lr_factor}] if parameters else []

    def extra_repr(self) -> str:
        """The hyper-parameters as `name=value`, which `print(loss)` shows."""
        hidden = ("training", "active", "needs_square", "seen_labels")
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

    has_proxies: ClassVar[bool] = True
    search: ClassVar[Mapping[str, Space]] = {"train.groups.loss.lr": OWN_RATE}

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
        return Pairs(pairs.z, labels, references=self.proxies, reference_labels=classes).s, labels  # (B, C), (B,)

    def check(self, pairs: Pairs) -> Tensor:
        """Return the labels (B,) as int64; raise an error if they or the dimension D do not fit the proxies."""
        if pairs.z.shape[1] != self.proxies.shape[1]:
            raise NearkinError(
                f"embeddings have {pairs.z.shape[1]} dimensions, the proxies of {type(self).__name__} "
                f"have {self.proxies.shape[1]}"
            )
        return check_labels(pairs.labels, self.num_classes, self)


def check_labels(labels: Tensor, num_classes: int, loss: Loss) -> Tensor:
    """Return the labels (B,) as int64; raise an error if one lies outside 0 to num_classes - 1.

    On a CPU every batch is looked at; elsewhere, where looking waits for the device, the first one of the loss.
    """
    if len(labels) and (labels.device.type == "cpu" or not loss.seen_labels):
        least, most = map(int, labels.aminmax())
        if not 0 <= least <= most < num_classes:
            raise NearkinError(
                f"labels run from {least} to {most}; "
                f"{type(loss).__name__} has num_classes={num_classes} (labels 0 to {num_classes - 1})"
            )
        loss.seen_labels = True
    return labels.long()


LOSSES.takes(Loss, nn.Module, words="a nearkin.losses.Loss, or another torch.nn.Module (losses/foreign.py)")
