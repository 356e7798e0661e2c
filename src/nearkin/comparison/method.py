"""One row of a comparison: a method, its kind, its runs, and its values on the unit of comparison."""

from dataclasses import dataclass, field
from functools import cached_property

from nearkin.comparison.gather import Member
from nearkin.losses import Loss
from nearkin.registry import LOSSES
from nearkin.statistics.intervals import UNBOUNDED, Bounds, Interval, mean_interval
from nearkin.statistics.unit import Row
from nearkin.studies.budgets import budget_of

UNTRAINED = "untrained"
OWN = "own"  # a loss that nearkin does not have: what it is, is not known without importing it


@dataclass
class Method:
    """One row: what is compared, and the values of its runs."""

    kind: str  # ranking, classification, own or untrained
    row: Row  # its values by seed, setting and fold
    members: list[Member] = field(default_factory=list)
    validation: Row | None = None  # the same of the metric that chose the epochs; None: no validation
    bounds: Bounds = UNBOUNDED  # of the metric

    @property
    def name(self) -> str:
        """What the row is called."""
        return self.row.name

    @property
    def trained(self) -> bool:
        """Was it trained at all?"""
        return self.kind != UNTRAINED

    @property
    def values(self) -> dict[int, float]:
        """Seed -> value, folds and settings averaged."""
        return self.row.values

    @property
    def settings(self) -> list[tuple[str, ...]]:
        """The settings beside the rows (a network, a size) that it has."""
        return list(dict.fromkeys(place.setting for place in self.row.places))

    @cached_property
    def interval(self) -> Interval | None:
        """Mean over seeds with its interval; None without a value."""
        return mean_interval(list(self.values.values()), bounds=self.bounds) if self.values else None

    @property
    def budget(self) -> dict[str, str]:
        """What its runs were given, in words; empty for untrained networks."""
        runs = [member.run for member in self.members if member.baseline is None and not member.untrained]
        trials = max((member.trials for member in self.members), default=0)
        epochs = max((member.searched_epochs for member in self.members), default=0)
        folds = len({member.fold for member in self.members})
        return budget_of(runs, len(self.values), folds, trials=trials, searched_epochs=epochs)


def kind_of(member: Member) -> str:
    """ranking, classification, untrained, or own: a loss by its import path, or of another library. A loss classifies
    when it compares images with vectors that it learns for classes."""
    if member.untrained:
        return UNTRAINED
    loss = LOSSES.known(str(member.settings["loss.name"]))
    if loss is None or not issubclass(loss, Loss):  # an import path: looking at runs imports nothing
        return OWN
    return "classification" if loss.has_proxies else "ranking"
