"""What `nearkin fit` does with so many classes in so many minutes. Pure arithmetic.

Every class is tested once: k folds over classes, trained and untrained network on each, then one model on all classes.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

FOLDS = 4  # three below 16 classes: galleries of two or three classes are so easy that nothing can be told
LEAST_CLASSES = 6  # three parts of two classes: below them nothing can be held out
VALIDATED_FROM = 32  # classes from which some are held out a second time, to choose loss, epoch and blend
SHARE = 0.8  # of the time is planned; the rest is for what takes longer than thought
START = 2.0  # seconds to begin a run


@dataclass(frozen=True)
class Costs:
    """What things take, in seconds of one worker.

    Parameters:
        run: one fold of the recipe, its test included.
        untrained: the untrained network on one fold.
        final: the model on all classes.
        spent: what was spent before anything could be planned.
    """

    run: float
    untrained: float
    final: float
    spent: float = 0.0


@dataclass(frozen=True)
class Plan:
    """What is done.

    Parameters:
        folds: parts of the classes; 0: too few classes.
        share: of the classes that are not tested, which validates; 0: none.
        cut: behind which stage of the backbone is trained; none: all of it.
        losses: which are trained, the recipe's first; empty: there is no time to train.
        seconds: how long it will take, about.
    """

    folds: int
    share: float
    cut: str
    losses: tuple[str, ...]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {**asdict(self), "losses": list(self.losses)}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Plan":
        """One that was stored."""
        return cls(**{**stored, "losses": tuple(stored["losses"])})


def folds_for(classes: int) -> tuple[int, float]:
    """How many parts, and which share of the classes that train in a fold validates."""
    if classes < LEAST_CLASSES:
        return 0, 0.0
    return FOLDS if classes >= 4 * FOLDS else FOLDS - 1, 0.2 if classes >= VALIDATED_FROM else 0.0


def seconds_of(costs: Costs, folds: int, losses: int, workers: int) -> float:
    """Seconds to wait: the folds of all losses share the workers, the last model has one."""
    return costs.spent + folds * (costs.untrained + losses * costs.run) / workers + costs.final


def plan(
    seconds: float, workers: int, classes: int, cuts: dict[str, Costs], losses: tuple[str, ...], *, all_losses: bool
) -> Plan:
    """The best use of the time: the most of the network that can be trained in it, then further losses.

    Parameters:
        seconds: all that there is.
        workers: runs at a time.
        classes: of the images.
        cuts: what can be trained, the whole network first -> what it takes.
        losses: those that may be tried, the recipe's first.
        all_losses: all of them were asked for: rather less of the network than fewer losses.
    """
    folds, share = folds_for(classes)
    time = SHARE * seconds
    least = len(losses) if all_losses else 1
    first = next(iter(cuts))
    for count in range(least, 0, -1):
        for cut, costs in cuts.items():
            if folds and seconds_of(costs, folds, count, workers) <= time:
                more = [n for n in range(count, len(losses) + 1) if seconds_of(costs, folds, n, workers) <= time]
                return Plan(folds, share, cut, losses[: more[-1]], seconds_of(costs, folds, more[-1], workers))
    untrained = cuts[first]
    return Plan(folds, share, first, (), untrained.spent + folds * untrained.untrained / workers)
