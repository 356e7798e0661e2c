"""`Objective` = loss + miner + regularisers."""

import inspect
from collections.abc import Sequence
from typing import Any

from torch import Generator, Tensor, nn

from nearkin.errors import NearkinError
from nearkin.losses import Loss
from nearkin.losses.foreign import ForeignLoss
from nearkin.memory import Memory
from nearkin.methods.base import Method
from nearkin.miners import Miner
from nearkin.miners.foreign import ForeignMiner
from nearkin.pairs import Embedded, Pairs
from nearkin.registry import LOSSES, MINERS, REGULARISERS
from nearkin.regularisers import Mix, Mixup, Regulariser


class Objective(Method):
    """Loss + miner + regularisers: the one module that the training loop optimises and saves beside the model.

    Proxies, class weights and β are its parameters, so that no optimiser and no checkpoint can forget them. A miner
    that gives what the loss does not take, or a regulariser that changes what no miner gives, is refused here.

    Parameters:
        loss: a `nearkin.losses.Loss`, or any module with `forward(embeddings, labels)` (losses/foreign.py).
        miner: a `nearkin.miners.Miner`, or None: all pairs or triplets of the batch.
        regularisers: any number of `nearkin.regularisers.Regulariser`.

    Example:
        objective = Objective(nearkin.losses.Triplet(), nearkin.miners.Semihard())
        value = objective(embeddings, labels)
    """

    def __init__(self, loss: Loss | nn.Module, miner: Miner | None = None, regularisers: Sequence[Regulariser] = ()):
        super().__init__()
        loss = loss if isinstance(loss, Loss) else ForeignLoss(loss)
        if miner is not None and miner.gives not in loss.accepts:
            fits = [m for m in MINERS.names() if MINERS[m].gives in loss.accepts]
            name = type(getattr(loss, "module", loss)).__name__  # of a ForeignLoss: that of its module
            raise NearkinError(
                f"miner {type(miner).__name__} gives {miner.gives.__name__}, which {name} "
                f"does not take; miners that fit: {', '.join(fits) or 'none (it needs none)'}"
            )
        for regulariser in regularisers:
            if regulariser.needs is not None and (miner is None or miner.gives is not regulariser.needs):
                fits = [m for m in MINERS.names() if MINERS[m].gives is regulariser.needs]
                current = "no miner" if miner is None else f"miner {type(miner).__name__}"
                raise NearkinError(
                    f"regulariser {type(regulariser).__name__} changes the {regulariser.needs.__name__} of a miner; "
                    f"{current} was set; miners that fit: {', '.join(fits)}"
                )
        if sum(isinstance(r, Mixup) for r in regularisers) > 1:
            raise NearkinError("mixup was given twice; once is enough")
        self.loss = loss
        self.miner = miner.for_loss(loss) if miner is not None else None
        self.regularisers = tuple(regularisers)

    @property
    def mixes(self) -> bool:
        """Does it mix images of a batch inside the network?"""
        return any(isinstance(r, Mixup) for r in self.regularisers)

    def mix(self, batch: int, stages: int, generator: Generator | None = None) -> Mix | None:
        """What the network should mix in this batch (see regularisers/mixup.py); None without mixup."""
        for regulariser in self.regularisers:
            if isinstance(regulariser, Mixup):
                return regulariser.mix(batch, stages, generator)
        return None

    @property
    def active(self) -> Tensor | None:
        """Share of active terms in the last call, where the loss counts them."""
        return self.loss.active

    def check_memory(self) -> None:
        """Refuse a memory that the loss cannot use, before the first step."""
        why = None
        if self.mixes:
            why = "mixup: a mixed embedding has no one label to be remembered by"
        elif isinstance(self.loss, ForeignLoss) or isinstance(self.miner, ForeignMiner):
            why = "a loss or miner of another library, which would take an anchor for its own positive"
        elif self.loss.why_no_references:
            why = f"{type(self.loss).__name__}: {self.loss.why_no_references}"
        if why:
            ours = [n for n in LOSSES.names() if issubclass(LOSSES[n], Loss)]
            fits = [n for n in ours if LOSSES[n].accepts and not LOSSES[n].needs_square]
            raise NearkinError(f"memory.size does not go with {why}; losses that take a memory: {', '.join(fits)}")

    def forward(
        self,
        embedded: Embedded | Pairs | Tensor,
        labels: Any = None,
        generator: Generator | None = None,
        memory: Memory | None = None,
    ) -> Tensor:
        """The loss of a batch (B, D), (B,), penalties added; with a memory its rows are further references.

        Labels are integers or strings, as a tensor, an array or a list; strings do not go with a memory.
        """
        mix = None
        if isinstance(embedded, Embedded):
            mix = embedded.mix
            embedded = embedded.z
        pairs = Pairs.of(embedded, labels)
        if memory is not None and not isinstance(embedded, Pairs):
            if pairs.classes is not None:
                raise NearkinError(
                    "labels are strings; a memory of earlier batches needs numbers, the same in every batch"
                )
            pairs = memory.beside(pairs.z, pairs.labels)
        value = self._loss(pairs, generator)
        if mix is not None:
            other = self._loss(pairs.relabel(pairs.labels[mix.order]), generator)
            value = mix.weight * value + (1 - mix.weight) * other
        for regulariser in self.regularisers:
            penalty = regulariser.penalty(pairs)
            if penalty is not None:
                value = value + penalty
        return value

    def _loss(self, pairs: Pairs, generator: Generator | None) -> Tensor:
        tuples = None
        if self.miner is not None:
            tuples = self.miner(pairs, generator=generator)
            for regulariser in self.regularisers:
                tuples = regulariser.change(tuples, pairs, generator)
        return self.loss(pairs, None, tuples, generator=generator)

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """Groups of the objective's own parameters: those of its loss; with a base rate `lr`, ready for torch."""
        return self.loss.parameter_groups(lr=lr)


