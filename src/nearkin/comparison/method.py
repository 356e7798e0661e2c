"""One row of a comparison: a method, its kind, and its values by seed."""

import statistics
from dataclasses import dataclass, field

from nearkin.comparison.gather import Member
from nearkin.errors import NearkinError
from nearkin.registry import LOSSES
from nearkin.statistics.intervals import Interval, mean_interval

Block = tuple[str, ...]                         # a setting beside the rows, such as a network and a size


@dataclass
class Method:
    """One row: what is compared, and its values. A block is a setting beside it, such as a network and size."""

    name: str
    kind: str                                               # ranking, classification or untrained
    blocks: dict[Block, dict[int, float]]                   # block -> seed -> value, folds averaged
    members: list[Member] = field(default_factory=list)

    @property
    def values(self) -> dict[int, float]:
        """Seed -> mean over blocks, of the seeds that all blocks have."""
        seeds = set.intersection(*(set(own) for own in self.blocks.values())) if self.blocks else set()
        return {seed: statistics.fmean(own[seed] for own in self.blocks.values()) for seed in sorted(seeds)}

    @property
    def interval(self) -> Interval | None:
        """Mean over seeds with its interval; None without a value."""
        values = list(self.values.values())
        return mean_interval(values) if values else None


def kind_of(member: Member) -> str:
    """ranking, classification or untrained. A loss classifies when it compares images with vectors that it learns for
    classes, and takes no pairs from a miner."""
    if member.untrained:
        return "untrained"
    try:
        loss = LOSSES[member.settings["loss.name"]]
    except NearkinError:                                            # a loss of the user's own that is not here now
        return "unknown"
    classes = "num_classes" in loss.__init__.__code__.co_varnames and not loss.accepts
    return "classification" if classes else "ranking"