def build_objective(
    *,
    loss: tuple[str, dict[str, Any]],
    miner: tuple[str, dict[str, Any]] | None = None,
    regularisers: Sequence[tuple[str, dict[str, Any]]] = (),
    num_classes: int,
    dim: int,
) -> Objective:
    """An objective from names (registered, or import paths: also of another library's losses and miners) and their
    hyper-parameters. The number of training classes and the embedding's width are passed on where they are needed."""
    supplied = {"num_classes": num_classes, "dim": dim, "embedding_size": dim}
    built_loss = as_loss(LOSSES[loss[0]], supplied, loss[1])
    built_miner = as_miner(MINERS[miner[0]], supplied, miner[1]) if miner is not None else None
    built = [_construct(REGULARISERS[name], supplied, settings) for name, settings in regularisers]
    return Objective(built_loss, built_miner, built)


def as_loss(cls: type, supplied: dict[str, Any], settings: dict[str, Any]) -> Loss:
    """A loss of ours, or one of another library behind our interface."""
    built = _construct(cls, supplied, settings)
    return built if isinstance(built, Loss) else ForeignLoss(built)


def as_miner(cls: type, supplied: dict[str, Any], settings: dict[str, Any]) -> Miner:
    """A miner of ours, or one of another library behind our interface."""
    built = _construct(cls, supplied, settings)
    return built if isinstance(built, Miner) else ForeignMiner(built, dim=supplied["dim"])


def _construct(cls: type, supplied: dict[str, Any], settings: dict[str, Any]) -> Any:
    """cls(**settings), with what nearkin supplies: positional parameters of our classes, and of foreign ones those
    that have no default (a foreign default is its author's choice)."""
    ours = isinstance(cls, type) and issubclass(cls, Loss | Miner | Regulariser)
    parameters = inspect.signature(cls).parameters.values()
    names = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY and (ours or p.default is p.empty)]
    passed = {name: supplied[name] for name in names if name in supplied and name not in settings}
    if ours:
        known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        for name in settings:
            if name not in known:
                raise NearkinError(f"{cls.__name__} has no {name!r}; it has: {', '.join(known) or 'no settings'}")
    try:
        return cls(**passed, **settings)
    except TypeError as error:
        raise NearkinError(f"{cls.__name__} cannot be built with {settings}: {error}") from error
